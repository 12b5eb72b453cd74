/** The time of day and timers. */
import type { Clock } from './world.ts';

/** Longer delays make setTimeout fire at once, so they are waited for in steps. */
const longestStepMs = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => Date.now(),
    after(delayMs, action) {
      // A timer of no time would wait for a millisecond.
      if (delayMs <= 0) {
        const turn = setImmediate(action);
        return () => clearImmediate(turn);
      }
      let timer: ReturnType<typeof setTimeout>;
      const wait = (leftMs: number): void => {
        const stepMs = Math.min(leftMs, longestStepMs);
        timer = setTimeout(() => (leftMs > stepMs ? wait(leftMs - stepMs) : action()), stepMs);
      };
      wait(delayMs);
      return () => clearTimeout(timer);
    },
  };
}

const turns = new WeakMap<Clock, Promise<void>>();

/**
 * Resolves once all has been heard that the system has to tell by now. Those who ask before that go on together, in the
 * order in which they asked: what costs the same for one and for many is then done once.
 */
export function nextTurn(clock: Clock): Promise<void> {
  const begun = turns.get(clock);
  if (begun !== undefined) return begun;
  const turn = new Promise<void>((resolve) => {
    clock.after(0, () => {
      turns.delete(clock);
      resolve();
    });
  });
  turns.set(clock, turn);
  return turn;
}

/** Resolves after `ms` milliseconds. */
export function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
