/** `group merge`: hands the work of a group over to the branches it came from, in every repository or in none. */
import type { Command } from '@commander-js/extra-typings';
import { type MergeOptions, mergeGroup } from '../../../app/delivery/merge.ts';
import { isIncomplete } from '../../../app/delivery/plan.ts';
import { resolveGroup } from '../../../app/resolve.ts';
import { changeGroup } from '../../../app/submit.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { mayHandOver, showMerge } from '../../merge-report.ts';

const example = `
Everything is merged in scratch worktrees first, and each session's acceptance command is run there. Only if all of
that goes well the branches move; a checkout of such a branch follows, or is refused while it holds changes.

Example:
  $ claude-code-agent group merge auth-refactor --dry-run
  $ claude-code-agent group merge auth-refactor
  $ claude-code-agent group merge auth-refactor --into integration`;

export function define(command: Command, context: Context): void {
  command
    .description('Merges the work of all sessions, in the order of the graph: in all repositories, or in none.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--into <branch>', 'branch that takes the work in every repository; else the one it began from')
    .option('--partial', 'merge what is completed although other sessions are not')
    .option('--dry-run', 'say what would be merged into what, and do nothing')
    .option('-y, --yes', 'merge the work of a rehearsal, which no model has done, without being asked')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((reference, { into, partial, dryRun, yes, json }) =>
      context.run(() =>
        merge(
          context,
          reference,
          { ...defined({ into }), partial: partial === true, dryRun: dryRun === true },
          { yes: yes === true, json: json === true },
        ),
      ),
    );
}

interface Manner {
  readonly yes: boolean;
  readonly json: boolean;
}

async function merge(context: Context, reference: string, options: MergeOptions, manner: Manner): Promise<Work> {
  const { yes, json } = manner;
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  const { dryRun, partial } = options;
  const sure = await mayHandOver(context, group.value, { what: 'Merge', dryRun, partial, yes });
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was merged.');
    return ok(exitCode.done);
  }
  const report = await changeGroup(context, group.value, {
    direct: (writer) => mergeGroup(context, writer, options),
  });
  if (!report.ok) return report;
  showMerge(context, group.value.groupId, report.value, json);
  const { outcome, mergePlan } = report.value;
  if (outcome === 'interrupted') return ok(exitCode.interrupted);
  return ok(isIncomplete(mergePlan, outcome !== 'nothing') ? exitCode.failed : exitCode.done);
}
