/** Pausing one session: by the runner, or by stopping what a runner that died has left of it. */
import { ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { SessionState } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { stopSession } from '../../runner/stop-group.ts';
import type { World } from '../../system/world.ts';
import { foreignWorker } from '../leftovers.ts';
import type { GroupReference } from '../resolve.ts';
import { awaitState } from '../watch/follow-group.ts';
import { meaningOf } from './record.ts';
import type { Way } from './way.ts';

export const pauseSessionWay: Way<'pause-session'> = {
  async direct(world, writer, command) {
    const { sessionId } = command;
    const meaning = meaningOf(world, writer, command);
    if (!meaning.ok) return meaning;
    if (writer.state.sessions.get(sessionId)?.state.status === 'running') {
      const foreign = foreignWorker(world, writer, [sessionId]);
      if (foreign) return foreign;
      await stopSession(world, writer, sessionId, 'user');
    } else writer.record(meaning.value.events);
    return ok(stateOf(writer.state, sessionId));
  },
  answered: (world, group, runId, { seq }, { sessionId }) => untilItRests(world, group, runId, seq, sessionId),
};

/** How it stands when it runs no more, after event `seq`. */
export async function untilItRests(
  world: World,
  group: GroupReference,
  runId: string,
  seq: number,
  sessionId: SessionId,
): Promise<Result<SessionState> | 'runner-gone'> {
  const ended = await awaitState(world, group, runId, (state) => {
    const now = state.lastSeq >= seq ? stateOf(state, sessionId) : undefined;
    return now === undefined || now.status === 'running' ? null : now;
  });
  return ended === 'runner-gone' ? ended : ok(ended);
}

export function stateOf(state: GroupState, sessionId: SessionId): SessionState {
  // Removed by somebody else while it was being looked at: as if it had never run.
  return state.sessions.get(sessionId)?.state ?? { status: 'pending' };
}
