/** Follows the log of a group from its beginning, with the state after each event. */
import type { GroupEvent } from '../../core/event.ts';
import type { Failure } from '../../core/failure.ts';
import { reduce } from '../../core/reduce.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { followLog } from '../../store/event-log.ts';
import { waitUntil } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import { liveRunner } from '../live-runner.ts';
import type { GroupReference } from '../resolve.ts';

export interface GroupFollower {
  readonly state: GroupState | null;
  /** Reads the log now. Call this when the writer is gone. */
  catchUp(): void;
  close(): void;
}

/** Passes each event once, with the state that contains it. `onProblem`: the log is damaged or gone, once. */
export function followGroup(
  world: World,
  group: Pick<GroupReference, 'paths'>,
  onEvent: (event: GroupEvent, state: GroupState) => void = () => {},
  onProblem: (failure: Failure) => void = () => {},
): GroupFollower {
  let state: GroupState | null = null;
  let lastSeq = 0;
  const take = (events: readonly GroupEvent[], isFresh: boolean): void => {
    // The writer withdrew events that it could not make durable. Rebuild the state without repeating output.
    if (isFresh) state = null;
    for (const event of events) {
      state = state === null ? initialState(event) : reduce(state, event);
      if (event.seq <= lastSeq) continue;
      lastSeq = event.seq;
      onEvent(event, state);
    }
  };
  const log = followLog(world, group.paths.events, take, onProblem);
  return {
    get state() {
      return state;
    },
    catchUp: log.look,
    close: log.close,
  };
}

const lookEveryMs = 250;
/** How long a runner may take to exit after it settled its group, milliseconds. */
const lettingGoMsMax = 30_000;
const lettingGoLookMs = 15;

/** Follows the log until `look` returns a value; `runner-gone` if that run ended before. */
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
        // Check the runner before the log is read, so that the log includes its last events.
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

/** Waits until that run has released the lock, so that the next command does not find the group busy. */
export async function awaitRelease(world: World, group: Pick<GroupReference, 'paths'>, runId: string): Promise<void> {
  await waitUntil(world.clock, lettingGoMsMax, lettingGoLookMs, () => liveRunner(world, group) !== runId);
}
