/** Waits until a live runner has brought a group into a certain state. */

import type { GroupState } from '../../core/state.ts';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import { liveRunner } from '../live-runner.ts';
import type { GroupReference } from '../resolve.ts';
import { followGroup } from './follow-group.ts';

/** How often it is looked whether the runner still lives, milliseconds. */
const lookEveryMs = 250;
/** A runner that has settled its group ends a rehearsal's server and then lets go, milliseconds. */
const lettingGoMsMax = 30_000;
const lettingGoLookMs = 15;

/**
 * Follows the log until `look`, which is shown the state after each event from the beginning of the log, returns
 * something. `runner-gone` when that run is over and it never did.
 */
export function awaitState<T>(
  world: World,
  group: Pick<GroupReference, 'paths'>,
  runId: string,
  look: (state: GroupState) => T | null,
): Promise<T | 'runner-gone'> {
  return new Promise((resolve) => {
    let isOver = false;
    let cancel = (): void => {};
    const end = (result: T | 'runner-gone'): void => {
      if (isOver) return;
      isOver = true;
      cancel();
      follower.close();
      resolve(result);
    };
    const follower = followGroup(
      world,
      group,
      (_event, state) => {
        const found = isOver ? null : look(state);
        if (found !== null) end(found);
      },
      () => end('runner-gone'),
    );
    const lookAgain = (): void => {
      cancel = world.clock.after(lookEveryMs, () => {
        // Asked before the log is read: what a runner logged before it ended is then read for certain.
        if (liveRunner(world, group) !== runId) {
          follower.catchUp();
          end('runner-gone');
        }
        if (!isOver) lookAgain();
      });
    };
    lookAgain();
  });
}

/** Waits until that run has let go of the group, so that the next command does not find it busy. */
export async function awaitRelease(world: World, group: Pick<GroupReference, 'paths'>, runId: string): Promise<void> {
  const deadline = world.clock.now() + lettingGoMsMax;
  while (liveRunner(world, group) === runId && world.clock.now() < deadline) await delay(world.clock, lettingGoLookMs);
}
