/** `session pause`: stops one session so that it can be resumed; the others go on. */

import type { Command } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { foreignWorker } from '../../../control/leftovers.ts';
import { liveRunner } from '../../../control/live-runner.ts';
import { askRunner, whileWaiting } from '../../../control/request.ts';
import { type LoadedSession, loadReferredSession } from '../../../control/resolve.ts';
import { recordCommand } from '../../../control/submit.ts';
import { awaitState } from '../../../control/watch/await-state.ts';
import { commandText } from '../../../core/advice.ts';
import { ok, type Result } from '../../../core/failure.ts';
import { resumeSessionCommand, runCommand } from '../../../core/plan/advice.ts';
import type { SessionState } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import { titleOf } from '../../../report/wording.ts';
import { stopSession } from '../../../runner/stop-group.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
import type { World } from '../../../world/world.ts';
import type { Context, Work } from '../../context.ts';
import { type ExitCode, exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent session pause auth-refactor/api
  $ claude-code-agent session resume auth-refactor/api`;

const sentenceColumnsMax = 400;

export function define(command: Command, context: Context): void {
  command
    .description(`Pauses a session and returns when it is paused; the other sessions of its group go on.
One that has not started yet is held back.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .addHelpText('after', example)
    .action((reference) => context.run(() => pause(context, reference)));
}

async function pause(context: Context, reference: string): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const { world } = context;
  const ended = await changeGroup<SessionState>(context, session.value, {
    direct: (writer) => pauseDirectly(world, writer, session.value.sessionId),
    viaRunner: (runId) => whileWaiting(context, session.value, askForPause(world, session.value, runId)),
  });
  return ended.ok ? ok(conclude(context, session.value, ended.value)) : ended;
}

async function pauseDirectly(world: World, writer: GroupWriter, sessionId: string): Promise<Result<SessionState>> {
  if (writer.state.sessions.get(sessionId)?.state.status === 'running') {
    const foreign = foreignWorker(world, writer);
    if (foreign) return foreign;
    await stopSession(world, writer, sessionId, 'user');
  } else {
    const recorded = recordCommand(world, writer, { kind: 'pause-session', sessionId });
    if (!recorded.ok) return recorded;
  }
  return ok(stateOf(writer.state, sessionId));
}

async function askForPause(
  world: World,
  session: LoadedSession,
  runId: string,
): Promise<Result<SessionState> | 'runner-gone'> {
  const { sessionId } = session;
  const answer = await askRunner(world, session, runId, { kind: 'pause-session', sessionId });
  if (answer === 'runner-gone' || !answer.ok) return answer;
  const { seq } = answer.value;
  const ended = await awaitState(world, session, runId, (state) => {
    const now = state.lastSeq >= seq ? stateOf(state, sessionId) : undefined;
    return now === undefined || now.status === 'running' ? null : now;
  });
  return ended === 'runner-gone' ? ended : ok(ended);
}

function stateOf(state: GroupState, sessionId: string): SessionState {
  // Removed by somebody else while it was being looked at: as if it had never run.
  return state.sessions.get(sessionId)?.state ?? { status: 'pending' };
}

function conclude(context: Context, session: LoadedSession, ended: SessionState): ExitCode {
  const { state, sessionId, record } = session;
  const { stdout } = context;
  const title = `Session ${titleOf(state, sessionId)}`;
  const wasRunning = record.state.status === 'running';
  const goOn = commandText(resumeSessionCommand(state, record));
  switch (ended.status) {
    case 'paused':
      // It would have gone on by itself.
      if (!wasRunning && record.queued && liveRunner(context.world, session) !== null) {
        stdout.line(`${title} is held back. Let it go on: ${goOn}`);
        return exitCode.done;
      }
      stdout.line(`${title} is paused${wasRunning ? '' : ' already'}. Go on: ${goOn}`);
      return exitCode.done;
    case 'pending':
      // A later run begins with every session that is left.
      if (liveRunner(context.world, session) !== null) stdout.line(`${title} is held back. Let it start: ${goOn}`);
      else stdout.line(`${title} is not running. It starts with its group: ${commandText(runCommand(state))}`);
      return exitCode.done;
    case 'completed':
      stdout.line(`${title} completed before it could be paused.`);
      return exitCode.done;
    case 'failed':
      stdout.line(
        `${title} ${wasRunning ? 'failed' : 'is failed'}: ${safeLine(ended.failure.message, sentenceColumnsMax)}`,
      );
      return wasRunning ? exitCode.failed : exitCode.done;
    case 'running':
      // Not reached: nobody returns before it has ended.
      stdout.line(`${title} is running.`);
      return exitCode.failed;
  }
}
