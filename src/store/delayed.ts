/** An action that is asked for often and done seldom: once for all requests of one stretch of time. */
import type { World } from '../system/world.ts';

export interface Delayed {
  /** The action is done within the delay; asking again meanwhile changes nothing. */
  request(): void;
  cancel(): void;
}

/** `delayMs` is called again for each stretch. */
export function delayedAction(world: World, delayMs: () => number, action: () => void): Delayed {
  let cancel: (() => void) | null = null;
  return {
    request() {
      cancel ??= world.clock.after(delayMs(), () => {
        cancel = null;
        action();
      });
    },
    cancel() {
      cancel?.();
      cancel = null;
    },
  };
}

const shortestMs = 250;
/** Groups up to this size are written at the shortest delay; larger ones less often, so that the load stays even. */
const sessionsAtShortest = 100;

/** How long writes are held back in a group of so many sessions, milliseconds. */
export function delayFor(sessions: number, longestMs: number): number {
  return Math.min(longestMs, shortestMs * Math.max(1, sessions / sessionsAtShortest));
}
