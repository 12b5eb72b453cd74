/** `session edit`: other settings for a session that is not running, from its next attempt on. */

import type { Command } from '@commander-js/extra-typings';
import { editSession } from '../../../app/create/new-session.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { commandText, see } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { fail, ok } from '../../../core/failure.ts';
import { resumeSessionCommand, sessionReference } from '../../../core/plan/advice.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { settingWords, titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { addSessionOptions, sessionFrom } from '../../options/session-options.ts';

const noteColumnsMax = 1000;

const example = `
Example:
  $ claude-code-agent session edit auth-refactor/api --prompt "Add a login endpoint, with tests"
  $ claude-code-agent session edit auth-refactor/api --model sonnet --max-budget-usd 2 --accept "npm test"
  $ claude-code-agent session edit auth-refactor/web --no-depends-on --no-max-budget-usd`;

export function define(command: Command, context: Context): void {
  const described = command
    .description(`Changes a session that is not running; only what is given becomes another. Its next attempt works with
that: a changed task is told to the model, also in a conversation that goes on. Not of a session that is completed.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--project <dir>', 'another folder, as long as it has not begun');
  addSessionOptions(described, true);
  described
    .option('--json', 'one JSON document: {"group", "session", "changed"}, the last with the names of what has changed')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => edit(context, reference, given)));
}

interface Given {
  readonly project?: string;
  readonly json?: true;
}

async function edit(context: Context, reference: string, given: Given): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const { json, project, ...options } = given;
  if (project === undefined && Object.values(options).every((value) => value === undefined)) {
    return fail('usage', 'Nothing was given that is to change.', see('session', 'edit', '--help'));
  }
  const edit = await sessionFrom(context, options);
  if (!edit.ok) return edit;
  const editing = editSession(context, session.value, { ...edit.value, ...defined({ project }) });
  const edited = await whileWaiting(context, session.value, editing);
  if (!edited.ok) return edited;
  const { changed, notes } = edited.value;
  const { state, sessionId, record } = session.value;
  for (const note of notes) context.stderr.line(safeLine(note, noteColumnsMax));
  if (json) context.stdout.line(safeJson({ group: state.group.id, session: sessionId, changed }, 2));
  else {
    const title = titleOf(state, sessionId);
    const what =
      changed.length === 0 ? `${title} is like that already.` : `Changed ${title}: ${settingWords(changed)}.`;
    context.stdout.line(`${what}${nextOf(state, record)}`);
  }
  return ok(exitCode.done);
}

function nextOf(state: GroupState, record: SessionRecord): string {
  const { status } = record.state;
  if (status === 'failed') {
    return ` Try it again with: ${commandText(['session', 'retry', sessionReference(state, record)])}`;
  }
  return status === 'paused' ? ` Go on with: ${commandText(resumeSessionCommand(state, record))}` : '';
}
