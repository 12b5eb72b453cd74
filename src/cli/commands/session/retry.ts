/** `session retry`: tries one failed session again, if wanted with something to say to it. */

import type { Command } from '@commander-js/extra-typings';
import { loadReferredSession } from '../../../app/resolve.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import type { Context, Work } from '../../context.ts';
import { readText } from '../../options/prompt-source.ts';
import { startSession } from '../../run-command.ts';

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
  const prompt =
    given.prompt === undefined ? ok(undefined) : await readText(context, given.prompt, 'The text of --prompt');
  if (!prompt.ok) return prompt;
  const { sessionId } = session.value;
  const said = defined({ prompt: prompt.value });
  return startSession(context, session.value, { kind: 'retry-session', sessionId, ...said }, given);
}
