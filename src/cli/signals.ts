/** Signals of this process, for as long as somebody subscribes; without a subscriber the system's default applies. */
import type { RunnerSignal } from '../runner/facts.ts';
import { ignoresHangup } from '../world/ignored-signals.ts';

const signals: readonly RunnerSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Whether SIGHUP was ignored when this program was started: that is what `nohup` does, and it is to stay so. */
const hangupIsIgnored = ignoresHangup();

/** Calls `handler` for each SIGINT, SIGTERM and SIGHUP instead of ending. The returned function ends it. */
export function onSignal(handler: (signal: RunnerSignal) => void): () => void {
  const wanted = signals.filter((signal) => signal !== 'SIGHUP' || !hangupIsIgnored);
  const listeners = wanted.map((signal) => {
    const listener = (): void => handler(signal);
    process.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
}
