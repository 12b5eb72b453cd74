/** `group run`: starts a group, or goes on with a paused or interrupted one. */
import type { Command } from '@commander-js/extra-typings';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { isRehearsal } from '../../../core/state.ts';
import type { Context, Work } from '../../context.ts';
import { defineRun, type PlanOptions, showPreview } from '../../run-command.ts';

const description = `Runs a group until every session has completed, or nothing more can be done.
Goes on with a paused or interrupted group. Options given here hold for later runs until given again.
Ctrl-C pauses everything; twice leaves at once while the sessions go on.
Exit codes: 0 completed, 1 failed, 2 bad input, 3 paused, 4 another runner holds the group, 130 left.`;

const example = `
Example:
  $ claude-code-agent group run auth-refactor --concurrent 4 --max-budget-usd 10
  $ claude-code-agent group run auth-refactor --rehearse          try it without an account and without cost
  $ claude-code-agent group run auth-refactor --output json | jq -r .type`;

export function define(command: Command, context: Context): void {
  defineRun(command, context, { description, example, retriesFailed: false });
}

// `group plan`: what a run would do and need, and what it may cost. Starts nothing.

const planExample = `
Example:
  $ claude-code-agent group plan auth-refactor
  $ claude-code-agent group plan auth-refactor --prompts
  $ claude-code-agent group plan auth-refactor --json | jq .missing
The exit code is 1 when something is missing without which sessions would fail.`;

export function definePlan(command: Command, context: Context): void {
  command
    .description('Shows the waves, the critical path, what is missing and what a run may cost. Starts nothing.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--prompts', 'show what each session will be told')
    .option('--json', 'one JSON document')
    .addHelpText('after', planExample)
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
