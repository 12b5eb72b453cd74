/** `session resume`: goes on with one paused session, in the same conversation. */
import type { Command } from '@commander-js/extra-typings';
import { ok } from '../../core/failure.ts';
import { sessionLabel } from '../../core/id.ts';
import { titleOf } from '../../report/wording.ts';
import { liveRunner } from '../change-group.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { type LoadedSession, loadReferredSession } from '../resolve.ts';
import { checkStartable, runSession } from '../run-session.ts';
import { makeWish } from '../wish.ts';

const example = `
Example:
  $ claude-code-agent session resume auth-refactor/api`;

export function define(command: Command, context: Context): void {
  command
    .description(`Goes on with a paused session in the same conversation. A live runner is asked to start it when there
is a slot; without one this command runs the session, and no other, to its end.
Exit codes: 0 completed (or asked for), 1 failed, 2 bad input, 3 paused again.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--rehearse [script]', 'the script with which the rehearsal goes on')
    .addHelpText('after', example)
    .action((reference, { rehearse }) => context.run(() => resume(context, reference, rehearse)));
}

async function resume(context: Context, reference: string, rehearse: string | true | undefined): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  // What a dead runner left running needs no wish, only a runner.
  if (isLeftRunning(context, session.value)) return runSession(context, session.value, rehearse);
  const granted = await makeWish(context.world, session.value, {
    kind: 'resume-session',
    sessionId: session.value.sessionId,
  });
  if (!granted.ok) return granted;
  if (granted.value === 'log') {
    const startable = checkStartable(session.value);
    return startable.ok ? runSession(context, session.value, rehearse) : startable;
  }
  const { state, sessionId, record } = session.value;
  const follow = `claude-code-agent session logs ${state.group.id}/${sessionLabel(sessionId, record.definition.name)} --follow`;
  context.stdout.line(`Session ${titleOf(state, sessionId)} goes on as soon as there is a slot. Follow it: ${follow}`);
  return ok(exitCode.done);
}

function isLeftRunning({ world }: Context, session: LoadedSession): boolean {
  return session.record.state.status === 'running' && liveRunner(world, session) === null;
}
