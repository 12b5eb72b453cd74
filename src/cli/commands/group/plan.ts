/** `group plan`: what a run would do and need, and what it may cost. Starts nothing. */
import type { Command } from '@commander-js/extra-typings';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { isRehearsal } from '../../../core/state.ts';
import type { Context, Work } from '../../context.ts';
import { type PlanOptions, showPreview } from '../../plan-report.ts';

const example = `
Example:
  $ claude-code-agent group plan auth-refactor
  $ claude-code-agent group plan auth-refactor --prompts
  $ claude-code-agent group plan auth-refactor --json | jq .missing
The exit code is 1 when something is missing without which sessions would fail.`;

export function define(command: Command, context: Context): void {
  command
    .description('Shows the waves, the critical path, what is missing and what a run may cost. Starts nothing.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--prompts', 'show what each session will be told')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((reference, { prompts, json }) => {
      const options = { json: json === true, prompts: prompts === true };
      return context.run(() => plan(context, reference, options));
    });
}

async function plan(context: Context, reference: string, options: Omit<PlanOptions, 'rehearsal'>): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { root, state } = group.value;
  return showPreview(context, root, state, 'frozen', { ...options, rehearsal: isRehearsal(state) });
}
