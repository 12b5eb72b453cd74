/** `session say`: a further message to a session; at once when it runs, else with its next attempt. */
import type { Command } from '@commander-js/extra-typings';
import { userMessage } from '../../../claude/control.ts';
import { changeGroup } from '../../../control/change-group.ts';
import { foreignWorker } from '../../../control/leftovers.ts';
import { askRunner, whileWaiting } from '../../../control/request.ts';
import { type LoadedSession, loadReferredSession } from '../../../control/resolve.ts';
import { recordCommand } from '../../../control/submit.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import { safeJson } from '../../../report/terminal-text.ts';
import { titleOf } from '../../../report/wording.ts';
import { messageEvent } from '../../../runner/request-answers.ts';
import { stopSession } from '../../../runner/stop-group.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
import { sessionPaths } from '../../../store/paths.ts';
import type { World } from '../../../world/world.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { readText } from '../../options/prompt-source.ts';

const example = `
Example:
  $ claude-code-agent session say auth-refactor/api "Use the staging database, not the local one."
  $ git diff | claude-code-agent session say auth-refactor/api -`;

/** What a pipe takes at once from a writer who does not stay: half of what it holds. */
const lineBytesMax = 32 * 1024;

export function define(command: Command, context: Context): void {
  command
    .description('Tells a session something. A running one reads it at its next step, others with their next attempt.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .argument('<text>', 'what to say; "-" reads it from standard input')
    .option('--json', 'one JSON document: {"group", "session", "heard"}, where heard is now or next-attempt')
    .addHelpText('after', example)
    .action((reference, text, { json }) => context.run(() => say(context, reference, text, json === true)));
}

/** When the session hears it. */
type Heard = 'now' | 'next-attempt';

async function say(context: Context, reference: string, given: string, json: boolean): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const text = await readText(context, given, 'The message');
  if (!text.ok) return text;
  const { groupId, sessionId, state } = session.value;
  const wish = { kind: 'say', sessionId, text: text.value } as const;
  const { world } = context;
  const change = changeGroup<Heard>(context, session.value, {
    direct: (writer) => sayDirectly(world, writer, wish),
    async viaRunner(runId) {
      const answer = await askRunner(world, session.value, runId, wish);
      if (answer === 'runner-gone' || !answer.ok) return answer;
      return ok(heard(loadReferredSession(context, reference), text.value));
    },
  });
  const said = await whileWaiting(context, session.value, change);
  if (!said.ok) return said;
  const title = titleOf(state, sessionId);
  const told = said.value === 'now' ? `Told session ${title}.` : `Session ${title} is told with its next attempt.`;
  context.stdout.line(json ? safeJson({ group: groupId, session: sessionId, heard: said.value }, 2) : told);
  return ok(exitCode.done);
}

/** The log tells whether it was kept for the next attempt; a session that is just starting hears it now. */
function heard(session: Result<LoadedSession>, text: string): Heard {
  if (!session.ok) return 'now';
  const { state, messages } = session.value.record;
  const isListening = state.status === 'running' && state.attempt.stopping === undefined;
  return messages.includes(text) && !isListening ? 'next-attempt' : 'now';
}

interface Message {
  readonly kind: 'say';
  readonly sessionId: string;
  readonly text: string;
}

/** Nobody runs the group: a worker that was left behind is told through its FIFO, which outlives its runner. */
async function sayDirectly(world: World, writer: GroupWriter, message: Message): Promise<Result<Heard>> {
  const { sessionId, text } = message;
  const record: SessionRecord | undefined = writer.state.sessions.get(sessionId);
  // One that its dead runner was stopping is not to begin another turn; it is told when it goes on.
  if (record?.state.status === 'running' && record.state.attempt.stopping === undefined) {
    const foreign = foreignWorker(world, writer);
    if (foreign) return foreign;
    const { process } = record.state.attempt;
    // One of several threads that a killed worker has left may still hold the other end for a moment.
    const isListening = process === undefined || world.processes.isAlive(process);
    const { fifo: path } = sessionPaths(writer.paths, sessionId);
    const fifo = isListening ? world.fifos.openWriter(path) : null;
    if (fifo !== null) {
      try {
        const line = userMessage(text, record.state.attempt.id, record.told?.length ?? 0);
        if (Buffer.byteLength(line) > lineBytesMax) return tooLong();
        writer.record([messageEvent(world, writer, sessionId, text)]);
        fifo.writeLine(line);
        return ok('now');
      } finally {
        fifo.close();
      }
    }
    // The worker has ended while nobody watched; how it ended decides whether there is a next attempt.
    await stopSession(world, writer, sessionId, 'user');
  }
  const recorded = recordCommand(world, writer, message);
  return recorded.ok ? ok('next-attempt') : recorded;
}

function tooLong(): Result<never> {
  const message = 'The message is longer than 32 KiB, and no runner is there to hand it over.';
  return fail('usage', message, 'Put the material into a file of the project and name its path instead.');
}
