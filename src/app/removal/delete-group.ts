/** Deletes a group with its transcripts and worktrees, even if its log cannot be read. */
import { advise } from '../../core/advice.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { GroupState } from '../../core/state.ts';
import { anyAttachedProblem } from '../../runner/attach.ts';
import { stopGroup } from '../../runner/stop-group.ts';
import { deleteGroupFolder } from '../../store/group-store.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { errorCode } from '../../system/system-error.ts';
import type { World } from '../../system/world.ts';
import { plural } from '../../view/format.ts';
import type { AppContext } from '../app-context.ts';
import { finishMerge } from '../delivery/merge.ts';
import { leftoversOf, type Release, releaseWorktrees } from '../delivery/worktree-cleanup.ts';
import { changeGroup } from '../group-commands.ts';
import { stopDamagedGroup, stopRehearsal } from '../leftovers.ts';
import { type GroupReference, isHeld } from '../resolve.ts';

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
  return deleted.ok || !isDamage(deleted.failure) ? deleted : deleteDamaged(context, group, release);
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

function isDamage(failure: Failure): boolean {
  return ['corrupt-file', 'newer-version', 'older-version'].includes(failure.reason);
}

/** Takes the lock directly, because a writer needs a readable log. */
async function deleteDamaged(context: AppContext, group: GroupReference, release: Release): Promise<Result<void>> {
  const { world } = context;
  const { groupId, paths } = group;
  const lock = world.locks.tryLock(paths.lock, { identity: world.machine.self, runId: world.random.uuid() });
  if (lock === null) return fail('busy', `Another process is using group ${groupId}.`, 'Try again when it has ended.');
  try {
    refuseHiddenLog(world, paths.events);
    await stopDamagedGroup(world, paths);
    await stopRehearsal(world, paths);
    return await deleteFiles(context, group, null, release);
  } finally {
    lock.release();
  }
}

/** Throws if only permissions hide the log: the group is intact, and may have workers that this user cannot stop. */
function refuseHiddenLog({ files }: World, path: string): void {
  try {
    files.readText(path);
  } catch (error) {
    if (errorCode(error) === 'EACCES') throw error;
  }
}
