/** An action that is requested often and executed seldom: once for all requests within an interval. */
import type { World } from '../system/world.ts';

export interface Delayed {
  /** The action runs within the delay; further requests meanwhile have no effect. */
  request(): void;
  cancel(): void;
}

/** `delayMs` is called again for each interval. */
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
/**
 * Groups up to this size are written with the shortest delay; larger ones less often, so that the load stays constant.
 */
const sessionsAtShortest = 100;

/** How long writes are delayed in a group with this many sessions, milliseconds. */
export function delayFor(sessions: number, longestMs: number): number {
  return Math.min(longestMs, shortestMs * Math.max(1, sessions / sessionsAtShortest));
}
