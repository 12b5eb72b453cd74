/** Signals of this process. Without a subscriber the system's default applies. */

import { ignoresHangup } from '../system/terminal.ts';
import type { Clock } from '../system/world.ts';
import type { RunnerSignal } from '../worker/facts.ts';

export type { RunnerSignal };

const signals: readonly RunnerSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** True if SIGHUP was ignored at the start, as by `nohup`; it stays ignored. */
const hangupIsIgnored = ignoresHangup();

/** Programs such as timeout(1) signal the process and its group: that counts as one request. */
const sameRequestMs = 200;

/** Ends this process by the default action of the signal. Requires that all subscribers have unsubscribed. */
export function endProcessBy(signal: RunnerSignal): void {
  process.kill(process.pid, signal);
}

/** Calls `handler` for each SIGINT, SIGTERM and SIGHUP instead of ending. The returned function ends it. */
export function onSignal(clock: Clock, handler: (signal: RunnerSignal) => void): () => void {
  const wanted = signals.filter((signal) => signal !== 'SIGHUP' || !hangupIsIgnored);
  let forget: (() => void) | null = null;
  const hear = (signal: RunnerSignal): void => {
    if (signal !== 'SIGHUP') {
      if (forget !== null) return;
      forget = clock.after(sameRequestMs, () => {
        forget = null;
      });
    }
    handler(signal);
  };
  const listeners = wanted.map((signal) => {
    const listener = (): void => hear(signal);
    process.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    forget?.();
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
}
