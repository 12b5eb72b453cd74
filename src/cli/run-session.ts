/** `session resume` and `session retry` of a group that nobody runs: the command becomes the runner for one session. */

import { liveRunner } from '../control/live-runner.ts';
import { whileWaiting } from '../control/request.ts';
import type { LoadedSession } from '../control/resolve.ts';
import { checkStartable } from '../control/run/startable.ts';
import { submit } from '../control/submit.ts';
import { ok } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { sessionLabel } from '../core/id.ts';
import { type GroupState, isRehearsal } from '../core/state.ts';
import { titleOf } from '../report/wording.ts';
import type { CommandOf } from '../runner/request-answers.ts';
import type { Context, Work } from './context.ts';
import { exitCode } from './exit-code.ts';
import { concludeRun, runInTerminal } from './run-command.ts';

/** A live runner is asked to start it when there is a slot; without one this process runs it to its end. */
export async function startSession(
  context: Context,
  session: LoadedSession,
  command: CommandOf<'resume-session' | 'retry-session'>,
  rehearse: string | true | undefined,
): Promise<Work> {
  const { state, sessionId, record } = session;
  const startable = liveRunner(context.world, session) === null ? checkStartable(session) : ok(undefined);
  if (!startable.ok) return startable;
  const granted = await whileWaiting(context, session, submit(context, session, command));
  if (!granted.ok) return granted;
  if (granted.value.by === 'log') return runSession(context, session, rehearse);
  const reference = `${state.group.id}/${sessionLabel(sessionId, record.definition.name)}`;
  const follow = `claude-code-agent session logs ${reference} --follow`;
  const what = command.kind === 'retry-session' ? 'is tried again' : 'goes on';
  context.stdout.line(`Session ${titleOf(state, sessionId)} ${what} as soon as there is a slot. Follow it: ${follow}`);
  return ok(exitCode.done);
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
  const ran = await runInTerminal(context, session, {
    ...wish,
    rehearse: rehearse ?? (isRehearsal(state) || undefined),
  });
  if (!ran.ok) return ran;
  if (ran.value.kind !== 'settled') return concludeRun(context, session, ran.value);
  return ok(codeOf(ran.value.state, sessionId));
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}
