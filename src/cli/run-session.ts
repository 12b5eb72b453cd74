/** `session resume` and `session retry` of a group that nobody runs: the command becomes the runner for one session. */

import type { LoadedSession } from '../control/resolve.ts';
import { ok } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';
import { concludeRun, runInTerminal } from './run-command.ts';

/**
 * Runs the group with this session alone. The exit code tells about the session: 0 completed, 1 failed, 3 paused.
 * `rehearse` is the script given by the user; a group that was begun as a rehearsal goes on as one in any case.
 */
export async function runSession(
  context: Context,
  session: LoadedSession,
  rehearse: string | true | undefined,
): Promise<Work> {
  const { sessionId, state } = session;
  const options = { config: {}, output: 'text', retryFailed: false, only: [sessionId] } as const;
  const ran = await runInTerminal(context, session, { ...options, rehearse: rehearse ?? state.run?.rehearsal });
  if (!ran.ok) return ran;
  if (ran.value.kind !== 'settled') return concludeRun(context, session, ran.value);
  return ok(codeOf(ran.value.state, sessionId));
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}
