/** `session resume`: goes on with one paused session, in the same conversation. */

import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../../control/live-runner.ts';
import { whileWaiting } from '../../../control/request.ts';
import { loadReferredSession } from '../../../control/resolve.ts';
import { checkStartable } from '../../../control/run/startable.ts';
import { submit } from '../../../control/submit.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { sessionReference } from '../../../core/plan/advice.ts';
import { titleOf } from '../../../report/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseMoney } from '../../options/option-values.ts';
import { printSession, runSession } from '../../run-session.ts';

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
  const { state, sessionId, record } = session.value;
  if (liveRunner(context.world, session.value) === null) {
    // What a dead runner left running needs no command, only a runner.
    if (record.state.status === 'running' && maxBudgetUsd === undefined) {
      return runSession(context, session.value, how);
    }
    const startable = checkStartable(session.value);
    if (!startable.ok) return startable;
  }
  const asked = submit(context, session.value, {
    kind: 'resume-session',
    sessionId,
    ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
  });
  const granted = await whileWaiting(context, session.value, asked);
  if (!granted.ok) return granted;
  if (granted.value.by === 'log') return runSession(context, session.value, how);
  if (how.json) return printSession(context, session.value);
  const follow = commandText(['session', 'logs', sessionReference(state, record), '--follow']);
  context.stdout.line(`Session ${titleOf(state, sessionId)} goes on as soon as there is a slot. Follow it: ${follow}`);
  return ok(exitCode.done);
}
