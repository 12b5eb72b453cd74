/** Reduces the events of a log to the state of the group; a damaged log is a failure. */
import type { GroupEvent } from '../core/event.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { graphOf } from '../core/plan/plan.ts';
import { reduce } from '../core/reduce.ts';
import { IllegalEvent } from '../core/session-state.ts';
import { type GroupState, initialState } from '../core/state.ts';
import { restoreOrDelete } from './event-log.ts';

/** Reduces the events of `path`. Fails with `corrupt-file` at the first impossible one. */
export function foldLog(path: string, id: GroupId, events: readonly GroupEvent[]): Result<GroupState> {
  let state: GroupState | null = null;
  for (const [index, event] of events.entries()) {
    try {
      state = state === null ? initialState(event) : reduce(state, event);
    } catch (error) {
      // One faulty group must not affect the others. The header is line 1.
      const what = error instanceof IllegalEvent ? 'is not a possible event' : 'is not valid';
      return corrupt(path, `Line ${index + 2} of ${path} ${what}: ${errorText(error)}.`);
    }
  }
  if (state === null) return corrupt(path, `The event log ${path} does not name its group.`);
  if (state.group.id !== id) return corrupt(path, `The event log ${path} belongs to the group ${state.group.id}.`);
  // Commands never log sessions with an invalid graph, but a manually edited log can contain them.
  const graph = graphOf(state);
  if (!graph.ok) return corrupt(path, `The sessions in ${path} have invalid dependencies: ${graph.failure.message}`);
  return ok(state);
}

function corrupt(path: string, message: string): Result<never> {
  return fail('corrupt-file', message, restoreOrDelete(path));
}
