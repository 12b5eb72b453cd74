/** `session list`: the sessions of one group, in dependency order. */
import type { Command } from '@commander-js/extra-typings';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { standingOf } from '../../../app/watch/live-view.ts';
import { ok } from '../../../core/failure.ts';
import { planOf } from '../../../core/plan/plan.ts';
import { groupProgress } from '../../../core/progress.ts';
import { sessionTable } from '../../../view/summary.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent session list auth-refactor
  $ claude-code-agent session list auth-refactor --json | jq -r '.[] | select(.status == "failed") | .id'`;

export function define(command: Command, context: Context): void {
  command
    .description('Lists the sessions of a group in dependency order.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--json', 'one JSON document: an array of SessionProgress')
    .addHelpText('after', example)
    .action((reference, { json }) => context.run(() => list(context, reference, json === true)));
}

function list(context: Context, reference: string, json: boolean): Work {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { state } = group.value;
  const standing = standingOf(context.world, group.value);
  const { live, atMs, verdicts } = standing;
  const order = planOf(state).graph.order;
  if (json) {
    const byId = new Map(groupProgress(state, live, atMs, verdicts).sessions.map((one) => [one.id, one]));
    context.stdout.line(
      safeJson(
        order.map((id) => byId.get(id)),
        2,
      ),
    );
  } else {
    const { style, isTerminal, columns } = context.stdout;
    const options = { style, columns: isTerminal ? columns : undefined, nowMs: atMs };
    for (const line of sessionTable(state, standing, order, options)) context.stdout.line(line);
  }
  return ok(exitCode.done);
}
