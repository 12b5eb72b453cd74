/** Telling a session something: through its runner, or into the pipe of a worker that a runner has left behind. */
import { userMessage } from '../../claude/control.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type CommandOf, messageEvent } from '../../runner/request-answers.ts';
import { stopSession } from '../../runner/stop-group.ts';
import { loadGroup } from '../../store/group-store.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { speaks } from '../../worker/adopt.ts';
import { foreignWorker } from '../leftovers.ts';
import { meaningOf, recordCommand } from './record.ts';
import type { Special, Way } from './way.ts';

/** What a pipe takes at once from a writer who does not stay: half of what it holds. */
const lineBytesMax = 32 * 1024;

type Heard = Special['say'];

export const sayWay: Way<'say'> = {
  direct: sayDirectly,
  answered(world, { root, groupId }, _runId, _answer, { sessionId, text }) {
    const state = loadGroup(world, root, groupId);
    const record = state.ok ? state.value.sessions.get(sessionId) : undefined;
    return ok(record === undefined ? 'now' : heard(record, text));
  },
};

/** The log tells whether it was kept for the next attempt; a session that is just starting hears it now. */
function heard({ state, messages }: SessionRecord, text: string): Heard {
  const isListening = state.status === 'running' && state.attempt.stopping === undefined;
  return messages.includes(text) && !isListening ? 'next-attempt' : 'now';
}

/** Nobody runs the group: a worker that was left behind is told through its FIFO, which outlives its runner. */
async function sayDirectly(world: World, writer: GroupWriter, command: CommandOf<'say'>): Promise<Result<Heard>> {
  const { sessionId, text } = command;
  const possible = meaningOf(world, writer, command);
  if (!possible.ok) return possible;
  const record: SessionRecord | undefined = writer.state.sessions.get(sessionId);
  // One that its dead runner was stopping is not to begin another turn; it is told when it goes on.
  if (record?.state.status === 'running' && record.state.attempt.stopping === undefined) {
    const foreign = foreignWorker(world, writer, [sessionId]);
    if (foreign) return foreign;
    const { attempt } = record.state;
    const { process } = attempt;
    const { fifo: path, transcript } = sessionPaths(writer.paths, sessionId);
    // One of several threads that a killed worker has left may still hold the other end for a moment.
    const isAlive = process !== undefined && world.processes.isAlive(process);
    // A worker that its runner did not live to tell its task would take this for it.
    const fifo = isAlive && speaks(world, attempt, transcript) ? world.fifos.openWriter(path) : null;
    if (fifo !== null) {
      try {
        const line = userMessage(text, attempt.id, record.told?.length ?? 0);
        if (Buffer.byteLength(line) > lineBytesMax) return tooLong();
        writer.record([messageEvent(world, writer, sessionId, text)]);
        fifo.writeLine(line);
        return ok('now');
      } finally {
        fifo.close();
      }
    }
    // It has ended while nobody watched, and how decides whether there is a next attempt; or it begins anew.
    await stopSession(world, writer, sessionId, 'user');
  }
  const recorded = recordCommand(world, writer, command);
  return recorded.ok ? ok('next-attempt') : recorded;
}

function tooLong(): Result<never> {
  const message = 'The message is longer than 32 KiB, and no runner is there to hand it over.';
  return fail('usage', message, 'Put the material into a file of the project and name its path instead.');
}
