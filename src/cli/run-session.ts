/** `session resume` and `session retry` of a group that nobody runs: the command becomes the runner for one session. */

import type { GroupReference, LoadedSession } from '../control/resolve.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import { safeJson } from '../report/terminal-text.ts';
import { listTitles, resumeLine } from '../report/wording.ts';
import { loadGroup } from '../store/group-store.ts';
import { besideDocument, type Context, type Work } from './context.ts';
import { exitCode } from './exit-code.ts';
import { concludeRun, runHere } from './run-command.ts';

/** Fails when the session cannot start because others it depends on are not completed. */
export function checkStartable({ state, record }: LoadedSession): Result<void> {
  if (!state.group.config.respectDependencies) return ok(undefined);
  const unmet = record.definition.dependsOn.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  if (unmet.length === 0) return ok(undefined);
  const next = `Let the group go on with: ${resumeLine(state)}`;
  return fail('usage', `It waits for ${listTitles(state, unmet)}, which must complete first.`, next);
}

/** `rehearse` is the script given by the user; a group that was begun as a rehearsal goes on as one in any case. */
interface How {
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

/** Runs the group with this session alone. The exit code tells about the session: 0 completed, 1 failed, 3 paused. */
export async function runSession(context: Context, session: LoadedSession, { rehearse, json }: How): Promise<Work> {
  const { sessionId, state } = session;
  const wish = { config: {}, output: json ? 'quiet' : 'text', retryFailed: false, only: [sessionId] } as const;
  const ran = await runHere(json ? besideDocument(context) : context, session, {
    ...wish,
    rehearse: rehearse ?? state.run?.rehearsal,
  });
  if (!ran.ok) return ran;
  if (ran.value.kind !== 'settled') return concludeRun(context, session, ran.value);
  if (json) printSession(context, session);
  return ok(codeOf(ran.value.state, sessionId));
}

/** The document of commands that change a session: how it stands by now. */
export function printSession(context: Context, session: GroupReference & { readonly sessionId: SessionId }): Work {
  const { root, groupId, sessionId } = session;
  const state = loadGroup(context.world, root, groupId);
  if (!state.ok) return state;
  const status = state.value.sessions.get(sessionId)?.state.status;
  context.stdout.line(safeJson({ group: groupId, session: sessionId, status }, 2));
  return ok(exitCode.done);
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}
