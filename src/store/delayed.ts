/** An action that is asked for often and done seldom: once for all requests of one stretch of time. */
import type { World } from '../system/world.ts';

export interface Delayed {
  /** The action is done within the delay; asking again meanwhile changes nothing. */
  request(): void;
  cancel(): void;
}

/** `delayMs` is asked anew for each stretch. */
export function delay(world: World, delayMs: () => number, action: () => void): Delayed {
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
