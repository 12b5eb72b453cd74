/** `session retry`: tries one failed session again, if wanted with something to say to it. */

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
import { readText } from '../../options/prompt-source.ts';
import { printSession, runSession } from '../../run-session.ts';

const example = `
Example:
  $ claude-code-agent session retry auth-refactor/api
  $ claude-code-agent session retry auth-refactor/api --prompt "The tests need the database of docker compose."`;

export function define(command: Command, context: Context): void {
  command
    .description(`Tries a failed session again. A live runner is asked to start it when there is a slot; without one
this command runs the session, and no other, to its end.
Exit codes: 0 completed (or asked for), 1 failed again, 2 bad input, 3 paused.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--prompt <text>', 'said to the session besides its task; "-" reads it from standard input')
    .option('--rehearse [script]', 'the script with which the rehearsal goes on')
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => retry(context, reference, given)));
}

interface Given {
  readonly prompt?: string | undefined;
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

async function retry(context: Context, named: string, given: Given): Promise<Work> {
  const session = loadReferredSession(context, named);
  if (!session.ok) return session;
  const { state, sessionId, record } = session.value;
  const prompt =
    given.prompt === undefined ? ok(undefined) : await readText(context, given.prompt, 'The text of --prompt');
  if (!prompt.ok) return prompt;
  const startable = liveRunner(context.world, session.value) === null ? checkStartable(session.value) : ok(undefined);
  if (!startable.ok) return startable;
  const asked = submit(context, session.value, {
    kind: 'retry-session',
    sessionId,
    ...(prompt.value === undefined ? {} : { prompt: prompt.value }),
  });
  const granted = await whileWaiting(context, session.value, asked);
  if (!granted.ok) return granted;
  if (granted.value.by === 'log') return runSession(context, session.value, given);
  if (given.json) return printSession(context, session.value);
  const follow = commandText(['session', 'logs', sessionReference(state, record), '--follow']);
  const title = titleOf(state, sessionId);
  context.stdout.line(`Session ${title} is tried again as soon as there is a slot. Follow it: ${follow}`);
  return ok(exitCode.done);
}
