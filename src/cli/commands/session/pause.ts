/** `session pause`: stops one session so that it can be resumed; the others go on. */

import type { Command } from '@commander-js/extra-typings';
import { liveRunner } from '../../../app/live-runner.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type LoadedSession, loadReferredSession } from '../../../app/resolve.ts';
import { submit } from '../../../app/submit.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { resumeSessionCommand, runCommand } from '../../../core/plan/advice.ts';
import type { SessionState } from '../../../core/session-state.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import { besideDocument, type Context, type Work } from '../../context.ts';
import { type ExitCode, exitCode } from '../../exit-code.ts';
import { printSession } from '../../run-command.ts';

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
    .option('--json', 'one JSON document: {"group", "session", "status"}')
    .addHelpText('after', example)
    .action((reference, { json }) => context.run(() => pause(context, reference, json === true)));
}

async function pause(context: Context, reference: string, json: boolean): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const { sessionId } = session.value;
  const pausing = submit(context, session.value, { kind: 'pause-session', sessionId });
  const ended = await whileWaiting(context, session.value, pausing);
  if (!ended.ok) return ended;
  const code = conclude(json ? besideDocument(context) : context, session.value, ended.value);
  const printed = json ? printSession(context, session.value) : ok(code);
  return printed.ok ? ok(code) : printed;
}

function conclude(context: Context, session: LoadedSession, ended: SessionState): ExitCode {
  const { stdout } = context;
  const { state, sessionId, record } = session;
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
