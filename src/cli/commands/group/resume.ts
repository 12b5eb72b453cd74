/** `group resume`: like `group run`, and failed sessions are tried again; a frozen group goes on where it stands. */

import type { Command } from '@commander-js/extra-typings';
import { whileWaiting } from '../../../app/request.ts';
import { type GroupReference, loadWithRunner } from '../../../app/resolve.ts';
import type { RunConfig } from '../../../app/run/run-options.ts';
import { submit } from '../../../app/submit.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { defineRun } from '../../run-command.ts';

const description = `Goes on with a paused, failed or interrupted group; failed sessions are tried again.
Paused sessions continue their conversation. Options and exit codes are those of: group run.
A group that was frozen goes on under its own runner, except sessions that were paused by name; the command returns at
once.`;

const example = `
Example:
  $ claude-code-agent group resume auth-refactor
  $ claude-code-agent group resume auth-refactor --max-budget-usd 20      after the budget was used up`;

export function define(command: Command, context: Context): void {
  defineRun(command, context, { description, example, retriesFailed: true, before: thaw });
}

/** null when the group is not frozen under a live runner, so that it has to be run. */
async function thaw(context: Context, group: GroupReference, config: RunConfig): Promise<Work | null> {
  const { world } = context;
  const loaded = loadWithRunner(world, group);
  if (!loaded.ok) return loaded;
  const { hadRunner, state } = loaded.value;
  if (!hadRunner || state.frozenUntil === undefined) return null;
  const thawed = await whileWaiting(context, group, submit(context, group, { kind: 'thaw' }));
  if (!thawed.ok) return thawed;
  // The runner died while everything was frozen: what it left is taken over and thawed by a run.
  if (thawed.value === 'needs-runner') return null;
  context.stdout.line(`Group ${group.groupId} goes on. Watch it: ${commandText(['group', 'watch', group.groupId])}`);
  if (Object.keys(config).length > 0) {
    context.stderr.line('Its settings stay as they are: options hold from the next run on, when they are given again.');
  }
  return ok(exitCode.done);
}
