/** `session say`: a further message to a session; at once when it runs, else with its next attempt. */
import type { Command } from '@commander-js/extra-typings';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { submit } from '../../../app/submit.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { readText } from '../../options/prompt-source.ts';

const example = `
Example:
  $ claude-code-agent session say auth-refactor/api "Use the staging database, not the local one."
  $ git diff | claude-code-agent session say auth-refactor/api -`;

export function define(command: Command, context: Context): void {
  command
    .description('Tells a session something. A running one reads it at its next step, others with their next attempt.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .argument('<text>', 'what to say; "-" reads it from standard input')
    .option('--json', 'one JSON document: {"group", "session", "heard"}, where heard is now or next-attempt')
    .addHelpText('after', example)
    .action((reference, text, { json }) => context.run(() => say(context, reference, text, json === true)));
}

async function say(context: Context, reference: string, given: string, json: boolean): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const text = await readText(context, given, 'The message');
  if (!text.ok) return text;
  const { groupId, sessionId, state } = session.value;
  const change = submit(context, session.value, { kind: 'say', sessionId, text: text.value });
  const said = await whileWaiting(context, session.value, change);
  if (!said.ok) return said;
  const title = titleOf(state, sessionId);
  const told = said.value === 'now' ? `Told session ${title}.` : `Session ${title} is told with its next attempt.`;
  context.stdout.line(json ? safeJson({ group: groupId, session: sessionId, heard: said.value }, 2) : told);
  return ok(exitCode.done);
}
