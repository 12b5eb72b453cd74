/** `session resume`: goes on with one paused session, in the same conversation. */

import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../../app/live-runner.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { defined } from '../../../core/defined.ts';
import type { Context, Work } from '../../context.ts';
import { parseMoney } from '../../options/option-values.ts';
import { runSession, startSession } from '../../run-command.ts';

const example = `
Example:
  $ claude-code-agent session resume auth-refactor/api
  $ claude-code-agent session resume auth-refactor/api --max-budget-usd 5     after it used up its own budget`;

export function define(command: Command, context: Context): void {
  command
    .description(`Goes on with a paused session in the same conversation. A live runner is asked to start it when there
is a slot; without one this command runs the session, and no other, to its end.
Exit codes: 0 completed (or asked for), 1 failed, 2 bad input, 3 paused again.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--max-budget-usd <usd>', "the session's own cap over all its attempts from now on", parseMoney)
    .option('--rehearse [script]', 'the script with which the rehearsal goes on')
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => resume(context, reference, given)));
}

interface Given {
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
  readonly maxBudgetUsd?: number | undefined;
}

async function resume(context: Context, named: string, { maxBudgetUsd, ...how }: Given): Promise<Work> {
  const session = loadReferredSession(context, named);
  if (!session.ok) return session;
  const { sessionId, record } = session.value;
  // What a dead runner left running needs no command, only a runner.
  const isLeft = record.state.status === 'running' && liveRunner(context.world, session.value) === null;
  if (isLeft && maxBudgetUsd === undefined) return runSession(context, session.value, how);
  const raised = defined({ maxBudgetUsd });
  return startSession(context, session.value, { kind: 'resume-session', sessionId, ...raised }, how);
}
