/** `group archive`, `delete` and `prune`, and `rm` for several groups at once. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { Leftover } from '../../../app/delivery/worktree-cleanup.ts';
import { pauseAndNotify } from '../../../app/pause-group.ts';
import {
  type Archived,
  archiveGroup,
  catchWriteErrors,
  deleteGroup,
  megabytes,
  type PruneOptions,
  type PrunePlan,
  planPrune,
  pruneGroup,
  refuseWhileRunning,
  remainingState,
} from '../../../app/removal.ts';
import { whileWaiting } from '../../../app/request.ts';
import {
  type GroupReference,
  groupReference,
  isHeld,
  loadWithRunner,
  resolveGroupToDestroy,
} from '../../../app/resolve.ts';
import { adviceText, advise, shellWord } from '../../../core/advice.ts';
import { describeFailure, type Failure, fail, ok } from '../../../core/failure.ts';
import type { GroupId } from '../../../core/group.ts';
import { groupStatuses } from '../../../core/status.ts';
import { repositoryDir } from '../../../git/worktrees/worktree.ts';
import { formatTable, plural, titled } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import {
  attempt,
  type CommandResult,
  type Context,
  confirmed,
  exitCode,
  need,
  refuse,
  refuseWith,
} from '../../context.ts';
import { parseAge, parseMegabytes, parseWhole } from '../../options/options.ts';

const archiveExample = `
Example:
  $ claude-code-agent group archive auth-refactor
  $ claude-code-agent group archive auth-refactor --force        discard unmerged work, and list it
  $ claude-code-agent group list --status archived`;

export function defineArchive(command: Command, context: Context): void {
  command
    .description(
      'Archive a completed, failed or paused group. It stays readable but cannot run again. Worktrees and ' +
        'branches with merged work are removed. Refuses if any work is not merged.',
    )
    .argument('<group>', 'id, unique prefix, or slug if only one group has it')
    .option('--force', 'also remove worktrees and branches with unmerged work')
    .option('--json', 'one JSON document: {"group", "removedWorktrees", "keptWorktrees"}')
    .addHelpText('after', archiveExample)
    .action((reference, given) =>
      context.run(async () => {
        const group = need(resolveGroupToDestroy(context, reference));
        const archived = need(await archiveGroup(context, group, given.force === true));
        say(context, archived, given.force === true);
        if (given.json) context.stdout.json(documentOf(archived));
      }),
    );
}

function documentOf({ state, tidied: { cleaned, kept } }: Archived): object {
  return {
    group: state.group.id,
    removedWorktrees: cleaned,
    keptWorktrees: kept.map(({ sessionId }) => sessionId),
  };
}

function say({ stderr }: Context, { state, wasArchived, tidied, leftovers }: Archived, force: boolean): void {
  const { id } = state.group;
  const line = (text: string): void => stderr.line(safeLine(text, lineColumns));
  line(wasArchived ? `Group ${id} is already archived.` : `Archived ${id}.`);
  const { cleaned, kept, notes } = tidied;
  if (cleaned.length > 0) line(`Removed ${plural(cleaned.length, 'worktree')}.`);
  for (const leftover of leftovers.filter(({ sessionId }) => cleaned.includes(sessionId))) {
    for (const lost of lostWith(leftover)) line(lost);
  }
  for (const note of notes) line(note);
  for (const { sessionId, why } of kept) line(`Kept the worktree of ${titleOf(state, sessionId)}. ${why}`);
  if (kept.length > 0) line(nextAdvice(id, force));
}

const lineColumns = 1000;
const namesShownMax = 10;

/** What `--force` discarded with a worktree. Git keeps unreferenced commits for some weeks. */
function lostWith({ title, candidate, standing }: Leftover): string[] {
  if (standing?.ok !== true) return [];
  const { branch, repository } = candidate;
  const { unmerged, loose, looseTips, tip, uncommitted, elsewhere } = standing.value;
  const back = (name: string, commit: string) =>
    `git -C ${shellWord(repositoryDir(repository))} branch ${shellWord(name)} ${commit}`;
  const lost: string[] = [];
  if (branch !== undefined && tip !== null && unmerged > 0 && elsewhere === null) {
    const what = `${plural(unmerged, 'unmerged commit')} of ${branch}, the last one ${tip}`;
    lost.push(`Discarded ${what}. To restore it within a few weeks: ${back(branch, tip)}`);
  }
  const [last] = looseTips;
  if (last !== undefined) {
    const what = `${plural(loose, 'commit')} on no branch, the last one ${last}`;
    const name = `${branch ?? title}-2`;
    lost.push(`Discarded with the worktree of ${title}: ${what}. To restore it: ${back(name, last)}`);
  }
  if (uncommitted.length > 0) {
    const shown = uncommitted.slice(0, namesShownMax).join(', ');
    const more = uncommitted.length > namesShownMax ? ', …' : '';
    lost.push(`Discarded permanently with the worktree of ${title}: uncommitted ${shown}${more}.`);
  }
  return lost;
}

