/** `group prune`: chooses the groups to delete, and explains why others are kept. */
import { join } from 'node:path';
import { advise, see } from '../../core/advice.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { isSessionId } from '../../core/id.ts';
import type { GroupState } from '../../core/state.ts';
import { activeGroupStatuses, type GroupStatus } from '../../core/status.ts';
import { readIntent } from '../../git/worktrees/workspace.ts';
import { isGroupGone, listGroups, loadGroup } from '../../store/group-store.ts';
import { type GroupPaths, groupPaths, sessionPaths } from '../../store/paths.ts';
import type { GroupMeta } from '../../store/snapshots.ts';
import { LogLost } from '../../store/system-failure.ts';
import { errorCode } from '../../system/system-error.ts';
import type { Files } from '../../system/world.ts';
import { formatAge } from '../../view/format.ts';
import type { AppContext } from '../app-context.ts';
import { checkReleasable, leftoversOf, namedElsewhere } from '../delivery/worktree-cleanup.ts';
import { type GroupReference, isHeld } from '../resolve.ts';
import { deleteGroup } from './delete-group.ts';

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
