/** `group delete`: removes a group with all its files, after its last worker has ended. */
import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../../control/live-runner.ts';
import { pauseAndTell } from '../../../control/pause-group.ts';
import { whileWaiting } from '../../../control/request.ts';
import { type GroupReference, loadWithRunner, resolveGroup } from '../../../control/resolve.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { clearLock, deleteGroup, refuseWhileRunning } from '../../../delivery/removal/delete-group.ts';
import { plural } from '../../../report/format.ts';
import { safeLine } from '../../../report/terminal-text.ts';
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
  if (force) clearLock(context.world, group.value);
  const free = await (force ? pauseFirst(context, group.value) : refuseWhileRunning(context, group.value));
  if (!free.ok) return free;
  const sure = await confirmed(context, question(context, group.value), force);
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was deleted.');
    return ok(exitCode.done);
  }
  const command = `claude-code-agent group delete ${groupId}`;
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  const deleted = await deleteGroup(context, group.value, { force, command, tell });
  if (!deleted.ok) return deleted;
  context.stderr.line(`Deleted ${groupId}.`);
  return ok(exitCode.done);
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

function question(context: Context, group: GroupReference): string {
  const { groupId } = group;
  const loaded = loadWithRunner(context.world, group);
  if (!loaded.ok) {
    const what = loaded.failure.reason === 'newer-version' ? 'group of a newer version' : 'damaged group';
    return `Delete the ${what} ${groupId} with all its files?`;
  }
  return `Delete group ${groupId} with ${plural(loaded.value.state.sessions.size, 'session')} and all transcripts?`;
}
