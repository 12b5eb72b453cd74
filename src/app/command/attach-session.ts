/** A session is kept for a person: stopped by the runner, or by stopping what a runner that died has left of it. */
import { ok } from '../../core/failure.ts';
import { stopSession } from '../../runner/stop-group.ts';
import { foreignWorker } from '../leftovers.ts';
import { stateOf, untilItRests } from './pause-session.ts';
import { meaningOf, recordCommand } from './record.ts';
import type { Way } from './way.ts';

export const attachWay: Way<'attach-session'> = {
  async direct(world, writer, command) {
    const { sessionId } = command;
    const possible = meaningOf(world, writer, command);
    if (!possible.ok) return possible;
    if (writer.state.sessions.get(sessionId)?.state.status === 'running') {
      const foreign = foreignWorker(world, writer, [sessionId]);
      if (foreign) return foreign;
      await stopSession(world, writer, sessionId, 'user');
    }
    const recorded = recordCommand(world, writer, command);
    return recorded.ok ? ok(stateOf(writer.state, sessionId)) : recorded;
  },
  answered: (world, group, runId, { seq }, { sessionId }) => untilItRests(world, group, runId, seq, sessionId),
};
