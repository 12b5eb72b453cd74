/** Archives a finished group and removes sessions, with their worktrees. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupState } from '../../core/state.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { sessionPaths } from '../../store/paths.ts';
import type { AppContext } from '../app-context.ts';
import { finishMerge } from '../delivery/merge.ts';
import {
  type CleanUpReport,
  checkReleasable,
  cleanUpSessions,
  firstObstacle,
  type Leftover,
  leftoverOf,
  leftoversOf,
  type Release,
  recordCleaned,
  recoveryHint,
  releaseWorktrees,
} from '../delivery/worktree-cleanup.ts';
import { submit } from '../group-commands.ts';
import { liveRunner } from '../live-runner.ts';
import type { GroupReference, LoadedSession } from '../resolve.ts';

export interface Archived {
  readonly state: GroupState;
  readonly wasArchived: boolean;
  readonly leftovers: readonly Leftover[];
  readonly tidied: CleanUpReport;
}

/** Removes worktrees of merged work. Unmerged work prevents archiving, unless `force` discards it. */
export async function archiveGroup(
  context: AppContext,
  group: GroupReference,
  force: boolean,
): Promise<Result<Archived>> {
  let leftovers: readonly Leftover[] = [];
  let wasArchived = false;
  let archived: Archived | undefined;
  const before = async (writer: GroupWriter): Promise<Result<void>> => {
    const finished = await finishMerge(context, writer);
    if (!finished.ok) return finished;
    const all = await leftoversOf(context, writer.paths, writer.state);
    leftovers = all.filter(({ record }) => record !== undefined);
    wasArchived = writer.state.status === 'archived';
    return wasArchived || force ? ok(undefined) : checkArchivable(context, writer.state, leftovers);
  };
  // Log first: after an interruption, the same command removes the remaining worktrees.
  const after = async (writer: GroupWriter): Promise<Result<void>> => {
    const tidied = await cleanUpSessions(context, writer, [...writer.state.sessions.keys()], { force });
    if (!tidied.ok) return tidied;
    archived = { state: writer.state, wasArchived, leftovers, tidied: tidied.value };
    return ok(undefined);
  };
  const done = await submit(context, group, { kind: 'archive' }, { before, after });
  if (!done.ok) return done;
  return ok(archived as Archived);
}

/** Refuses unmerged work, because an archived group cannot be merged. */
function checkArchivable(context: AppContext, state: GroupState, leftovers: readonly Leftover[]): Result<void> {
  const obstacle = firstObstacle(context, leftovers, 'keep-unmerged');
  if (obstacle === null) return ok(undefined);
  const { id } = state.group;
  const { leftover, title, why } = obstacle;
  return fail(
    'illegal-transition',
    `Group ${id} is not archived, because it has unmerged work. The worktree of ${title}: ${why}`,
    advise(`${recoveryHint(state, leftover)} and archive again, or discard it with`, [
      'group',
      'archive',
      id,
      '--force',
    ]),
  );
}

/** Fails with `illegal-transition` if unsaved work would be lost. */
export async function removeSession(
  context: AppContext,
  session: LoadedSession,
  release: Release,
): Promise<Result<void>> {
  const { sessionId, record, paths } = session;
  const releaseNow = async (known = record): Promise<Result<void>> => {
    const leftover = await leftoverOf(context, paths, sessionId, known);
    return leftover === null ? ok(undefined) : releaseWorktrees(context, paths, [leftover], release);
  };
  // A live runner may start the session, so check the worktree first and remove it after the session.
  if (liveRunner(context.world, session) !== null) {
    const before = await leftoverOf(context, paths, sessionId, record);
    const possible = before === null ? ok(undefined) : checkReleasable(context, [before], release);
    if (!possible.ok) return possible;
  }
  // Without a runner, remove the worktree first, so that the command can be repeated.
  const before = async (writer: GroupWriter): Promise<Result<void>> => {
    const finished = await finishMerge(context, writer);
    if (!finished.ok) return finished;
    const released = await releaseNow(writer.state.sessions.get(sessionId));
    return released.ok ? recordCleaned(writer, sessionId) : released;
  };
  const removed = await submit(context, session, { kind: 'remove-session', sessionId }, { before });
  const released = removed.ok && removed.value.by === 'runner' ? await releaseNow() : removed;
  if (!released.ok) return released;
  context.world.files.remove(sessionPaths(paths, sessionId).folder);
  return ok(undefined);
}
