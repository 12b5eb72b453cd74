/** `group run`: starts a group, or goes on with a paused or interrupted one. */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from '../../context.ts';
import { defineRun } from '../../run-command.ts';

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
