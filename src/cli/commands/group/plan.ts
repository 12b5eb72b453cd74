/** `group plan`: what a run would do and need, and what it may cost. Starts nothing. */
import type { Command } from '@commander-js/extra-typings';
import { loadReferredGroup } from '../../../control/resolve.ts';
import { isRehearsal } from '../../../core/state.ts';
import { frozenTemplates } from '../../../runner/place/generated-config.ts';
import type { Context, Work } from '../../context.ts';
import { type PlanWish, showPreview } from '../../plan-report.ts';

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
      const wish = { json: json === true, prompts: prompts === true };
      return context.run(() => plan(context, reference, wish));
    });
}

async function plan(context: Context, reference: string, wish: Omit<PlanWish, 'rehearsal'>): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const { root, state, paths } = group.value;
  const templates = frozenTemplates(context.world, paths);
  return showPreview(context, root, state, templates, { ...wish, rehearsal: isRehearsal(state) });
}
