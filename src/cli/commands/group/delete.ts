/** `group delete`: removes a group with all its files, after its last worker has ended. */
import type { Command } from '@commander-js/extra-typings';
import { pauseAndTell } from '../../../app/pause-group.ts';
import { deleteGroup, refuseWhileRunning } from '../../../app/removal/delete-group.ts';
import { whatStays, withinGroup } from '../../../app/removal/prune-groups.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type GroupReference, isHeld, loadWithRunner, resolveGroupToDestroy } from '../../../app/resolve.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { GroupId } from '../../../core/group.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
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
    .argument('<group>', 'id, unique prefix or slug; of several groups of one slug the id')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; pause it and commit what is in no commit on its branch first')
    .option('--json', 'one JSON document: {"group"}, null when the answer was no')
    .addHelpText('after', example)
    .action((reference, given) =>
      context.run(() => deleteGroups(context, [reference], given, ([group = null]) => ({ group }))),
    );
}

export interface DeleteOptions {
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

/** One after the other, also when one of them cannot be deleted; none, when one of them is not known for certain. */
export async function deleteGroups(
  context: Context,
  references: readonly string[],
  given: DeleteOptions,
  documentOf: (deleted: readonly GroupId[]) => object,
): Promise<Work> {
  const groups = new Map<string, GroupReference>();
  for (const reference of references) {
    const group = resolveGroupToDestroy(context, reference);
    if (!group.ok) return group;
    groups.set(group.value.groupId, group.value);
  }
  const deleted: GroupId[] = [];
  let first: Result<never> | null = null;
  for (const group of groups.values()) {
    const removed = await withinGroup(context, group, () => remove(context, group, given));
    if (!removed.ok) {
      const why = safeLine(removed.failure.message, noteColumns);
      if (groups.size > 1) context.stderr.line(`${whatStays(context, group)}: ${why}`);
      first ??= removed;
      continue;
    }
    if (removed.value) deleted.push(group.groupId);
    context.stderr.line(removed.value ? `Deleted ${group.groupId}.` : 'Nothing was deleted.');
  }
  if (given.json) context.stdout.line(safeJson(documentOf(deleted), 2));
  return first ?? ok(exitCode.done);
}

/** False when the person who was asked said no. */
async function remove(
  context: Context,
  group: GroupReference,
  { yes, force: forced }: DeleteOptions,
): Promise<Result<boolean>> {
  const force = forced === true;
  const free = await (force ? pauseFirst(context, group) : refuseWhileRunning(context, group));
  if (!free.ok) return free;
  const sure = await confirmed(context, question(context, group), force || yes === true);
  if (!sure.ok || !sure.value) return sure;
  const command = ['group', 'delete', group.groupId];
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  const deleted = await deleteGroup(context, group, { force, command, tell });
  return deleted.ok ? ok(true) : deleted;
}

/** A runner that has not answered for so long is not waited for any more. */
const patienceMs = 10_000;

/** Whoever insists has a live runner stop its sessions as a pause does, so that it ends and gives up the lock. */
async function pauseFirst(context: Context, group: GroupReference): Promise<Result<void>> {
  if (!isHeld(context.world, group)) return ok(undefined);
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
    const { reason } = loaded.failure;
    const whats = { 'newer-version': 'group of a newer version', 'older-version': 'group of an older version' };
    const what = whats[reason as keyof typeof whats] ?? 'damaged group';
    return `Delete the ${what} ${groupId} with all its files?`;
  }
  return `Delete group ${groupId} with ${plural(loaded.value.state.sessions.size, 'session')} and all transcripts?`;
}

// `rm`: `group delete` for several groups at once.

const removeExample = `
Example:
  $ claude-code-agent rm auth-refactor
  $ claude-code-agent rm @ @1 --yes        the group created last, and the one before it`;

export function defineRemove(command: Command, context: Context): void {
  command
    .description('Deletes groups as group delete does, one after the other; none while one of them is not known.')
    .argument('<group...>', 'id, unique prefix or slug; of several groups of one slug the id')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; pause them and commit what is in no commit on its branch first')
    .option('--json', 'one JSON document: {"groups": ids of those that were deleted}')
    .addHelpText('after', removeExample)
    .action((references, given) =>
      context.run(() => deleteGroups(context, references, given, (groups) => ({ groups }))),
    );
}
