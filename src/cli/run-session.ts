/** `session resume` and `session retry` of a group that nobody runs: the command becomes the runner for one session. */

import { liveRunner } from '../app/live-runner.ts';
import { whileWaiting } from '../app/request.ts';
import { type GroupReference, type LoadedSession, loadWithRunner } from '../app/resolve.ts';
import { checkStartable } from '../app/run/startable.ts';
import { type CommandOf, submit } from '../app/submit.ts';
import { commandText } from '../core/advice.ts';
import { ok } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { sessionReference } from '../core/plan/advice.ts';
import { type GroupState, isRehearsal } from '../core/state.ts';
import { safeJson } from '../view/terminal-text.ts';
import { titleOf } from '../view/wording.ts';
import { besideDocument, type Context, type Work } from './context.ts';
import { exitCode } from './exit-code.ts';
import { concludeRun, runInTerminal } from './run-command.ts';

/** `rehearse` is the script given by the user; a group that was begun as a rehearsal goes on as one in any case. */
interface How {
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

/** A live runner is asked to start it when there is a slot; without one this process runs it to its end. */
export async function startSession(
  context: Context,
  session: LoadedSession,
  command: CommandOf<'resume-session' | 'retry-session'>,
  how: How,
): Promise<Work> {
  const { state, sessionId, record } = session;
  const startable = liveRunner(context.world, session) === null ? checkStartable(session) : ok(undefined);
  if (!startable.ok) return startable;
  const granted = await whileWaiting(context, session, submit(context, session, command));
  if (!granted.ok) return granted;
  if (granted.value.by === 'log') return runSession(context, session, how);
  if (how.json) return printSession(context, session);
  const follow = commandText(['session', 'logs', sessionReference(state, record), '--follow']);
  const what = command.kind === 'retry-session' ? 'is tried again' : 'goes on';
  context.stdout.line(`Session ${titleOf(state, sessionId)} ${what} as soon as there is a slot. Follow it: ${follow}`);
  return ok(exitCode.done);
}

/** Runs the group with this session alone. The exit code tells about the session: 0 completed, 1 failed, 3 paused. */
export async function runSession(context: Context, session: LoadedSession, { rehearse, json }: How): Promise<Work> {
  const { sessionId, state } = session;
  const options = { config: {}, output: json ? 'quiet' : 'text', retryFailed: false, only: [sessionId] } as const;
  const ran = await runInTerminal(json ? besideDocument(context) : context, session, {
    ...options,
    rehearse: rehearse ?? (isRehearsal(state) || undefined),
  });
  if (!ran.ok) return ran;
  if (ran.value.kind !== 'settled') return concludeRun(context, session, ran.value);
  if (json) printSession(context, session);
  return ok(codeOf(ran.value.state, sessionId));
}

/** The document of commands that change a session: how it stands by now. */
export function printSession(context: Context, session: GroupReference & { readonly sessionId: SessionId }): Work {
  const { groupId, sessionId } = session;
  const loaded = loadWithRunner(context.world, session);
  if (!loaded.ok) return loaded;
  const status = loaded.value.state.sessions.get(sessionId)?.state.status;
  context.stdout.line(safeJson({ group: groupId, session: sessionId, status }, 2));
  return ok(exitCode.done);
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}
