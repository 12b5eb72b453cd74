/**
 * The logs of a session's own commands, and whether its set-up runs: the event log tells only of what is ready, the
 * files tell what is not.
 */
import type { SessionDefinition } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';

/** The log of the set-up command that runs for this session, of a group that has a runner; null = none does. */
export function runningSetup({ files }: World, paths: GroupPaths, record: SessionRecord): string | null {
  const { definition, state, workspace } = record;
  if (definition.setup === undefined || state.status !== 'running' || workspace === undefined) return null;
  const { process, accepting } = state.attempt;
  if (process !== undefined || accepting !== undefined) return null;
  const { setupLog, setupDone } = sessionPaths(paths, definition.id);
  return files.info(setupLog) !== null && files.info(setupDone) === null ? setupLog : null;
}

/** The log of the session's acceptance command; undefined = it has none. */
export function acceptanceLog(paths: GroupPaths, { id, accept }: SessionDefinition): string | undefined {
  return accept === undefined ? undefined : sessionPaths(paths, id).acceptLog;
}
