/** Signals of this process, for as long as somebody subscribes; without a subscriber the system's default applies. */
import type { RunnerSignal } from '../runner/facts.ts';

const signals: readonly RunnerSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Calls `handler` for each SIGINT, SIGTERM and SIGHUP instead of ending. The returned function ends it. */
export function onSignal(handler: (signal: RunnerSignal) => void): () => void {
  const listeners = signals.map((signal) => {
    const listener = (): void => handler(signal);
    process.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
}
