/** What a worker is told of its session: the same for a new one, an adopted one and one that is only to be stopped. */
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { WorkerOptions } from './worker.ts';

export function workerOptions(
  paths: GroupPaths,
  { group }: GroupState,
  { definition }: SessionRecord,
  attempt: Attempt,
): Omit<WorkerOptions, 'emit' | 'expectHook'> {
  return {
    sessionId: definition.id,
    attemptId: attempt.id,
    paths: sessionPaths(paths, definition.id),
    offset: attempt.offset,
    startedAtMs: Date.parse(attempt.startedAt),
    expectStructured: definition.outputSchema !== undefined,
    prices: group.config.prices ?? {},
  };
}
