/** Follows the log of a group from its beginning and keeps the state that belongs to it. */
import type { GroupEvent } from '../../core/event.ts';
import { type Failure, fail } from '../../core/failure.ts';
import { reduce } from '../../core/reduce.ts';
import { IllegalEvent } from '../../core/session-state.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { followLog, readLog, restoreOrDelete } from '../../store/event-log.ts';
import type { World } from '../../system/world.ts';
import type { GroupReference } from '../resolve.ts';

export interface GroupFollower {
  /** The fold of what was read so far; null before the first event. */
  readonly state: GroupState | null;
  /** Reads what is in the log at this moment. To be called when the writer is known to be gone. */
  catchUp(): void;
  close(): void;
}

/**
 * Tells each event once, with the state that contains it. `onProblem` is told once, and following ends, when the log
 * is damaged or gone.
 */
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
  const takeSafely = (events: readonly GroupEvent[]): void => {
    try {
      take(events);
    } catch (error) {
      if (!(error instanceof IllegalEvent)) throw error;
      stop();
      const message = `The event log ${path} holds something that cannot have happened: ${error.message}.`;
      onProblem(fail('corrupt-file', message, restoreOrDelete(path)).failure);
    }
  };
  const stop = followLog(
    world,
    path,
    (events, isFresh) => {
      // A writer took events back that it could not make durable; the state is folded anew, nothing is told twice.
      if (isFresh) state = null;
      takeSafely(events);
    },
    onProblem,
  );
  return {
    get state() {
      return state;
    },
    catchUp() {
      const log = readLog(world, path);
      if (log.ok) takeSafely(log.value);
    },
    close: stop,
  };
}
