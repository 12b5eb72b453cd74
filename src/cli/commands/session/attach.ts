/** `session attach`: a person speaks with a session in claude's own terminal; the group goes on with what was said. */

import type { Command } from '@commander-js/extra-typings';
import { attachSession } from '../../../app/attach/attach-session.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { commandText } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import { attachedText, mayspendText } from '../../attached-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent session attach auth-refactor/api`;

export function define(command: Command, context: Context): void {
  command
    .description(`Takes a session over: it is paused, and claude opens in its conversation, with its settings and in its
folder, for you to type to. When you leave claude (/exit), the group goes on with what was said there.
What you spend counts as the session's; when what is left of the budget is spent, claude is ended.
Exit codes: 0 you have left it, 1 it cannot be taken over now, 2 bad input or no terminal, 3 ended at the budget.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .addHelpText('after', example)
    .action((reference) => context.run(() => attach(context, reference)));
}

async function attach(context: Context, reference: string): Promise<Work> {
  const { stdout } = context;
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  if (!context.stdinIsTerminal || !stdout.isTerminal) {
    const say = commandText(['session', 'say', reference, 'TEXT']);
    return fail(
      'usage',
      'A session is taken over on a terminal, and this is none.',
      `Without one, tell it something with: ${say}`,
    );
  }
  const attached = await attachSession(context, session.value, {
    opening: (reservedUsd) => stdout.line(mayspendText(reservedUsd)),
    lend: async (use) => {
      await stdout.flush();
      await use();
    },
  });
  if (!attached.ok) return attached;
  stdout.line(attachedText(attached.value, session.value.sessionId));
  return ok(attached.value.isSpent ? exitCode.paused : exitCode.done);
}
