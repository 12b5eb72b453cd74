/** The time of day and timers. */
import type { Clock } from './world.ts';

/** Longer delays make setTimeout fire at once, so they are split into steps. */
const longestStepMs = 2 ** 31 - 1;

export function createClock(): Clock {
  return {
    now: () => Date.now(),
    after(delayMs, action) {
      let timer: ReturnType<typeof setTimeout>;
      const wait = (leftMs: number): void => {
        const stepMs = Math.min(leftMs, longestStepMs);
        timer = setTimeout(() => (leftMs > stepMs ? wait(leftMs - stepMs) : action()), stepMs);
      };
      wait(Math.max(0, delayMs));
      return () => clearTimeout(timer);
    },
  };
}

export function delay(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** True when the condition holds within `ms` milliseconds. */
export async function waitUntil(clock: Clock, ms: number, everyMs: number, condition: () => boolean): Promise<boolean> {
  const deadline = clock.now() + ms;
  while (!condition()) {
    if (clock.now() >= deadline) return false;
    await delay(clock, everyMs);
  }
  return true;
}

/** Waits `ms` milliseconds and blocks the whole process. */
export function pauseBlocking(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
