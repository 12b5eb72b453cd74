/** Signals of this process, for as long as somebody subscribes; without a subscriber the system's default applies. */
import type { RunnerSignal } from '../runner/facts.ts';
import { ignoresHangup } from '../world/ignored-signals.ts';

const signals: readonly RunnerSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Whether SIGHUP was ignored when this program was started: that is what `nohup` does, and it is to stay so. */
const hangupIsIgnored = ignoresHangup();

/**
 * Whoever tells a program to stop may tell its process group as well: timeout(1) does, and so do programs that pass on a
 * Ctrl-C which the terminal has sent to everybody. That is one wish, and no person asks a second time as soon.
 */
const sameWishMs = 200;

/**
 * Calls `handler` for each SIGINT, SIGTERM and SIGHUP instead of ending; of two wishes to stop less than `sameWishMs`
 * apart only for the first. The returned function ends it. `now` counts milliseconds.
 */
export function onSignal(handler: (signal: RunnerSignal) => void, now = () => performance.now()): () => void {
  const wanted = signals.filter((signal) => signal !== 'SIGHUP' || !hangupIsIgnored);
  let wishedAtMs = Number.NEGATIVE_INFINITY;
  const listeners = wanted.map((signal) => {
    const listener = (): void => {
      const isSame = signal !== 'SIGHUP' && now() - wishedAtMs < sameWishMs;
      if (isSame) return;
      if (signal !== 'SIGHUP') wishedAtMs = now();
      handler(signal);
    };
    process.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) process.off(signal, listener);
  };
}
