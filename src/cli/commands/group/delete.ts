/** `group delete`: removes a group with all its files, after its last worker has ended. */
import type { Command } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { hiddenDamagedWorker, hiddenWorker, stopDamagedGroup, stopRehearsal } from '../../../control/leftovers.ts';
import { liveRunner } from '../../../control/live-runner.ts';
import { pauseAndTell } from '../../../control/pause-group.ts';
import { whileWaiting } from '../../../control/request.ts';
import { type GroupReference, isHeld, resolveGroup } from '../../../control/resolve.ts';
import { type Failure, fail, ok, type Result } from '../../../core/failure.ts';
import type { GroupState } from '../../../core/state.ts';
import { finishMerge } from '../../../delivery/finish.ts';
import { leftoversOf, releaseWorktrees } from '../../../delivery/worktree-cleanup.ts';
import { plural } from '../../../report/format.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import { stopGroup } from '../../../runner/stop-group.ts';
import { deleteGroup, loadGroup } from '../../../store/group-store.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
import { isRegularFile } from '../../../store/regular-file.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent group delete auth-refactor
  $ claude-code-agent group pause auth-refactor && claude-code-agent group delete auth-refactor
  $ claude-code-agent group delete 20260104-143022-auth-refactor --force`;

const noteColumns = 600;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Deletes a group with its transcripts and worktrees. Projects are not touched. Asks first, and refuses while ' +
        'worktrees hold work that is in no commit. Branches with unmerged commits stay and are named. A group that ' +
        'is running has to be paused first; --force does that too.',
    )
    .argument('<group>', 'id, unique prefix or slug')
    .option('--force', 'do not ask; pause it and commit what is in no commit on its branch first')
    .addHelpText('after', example)
    .action((reference, { force }) => context.run(() => remove(context, reference, force === true)));
}

async function remove(context: Context, reference: string, force: boolean): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  const { groupId } = group.value;
  if (force) clearLock(context, group.value);
  const free = await (force ? pauseFirst(context, group.value) : refuseWhileRunning(context, group.value));
  if (!free.ok) return free;
  const sure = await confirmed(context, question(context, group.value), force);
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was deleted.');
    return ok(exitCode.done);
  }
  const deleted = await changeGroup<void>(context, group.value, {
    direct: (writer) => deleteNow(context, group.value, writer, force),
  });
  const settled = deleted.ok || !isDamage(deleted.failure) ? deleted : await deleteDamaged(context, group.value, force);
  if (!settled.ok) return settled;
  context.stderr.line(`Deleted ${groupId}.`);
  return ok(exitCode.done);
}

/** What is no file can be locked by nobody, and stands in the way; a runner that lives is known by the log. */
function clearLock({ world: { files } }: Context, { paths: { lock } }: GroupReference): void {
  if (files.entryKind(lock) !== null && !isRegularFile(files, lock)) files.remove(lock);
}

/** A runner that has not answered for so long is not waited for any more. */
const patienceMs = 10_000;

/** Whoever insists has a live runner stop its sessions as a pause does, so that it ends and gives up the lock. */
async function pauseFirst(context: Context, group: GroupReference): Promise<Result<void>> {
  if (liveRunner(context.world, group) === null) return ok(undefined);
  context.stderr.line(`Pausing ${group.groupId}, which is running ...`);
  const paused = await whileWaiting(context, group, pauseAndTell(context, group, 'now'), {
    afterMs: patienceMs,
    outcome: fail(
      'busy',
      'Its runner does not answer, so nothing was deleted.',
      'It is paused when its runner goes on.',
    ),
  });
  if (!paused.ok) return paused;
  for (const warning of paused.value.warnings) context.stderr.line(warning);
  return ok(undefined);
}

/** Nobody is asked about what will be refused anyway. What counts is the lock, which is taken later. */
async function refuseWhileRunning(context: Context, group: GroupReference): Promise<Result<void>> {
  if (!isHeld(context.world, group)) return ok(undefined);
  const taken = await changeGroup<void>(context, group, { direct: () => ok(undefined) });
  return !taken.ok && taken.failure.reason === 'busy' ? taken : ok(undefined);
}

function question(context: Context, { root, groupId }: GroupReference): string {
  const state = loadGroup(context.world, root, groupId);
  if (!state.ok) {
    const what = state.failure.reason === 'newer-version' ? 'group of a newer version' : 'damaged group';
    return `Delete the ${what} ${groupId} with all its files?`;
  }
  return `Delete group ${groupId} with ${plural(state.value.sessions.size, 'session')} and all transcripts?`;
}

async function deleteNow(
  context: Context,
  group: GroupReference,
  writer: GroupWriter,
  force: boolean,
): Promise<Result<void>> {
  const hidden = hiddenWorker(context.world, writer);
  if (hidden) return hidden;
  if (writer.state.running.size > 0) {
    context.stderr.line(`Stopping ${plural(writer.state.running.size, 'worker')} that a dead runner left behind ...`);
    await stopGroup(context.world, writer, 'deleted');
  }
  await stopRehearsal(context.world, writer.paths);
  const finished = await finishMerge(context, writer);
  return finished.ok ? deleteFiles(context, group, writer.state, force) : finished;
}

/** Worktrees go through git first: their folders alone would leave the user's repositories with stale entries. */
async function deleteFiles(
  context: Context,
  { root, groupId, paths }: GroupReference,
  state: GroupState | null,
  force: boolean,
): Promise<Result<void>> {
  const command = ['group', 'delete', groupId];
  const leftovers = await leftoversOf(context, paths, state);
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  const released = await releaseWorktrees(context, paths, leftovers, { force, command, tell });
  if (!released.ok) return released;
  deleteGroup(context.world, root, groupId);
  return ok(undefined);
}

function isDamage(failure: Failure): boolean {
  return failure.reason === 'corrupt-file' || failure.reason === 'newer-version';
}

/** Without a readable log there is no writer; the lock is taken by hand. */
async function deleteDamaged(context: Context, group: GroupReference, force: boolean): Promise<Result<void>> {
  const { world } = context;
  const { groupId, paths } = group;
  const lock = world.locks.tryLock(paths.lock, { identity: world.machine.self, runId: world.random.uuid() });
  if (lock === null)
    return fail('busy', `Group ${groupId} is held by another process.`, 'Try again when it has ended.');
  try {
    const hidden = hiddenDamagedWorker(world, groupId, paths);
    if (hidden) return hidden;
    await stopDamagedGroup(world, paths);
    await stopRehearsal(world, paths);
    const finished = await finishMerge(context, { paths, groupId });
    return finished.ok ? await deleteFiles(context, group, null, force) : finished;
  } finally {
    lock.release();
  }
}
