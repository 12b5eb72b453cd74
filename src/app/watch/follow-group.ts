/** Follows the log of a group from its beginning and keeps the state that belongs to it. */
import type { GroupEvent } from '../../core/event.ts';
import type { Failure } from '../../core/failure.ts';
import { reduce } from '../../core/reduce.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { followLog, readLog } from '../../store/event-log.ts';
import { delay } from '../../system/clock.ts';
import type { World } from '../../system/world.ts';
import { liveRunner } from '../live-runner.ts';
import type { GroupReference } from '../resolve.ts';

export interface GroupFollower {
  readonly state: GroupState | null;
  /** Reads what is in the log at this moment. To be called when the writer is known to be gone. */
  catchUp(): void;
  close(): void;
}

/** Passes each event once, with the state that contains it. `onProblem`: the log is damaged or gone, once. */
export function followGroup(
  world: World,
  group: Pick<GroupReference, 'paths'>,
  onEvent: (event: GroupEvent, state: GroupState) => void,
  onProblem: (failure: Failure) => void,
): GroupFollower {
  const { events: path } = group.paths;
  let state: GroupState | null = null;
  let told = 0;
  const take = (events: readonly GroupEvent[]): void => {
    for (const event of events) {
      if (state !== null && event.seq <= state.lastSeq) continue;
      state = state === null ? initialState(event) : reduce(state, event);
      if (event.seq <= told) continue;
      told = event.seq;
      onEvent(event, state);
    }
  };
  const stop = followLog(
    world,
    path,
    (events, isFresh) => {
      // The writer withdrew events that it could not make durable. The state is folded again without repeated output.
      if (isFresh) state = null;
      take(events);
    },
    onProblem,
  );
  return {
    get state() {
      return state;
    },
    catchUp() {
      const log = readLog(world, path);
      if (log.ok) take(log.value);
    },
    close: stop,
  };
}

const lookEveryMs = 250;
/** A runner that has settled its group ends a rehearsal's server and then lets go, milliseconds. */
const lettingGoMsMax = 30_000;
const lettingGoLookMs = 15;

/** Follows the log from its beginning until `look` returns something; `runner-gone` when that run ended before. */
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
