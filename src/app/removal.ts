/** Archives, deletes and prunes groups, and removes sessions, with their worktrees. */

import { join } from 'node:path';
import { advise, see } from '../core/advice.ts';
import { describeFailure, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { isSessionId } from '../core/id.ts';
import type { GroupState } from '../core/state.ts';
import { activeGroupStatuses, type GroupStatus } from '../core/status.ts';
import { readIntent } from '../git/worktrees/workspace.ts';
import { anyAttachedProblem } from '../runner/attach.ts';
import { stopGroup } from '../runner/stop-group.ts';
import { deleteGroupFolder, isGroupGone, listGroups, loadGroup } from '../store/group-store.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, groupPaths, sessionPaths } from '../store/paths.ts';
import type { GroupMeta } from '../store/snapshots.ts';
import { LogLost } from '../store/system-failure.ts';
import { errorCode } from '../system/system-error.ts';
import type { Files } from '../system/world.ts';
import { formatAge, plural } from '../view/format.ts';
import type { AppContext } from './app-context.ts';
import { finishMerge } from './delivery/merge.ts';
import {
  type CleanUpReport,
  checkReleasable,
  cleanUpSessions,
  firstObstacle,
  type Leftover,
  leftoverOf,
  leftoversOf,
  namedElsewhere,
  type Release,
  recordCleaned,
  recoveryHint,
  releaseWorktrees,
} from './delivery/worktree-cleanup.ts';
import { changeGroup, submit } from './group-commands.ts';
import { stopDamagedGroup, stopRehearsal } from './leftovers.ts';
import { liveRunner } from './live-runner.ts';
import { type GroupReference, isHeld, type LoadedSession } from './resolve.ts';

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

// Deletes a group with its transcripts and worktrees, even if its log cannot be read.

/** Fails with `busy` if a runner holds the group, and with `illegal-transition` if work would be lost. */
export async function deleteGroup(
  context: AppContext,
  group: GroupReference,
  release: Release,
  allows: (state: GroupState) => Result<void> = () => ok(undefined),
): Promise<Result<void>> {
  if (context.world.files.entryKind(group.paths.folder) === 'link') return deleteLink(context, group, release);
  const deleted = await changeGroup<void>(context, group, {
    direct: (writer) => {
      const allowed = allows(writer.state);
      return allowed.ok ? deleteNow(context, group, writer, release) : allowed;
    },
  });
  const isReadable = deleted.ok || loadGroup(context.world, group.root, group.groupId).ok;
  return isReadable ? deleted : deleteDamaged(context, group, release);
}

/** Removes the symlink only, without the lock of its target. */
function deleteLink({ world }: AppContext, { paths }: GroupReference, { tell }: Release): Result<void> {
  world.files.remove(paths.folder);
  tell(`Removed only the symlink ${paths.folder}; its target was not changed.`);
  return ok(undefined);
}

/** Refuses before the confirmation what the deletion would refuse. The lock that is taken later is decisive. */
export async function refuseWhileRunning(context: AppContext, group: GroupReference): Promise<Result<void>> {
  if (!isHeld(context.world, group)) return ok(undefined);
  const taken = await changeGroup<void>(context, group, { direct: () => ok(undefined) });
  if (taken.ok || taken.failure.reason !== 'busy') return ok(undefined);
  const pause = ['group', 'pause', group.groupId];
  const force = ['group', 'delete', group.groupId, '--force'];
  const next = advise('Pause it and then delete it, or both at once', pause, force);
  return fail('busy', taken.failure.message, next);
}

async function deleteNow(
  context: AppContext,
  group: GroupReference,
  writer: GroupWriter,
  release: Release,
): Promise<Result<void>> {
  const taken = anyAttachedProblem(writer.state);
  if (taken) return taken;
  if (writer.state.running.size > 0) {
    context.notes.line(`Stopping ${plural(writer.state.running.size, 'worker')} that are running without a runner ...`);
    await stopGroup(context.world, writer, 'deleted');
  }
  await stopRehearsal(context.world, writer.paths);
  const finished = await finishMerge(context, writer);
  return finished.ok ? deleteFiles(context, group, writer.state, release) : finished;
}

/** Removes worktrees through git first, so that the user's repositories have no stale entries. */
async function deleteFiles(
  context: AppContext,
  { root, groupId, paths }: GroupReference,
  state: GroupState | null,
  release: Release,
): Promise<Result<void>> {
  const leftovers = await leftoversOf(context, paths, state);
  const released = await releaseWorktrees(context, paths, leftovers, release);
  if (!released.ok) return released;
  deleteGroupFolder(context.world, root, groupId);
  return ok(undefined);
}

/** Takes the lock directly, because a writer needs a readable log. */
async function deleteDamaged(context: AppContext, group: GroupReference, release: Release): Promise<Result<void>> {
  const { world } = context;
  const { groupId, paths } = group;
  const lock = world.locks.tryLock(paths.lock, { identity: world.machine.self, runId: world.random.uuid() });
  if (lock === null) return fail('busy', `Another process is using group ${groupId}.`, 'Try again when it has ended.');
  try {
    await stopDamagedGroup(world, paths);
    await stopRehearsal(world, paths);
    return await deleteFiles(context, group, null, release);
  } finally {
    lock.release();
  }
}

export interface PruneOptions {
  readonly olderThanMs?: number | undefined;
  /** Absent = all except running and paused groups. */
  readonly status?: GroupStatus | 'active' | undefined;
  readonly largerThanBytes?: number | undefined;
  readonly keep?: number | undefined;
}

export interface PruneCandidate {
  readonly id: GroupId;
  readonly status: GroupStatus;
  readonly bytes: number;
  readonly why: string;
}

export interface PrunePlan {
  readonly toDelete: readonly PruneCandidate[];
  /** Groups that match but are kept. */
  readonly kept: readonly { readonly id: GroupId; readonly why: string }[];
}

export async function planPrune(context: AppContext, root: string, options: PruneOptions): Promise<PrunePlan> {
  const nowMs = context.world.clock.now();
  const meant = listGroups(context.world, root).flatMap(({ meta, problem }) =>
    meta !== undefined && problem === undefined && isMeant(meta, options) ? [meta] : [],
  );
  const toDelete: PruneCandidate[] = [];
  const kept: { id: GroupId; why: string }[] = [];
  for (const meta of meant.slice(options.keep ?? 0)) {
    const group = { root, groupId: meta.id, paths: groupPaths(root, meta.id) };
    const ageMs = nowMs - Date.parse(meta.updatedAt);
    if (options.olderThanMs !== undefined && ageMs < options.olderThanMs) continue;
    const bytes = bytesOf(context.world.files, group.paths);
    if (options.largerThanBytes !== undefined && bytes <= options.largerThanBytes) continue;
    const possible = await catchWriteErrors(group, () => checkPrunable(context, group));
    if (!possible.ok) kept.push({ id: meta.id, why: describeFailure(possible.failure) });
    else toDelete.push({ id: meta.id, status: meta.status, bytes, why: whyOf(meta, options, bytes, ageMs) });
  }
  return { toDelete, kept };
}

/** Deletes a planned group, unless its status has changed. */
export function pruneGroup(
  context: AppContext,
  group: GroupReference,
  { status }: Pick<PruneCandidate, 'status'>,
  tell: (note: string) => void,
): Promise<Result<void>> {
  const command = ['group', 'delete', group.groupId];
  return deleteGroup(context, group, { force: false, command, tell }, (state) => {
    if (state.status === status) return namedProblem(context, group.paths, state);
    const message = `Group ${group.groupId} has become ${state.status}.`;
    return fail('illegal-transition', message, see('group', 'show', group.groupId));
  });
}

function isMeant({ status }: GroupMeta, { status: wanted }: PruneOptions): boolean {
  if (wanted === undefined) return status !== 'running' && status !== 'paused';
  return wanted === 'active' ? activeGroupStatuses.has(status) : status === wanted;
}

async function checkPrunable(context: AppContext, group: GroupReference): Promise<Result<void>> {
  if (isHeld(context.world, group)) {
    return fail('busy', 'It has a live runner.', advise('Pause it first', ['group', 'pause', group.groupId]));
  }
  const state = loadGroup(context.world, group.root, group.groupId);
  if (!state.ok) return state;
  const named = namedProblem(context, group.paths, state.value);
  if (!named.ok) return fail(named.failure.reason, named.failure.message, '');
  const leftovers = await leftoversOf(context, group.paths, state.value);
  const command = ['group', 'delete', group.groupId];
  return checkReleasable(context, leftovers, { force: false, command });
}

function namedProblem(context: AppContext, paths: GroupPaths, { group, sessions }: GroupState): Result<void> {
  for (const { workspace } of sessions.values()) {
    const other = workspace === undefined ? null : namedElsewhere(context, paths, workspace);
    if (workspace === undefined || other === null) continue;
    const message = `Group ${other} uses its branch ${workspace.branch}.`;
    return fail('illegal-transition', message, advise('Delete it anyway with', ['group', 'delete', group.id]));
  }
  return ok(undefined);
}

function whyOf({ status }: GroupMeta, options: PruneOptions, bytes: number, ageMs: number): string {
  const parts = [
    status,
    `unchanged for ${formatAge(ageMs)}`,
    ...(options.largerThanBytes === undefined ? [] : [megabytes(bytes)]),
    ...(options.keep === undefined ? [] : [`not among the newest ${options.keep}`]),
  ];
  return parts.join(', ');
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** The group's folder and the worktrees of its sessions. */
function bytesOf(files: Files, paths: GroupPaths): number {
  const sessions = files.list(paths.sessions).filter(isSessionId);
  const worktrees = sessions.flatMap((id) => readIntent(files, sessionPaths(paths, id).workspace)?.path ?? []);
  return [paths.folder, ...worktrees].reduce((bytes, path) => bytes + sizeOf(files, path), 0);
}

/** Does not follow symlinks. */
function sizeOf(files: Files, path: string): number {
  try {
    const kind = files.entryKind(path);
    if (kind === 'file') return files.info(path)?.size ?? 0;
    if (kind !== 'folder') return 0;
    return files.list(path).reduce((bytes, name) => bytes + sizeOf(files, join(path, name)), 0);
  } catch {
    return 0;
  }
}

/** Turns a system error into `write-failed` with its path, so that the other groups are still handled. */
export async function catchWriteErrors<T>(
  { paths }: Pick<GroupReference, 'paths'>,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LogLost) return { ok: false, failure: error.failure };
    const code = errorCode(error);
    if (!/^E[A-Z0-9]+$/.test(code)) throw error;
    const { path = paths.folder } = error as { path?: string };
    const next = 'Check its permissions, those of its folder and the free disk space, then run the command again.';
    return fail('write-failed', `The path ${path} cannot be read or changed (${code}).`, next);
  }
}

/** The start of a sentence about a group that could not be deleted. The folder is renamed before its files go. */
export function remainingState({ world }: Pick<AppContext, 'world'>, { groupId, paths }: GroupReference): string {
  return isGroupGone(world, paths) ? `${groupId} is deleted, but not all of its files` : `${groupId} was not deleted`;
}
