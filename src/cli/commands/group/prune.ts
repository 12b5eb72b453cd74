/** `group prune`: deletes groups that nobody needs any more, by age, status and size. */
import { type Command, Option } from '@commander-js/extra-typings';
import { referenceTo } from '../../../app/groups.ts';
import {
  type Doomed,
  megabytes,
  type PruneOptions,
  type PrunePlan,
  planPrune,
  pruneGroup,
  whatStays,
  withinGroup,
} from '../../../app/removal/prune-groups.ts';
import { whileWaiting } from '../../../app/request.ts';
import { describeFailure, fail, ok } from '../../../core/failure.ts';
import type { GroupId } from '../../../core/group.ts';
import { groupStatuses } from '../../../core/status.ts';
import { formatTable, plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseAge, parseKept, parseMegabytes } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent group prune --older-than 30d --dry-run
  $ claude-code-agent group prune --status archived --keep 10
  $ claude-code-agent group prune --larger-than 500 --older-than 7d --yes`;

const noteColumns = 600;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Deletes groups of which all is true that is given, as `delete` does: no work is lost, branches with ' +
        'unmerged commits stay. Shows which ones and why, then asks. Running and paused groups stay unless --status ' +
        'names them; groups that are being run, or on whose branches others build, stay in any case.',
    )
    .option('--older-than <time>', 'nothing happened to them for so long, such as 12h or 30d', parseAge)
    .addOption(new Option('--status <status>', 'only groups of this status').choices([...groupStatuses, 'active']))
    .option('--larger-than <mb>', 'their files take more than so many MB', parseMegabytes)
    .option('--keep <n>', 'so many of the newest stay', parseKept)
    .option('--dry-run', 'only show which ones')
    .option('-y, --yes', 'do not ask')
    .addOption(new Option('--force', 'the same').hideHelp())
    .option('--json', 'one JSON document: the groups, and why others stay')
    .addHelpText('after', example)
    .action(({ olderThan, status, largerThan, keep, ...given }) => {
      const options: PruneOptions = { olderThanMs: olderThan, status, largerThanBytes: largerThan, keep };
      return context.run(() => prune(context, options, given));
    });
}

interface Given {
  readonly dryRun?: true | undefined;
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function prune(context: Context, options: PruneOptions, { dryRun, yes, force, json }: Given): Promise<Work> {
  if (Object.values(options).every((value) => value === undefined)) {
    const next = 'Give --older-than, --status, --larger-than or --keep.';
    return fail('usage', 'Nothing says which groups are to go.', next);
  }
  const root = context.root();
  if (!root.ok) return root;
  const plan = await planPrune(context, root.value, options);
  if (!json) show(context, plan);
  if (dryRun || plan.doomed.length === 0) {
    if (json) context.stdout.line(safeJson({ groups: plan.doomed, kept: plan.kept, deleted: [] }, 2));
    return ok(exitCode.done);
  }
  const bytes = plan.doomed.reduce((sum, one) => sum + one.bytes, 0);
  const question = `Delete ${plural(plan.doomed.length, 'group')} (${megabytes(bytes)}) with all transcripts?`;
  const sure = await confirmed(context, question, yes === true || force === true);
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was deleted.');
    return ok(exitCode.done);
  }
  const { deleted, failed } = await deleteAll(context, root.value, plan.doomed);
  if (json) context.stdout.line(safeJson({ groups: plan.doomed, kept: [...plan.kept, ...failed], deleted }, 2));
  else context.stderr.line(`Deleted ${plural(deleted.length, 'group')}.`);
  return ok(deleted.length === plan.doomed.length ? exitCode.done : exitCode.failed);
}

function show({ stdout, stderr }: Context, { doomed, kept }: PrunePlan): void {
  const columns = [{ title: 'GROUP' }, { title: 'SIZE', align: 'right' }, { title: 'WHY' }] as const;
  const rows = doomed.map(({ id, bytes, why }) => [id, megabytes(bytes), why]);
  if (rows.length > 0) stdout.line(formatTable(columns, rows, stdout.style).join('\n'));
  else stderr.line('There are no such groups.');
  for (const { id, why } of kept) stderr.line(`${id} stays. ${safeLine(why, noteColumns)}`);
}

/** `failed`: those that are not gone, of which it is said why. */
async function deleteAll(
  context: Context,
  root: string,
  doomed: readonly Doomed[],
): Promise<{ readonly deleted: GroupId[]; readonly failed: PrunePlan['kept'] }> {
  const deleted: GroupId[] = [];
  const failed: { id: GroupId; why: string }[] = [];
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  for (const one of doomed) {
    const group = referenceTo(root, one.id);
    const work = withinGroup(context, group, () => pruneGroup(context, group, one, tell));
    const gone = await whileWaiting(context, group, work);
    if (gone.ok) {
      deleted.push(one.id);
      continue;
    }
    const why = describeFailure(gone.failure);
    failed.push({ id: one.id, why });
    tell(`${whatStays(context, group)}. ${why}`);
  }
  return { deleted, failed };
}
