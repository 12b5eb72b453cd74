/** `group resume`: like `group run`, and failed sessions are tried again. */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from '../context.ts';
import { defineRun } from '../run-command.ts';

const description = `Goes on with a paused, failed or interrupted group; failed sessions are tried again.
Paused sessions continue their conversation. Options and exit codes are those of: group run.`;

const example = `
Example:
  $ claude-code-agent group resume auth-refactor
  $ claude-code-agent group resume auth-refactor --max-budget-usd 20      after the budget was used up`;

export function define(command: Command, context: Context): void {
  defineRun(command, context, { description, example, retriesFailed: true });
}
