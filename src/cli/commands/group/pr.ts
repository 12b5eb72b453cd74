/** `group pr`: pushes the work of a group, one branch for each repository, and creates pull requests with gh. */
import type { Command } from '@commander-js/extra-typings';
import { isIncomplete } from '../../../app/delivery/plan.ts';
import { type ProposalOptions, proposeGroup } from '../../../app/delivery/pull-request.ts';
import { resolveGroup } from '../../../app/resolve.ts';
import { changeGroup } from '../../../app/submit.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { mayHandOver } from '../../merge-report.ts';
import { showCommands, showProposal } from '../../proposal-report.ts';

const example = `
The work is merged and accepted in a scratch worktree, as group merge does it, and pushed to the branch cca/<slug>. No
branch of yours moves. Run again, it adds what is new and brings the text of its pull requests up to date.

Example:
  $ claude-code-agent group pr auth-refactor --dry-run
  $ claude-code-agent group pr auth-refactor --draft`;

export function define(command: Command, context: Context): void {
  command
    .description('Pushes the work of all sessions and creates one pull request for each repository, through gh.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--draft', 'create drafts')
    .option('--into <branch>', 'branch for which it is proposed in every repository; else the one it began from')
    .option('--partial', 'propose what is completed although other sessions are not')
    .option('--dry-run', 'print the commands and do nothing')
    .option('-y, --yes', 'propose the work of a rehearsal, which no model has done, without being asked')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((reference, { draft, into, partial, dryRun, yes, json }) =>
      context.run(() =>
        propose(
          context,
          reference,
          {
            ...defined({ into }),
            partial: partial === true,
            dryRun: dryRun === true,
            draft: draft === true,
          },
          { yes: yes === true, json: json === true },
        ),
      ),
    );
}

interface Manner {
  readonly yes: boolean;
  readonly json: boolean;
}

async function propose(context: Context, reference: string, options: ProposalOptions, manner: Manner): Promise<Work> {
  const { yes, json } = manner;
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  const { dryRun, partial } = options;
  const sure = await mayHandOver(context, group.value, { what: 'Propose', dryRun, partial, yes });
  if (!sure.ok) return sure;
  if (!sure.value) {
    context.stderr.line('Nothing was pushed.');
    return ok(exitCode.done);
  }
  return changeGroup(context, group.value, {
    direct: async (writer): Promise<Work> => {
      const report = await proposeGroup(context, writer, options);
      if (!report.ok) return report;
      const { outcome } = report.value;
      if (outcome === 'planned') showCommands(context, writer, report.value, { draft: options.draft, json });
      else showProposal(context, group.value.groupId, report.value, json);
      if (outcome === 'interrupted') return ok(exitCode.interrupted);
      return ok(isIncomplete(report.value.mergePlan, outcome !== 'nothing') ? exitCode.failed : exitCode.done);
    },
  });
}