/** The next step for worktrees that were kept. */
function nextAdvice(groupId: string, force: boolean): string {
  const archive = ['group', 'archive', groupId];
  if (force) return adviceText(advise('Then remove it with', archive));
  const sentence = 'Merge what you need with git merge and archive again. To discard the rest:';
  return adviceText(advise(sentence, [...archive, '--force']));
}

const deleteExample = `
Example:
  $ claude-code-agent group delete auth-refactor
  $ claude-code-agent group pause auth-refactor && claude-code-agent group delete auth-refactor
  $ claude-code-agent group delete 20260104-143022-auth-refactor --force`;

const noteColumns = 600;

export function defineDelete(command: Command, context: Context): void {
  command
    .description(
      'Delete a group with its transcripts and worktrees. Projects are not touched. Asks for confirmation, ' +
        'and refuses if a worktree has uncommitted work. Branches with unmerged commits are kept and listed. ' +
        'A running group must be paused first; --force does that.',
    )
    .argument('<group>', 'id, unique prefix, or slug if only one group has it')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; pause it and commit uncommitted work to its branch first')
    .option('--json', 'one JSON document: {"group"}, null when the answer was no')
    .addHelpText('after', deleteExample)
    .action((reference, given) =>
      context.run(() => deleteGroups(context, [reference], given, ([group = null]) => ({ group }))),
    );
}

