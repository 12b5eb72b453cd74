/** `session resume` and `session retry` of a group that nobody runs: the command becomes the runner for one session. */

import type { LoadedSession } from '../control/resolve.ts';
import { advise } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { resumeCommand } from '../core/plan/advice.ts';
import type { GroupState } from '../core/state.ts';
import { listTitles } from '../report/wording.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';
import { concludeRun, runHere } from './run-command.ts';

/** Fails when the session cannot start because others it depends on are not completed. */
export function checkStartable({ state, record }: LoadedSession): Result<void> {
  if (!state.group.config.respectDependencies) return ok(undefined);
  const unmet = record.definition.dependsOn.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  if (unmet.length === 0) return ok(undefined);
  const next = advise('Let the group go on with', resumeCommand(state));
  return fail('usage', `It waits for ${listTitles(state, unmet)}, which must complete first.`, next);
}

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
  const wish = { config: {}, output: 'text', retryFailed: false, only: [sessionId] } as const;
  const ran = await runHere(context, session, { ...wish, rehearse: rehearse ?? state.run?.rehearsal });
  if (!ran.ok) return ran;
  if (ran.value.kind !== 'settled') return concludeRun(context, session, ran.value);
  return ok(codeOf(ran.value.state, sessionId));
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}
