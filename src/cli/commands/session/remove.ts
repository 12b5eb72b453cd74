/** `session remove`: takes a session that is not running out of its group, with its files. */

import type { Command } from '@commander-js/extra-typings';
import { removeSession } from '../../../app/removal/archive-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredSession, resolveGroupToDestroy } from '../../../app/resolve.ts';
import { checkCommand } from '../../../app/submit.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent session remove auth-refactor/003`;

const noteColumns = 600;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Removes a session that is not running, with its transcript and its worktree. What it cost stays counted. ' +
        'Refuses while the worktree holds work that is in no commit. A branch with unmerged commits stays.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; commit what is in no commit on its branch first')
    .option('--json', 'one JSON document: {"group", "session"}')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => remove(context, reference, given)));
}

interface Given {
  readonly yes?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
}

async function remove(context: Context, reference: string, { yes, force: forced, json }: Given): Promise<Work> {
  const force = forced === true;
  const session = loadReferredSession(context, reference, resolveGroupToDestroy);
  if (!session.ok) return session;
  const { sessionId, state, record, groupId } = session.value;
  const possible = checkCommand(context.world, session.value, { kind: 'remove-session', sessionId });
  if (!possible.ok) return possible;
  const title = titleOf(state, sessionId);
  // A session that never ran has nothing to lose but its definition.
  const isAnswered = force || yes === true || record.attempts === 0;
  const sure = await confirmed(context, `Delete session ${title} with its transcript?`, isAnswered);
  if (!sure.ok) return sure;
  if (!sure.value) return ok(exitCode.done);
  const command = ['session', 'remove', `${groupId}/${sessionId}`];
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  const removing = removeSession(context, session.value, { force, command, tell });
  const removed = await whileWaiting(context, session.value, removing);
  if (!removed.ok) return removed;
  context.stderr.line(`Removed ${title} from ${state.group.id}.`);
  if (json) context.stdout.line(safeJson({ group: groupId, session: sessionId }, 2));
  return ok(exitCode.done);
}