export interface DeleteOptions {
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

export async function deleteGroups(
  context: Context,
  references: readonly string[],
  given: DeleteOptions,
  documentOf: (deleted: readonly GroupId[]) => object,
): Promise<CommandResult> {
  const groups = new Map<string, GroupReference>();
  for (const reference of references) {
    const group = need(resolveGroupToDestroy(context, reference));
    groups.set(group.groupId, group);
  }
  const deleted: GroupId[] = [];
  let first: Failure | undefined;
  for (const group of groups.values()) {
    const removed = await catchWriteErrors(group, () => attempt(() => remove(context, group, given)));
    if (!removed.ok) {
      const why = safeLine(removed.failure.message, noteColumns);
      if (groups.size > 1) context.stderr.line(`${remainingState(context, group)}: ${why}`);
      first ??= removed.failure;
      continue;
    }
    if (removed.value) deleted.push(group.groupId);
    context.stderr.line(removed.value ? `Deleted ${group.groupId}.` : 'Nothing was deleted.');
  }
  if (given.json) context.stdout.json(documentOf(deleted));
  if (first !== undefined) refuseWith(first);
}

/** False = the user declined. */
async function remove(
  context: Context,
  group: GroupReference,
  { yes, force: forced }: DeleteOptions,
): Promise<boolean> {
  const force = forced === true;
  if (force) await pauseFirst(context, group);
  else need(await refuseWhileRunning(context, group));
  if (!(await confirmed(context, question(context, group), force || yes === true))) return false;
  const command = ['group', 'delete', group.groupId];
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  need(await deleteGroup(context, group, { force, command, tell }));
  return true;
}

/** How long to wait for a runner that does not answer. */
const patienceMs = 10_000;

/** With --force, a live runner stops its sessions as for a pause, ends and releases the lock. */
async function pauseFirst(context: Context, group: GroupReference): Promise<void> {
  if (!isHeld(context.world, group)) return;
  context.stderr.line(`Pausing ${group.groupId}, which is running ...`);
  const paused = need(
    await whileWaiting(context, group, pauseAndNotify(context, group, 'now', { toDelete: true }), {
      afterMs: patienceMs,
      outcome: fail(
        'busy',
        'Its runner does not respond, so nothing was deleted.',
        'It is paused when its runner continues.',
      ),
    }),
  );
  context.stderr.lines(paused.warnings);
}

function question(context: Context, group: GroupReference): string {
  const { groupId } = group;
  const loaded = loadWithRunner(context.world, group);
  if (!loaded.ok) return `Delete group ${groupId}, which cannot be read, with all its files?`;
  return `Delete group ${groupId} with ${plural(loaded.value.state.sessions.size, 'session')} and all transcripts?`;
}

const removeExample = `
Example:
  $ claude-code-agent rm auth-refactor
  $ claude-code-agent rm @ @1 --yes        the two groups created last`;

export function defineRemove(command: Command, context: Context): void {
  command
    .description('Delete groups, like group delete. Deletes none if one of them does not exist.')
    .argument('<group...>', 'id, unique prefix, or slug if only one group has it')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; pause them and commit uncommitted work to its branch first')
    .option('--json', 'one JSON document: {"groups": ids of the deleted groups}')
    .addHelpText('after', removeExample)
    .action((references, given) =>
      context.run(() => deleteGroups(context, references, given, (groups) => ({ groups }))),
    );
}

const pruneExample = `
Example:
  $ claude-code-agent group prune --older-than 30d --dry-run
  $ claude-code-agent group prune --status archived --keep 10
  $ claude-code-agent group prune --larger-than 500 --older-than 7d --yes`;

export function definePrune(command: Command, context: Context): void {
  command
    .description(
      'Delete the groups that match all given conditions: no work is lost, and branches ' +
        'with unmerged commits are kept. Lists them and asks for confirmation. Running and paused groups are ' +
        'kept unless --status names them. Groups with a live runner, and groups whose branches others use, ' +
        'are always kept.',
    )
    .option('--older-than <time>', 'unchanged for this long, such as 12h or 30d', parseAge)
    .addOption(new Option('--status <status>', 'only groups with this status').choices([...groupStatuses, 'active']))
    .option('--larger-than <mb>', 'with more than this many MB of files', parseMegabytes)
    .option('--keep <n>', 'keep this many of the newest', parseWhole(0, 1_000_000))
    .option('--dry-run', 'show what would be deleted; change nothing')
    .option('-y, --yes', 'do not ask')
    .addOption(new Option('--force', 'the same').hideHelp())
    .option('--json', 'one JSON document: the groups, and why others are kept')
    .addHelpText('after', pruneExample)
    .action(({ olderThan, status, largerThan, keep, ...given }) => {
      const options: PruneOptions = { olderThanMs: olderThan, status, largerThanBytes: largerThan, keep };
      return context.run(() => prune(context, options, given));
    });
}

interface PruneCommandOptions {
  readonly dryRun?: true | undefined;
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function prune(
  context: Context,
  options: PruneOptions,
  { dryRun, yes, force, json }: PruneCommandOptions,
): Promise<CommandResult> {
  if (Object.values(options).every((value) => value === undefined)) {
    const next = 'Give --older-than, --status, --larger-than or --keep.';
    return refuse('usage', 'No condition was given.', next);
  }
  const root = need(context.root());
  const plan = await planPrune(context, root, options);
  if (!json) show(context, plan);
  if (dryRun || plan.toDelete.length === 0) {
    if (json) context.stdout.json({ groups: plan.toDelete, kept: plan.kept, deleted: [] });
    return;
  }
  const bytes = plan.toDelete.reduce((sum, one) => sum + one.bytes, 0);
  const question = `Delete ${plural(plan.toDelete.length, 'group')} (${megabytes(bytes)}) with all transcripts?`;
  const sure = await confirmed(context, question, yes === true || force === true);
  if (!sure) {
    context.stderr.line('Nothing was deleted.');
    return;
  }
  const deleted: GroupId[] = [];
  const failed: { id: GroupId; why: string }[] = [];
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  for (const one of plan.toDelete) {
    const group = groupReference(root, one.id);
    const work = catchWriteErrors(group, () => pruneGroup(context, group, one, tell));
    const gone = await whileWaiting(context, group, work);
    if (gone.ok) deleted.push(one.id);
    else {
      const why = describeFailure(gone.failure);
      failed.push({ id: one.id, why });
      tell(`${remainingState(context, group)}. ${why}`);
    }
  }
  if (json) context.stdout.json({ groups: plan.toDelete, kept: [...plan.kept, ...failed], deleted });
  else context.stderr.line(`Deleted ${plural(deleted.length, 'group')}.`);
  return ok(deleted.length === plan.toDelete.length ? exitCode.done : exitCode.failed);
}

function show({ stdout, stderr }: Context, { toDelete, kept }: PrunePlan): void {
  const columns = titled(['GROUP', 'SIZE', 'WHY'], 'SIZE');
  const rows = toDelete.map(({ id, bytes, why }) => [id, megabytes(bytes), why]);
  if (rows.length > 0) stdout.line(formatTable(columns, rows, stdout.style).join('\n'));
  else stderr.line('No groups match.');
  for (const { id, why } of kept) stderr.line(`${id} stays. ${safeLine(why, noteColumns)}`);
}
