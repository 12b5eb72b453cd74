/** `session edit`: other settings for a session that is not running, from its next attempt on. */

import { type Command, Option } from '@commander-js/extra-typings';
import { type EditOptions, editSession, type Removable } from '../../../app/create/edit-session.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { commandText, see } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import { resumeSessionCommand, sessionReference } from '../../../core/plan/advice.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { settingWords, titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { type SessionOptions, sessionFrom, withSessionOptions } from '../../options/session-options.ts';

const noteColumnsMax = 1000;

const example = `
Example:
  $ claude-code-agent session edit auth-refactor/api --prompt "Add a login endpoint, with tests"
  $ claude-code-agent session edit auth-refactor/api --model sonnet --max-budget-usd 2 --accept "npm test"
  $ claude-code-agent session edit auth-refactor/web --no-depends-on --no-max-budget-usd`;

/** Options that take a setting away, with what that is called in a definition. */
const without: Readonly<Record<string, readonly [Removable | 'dependsOn', string]>> = {
  'depends-on': ['dependsOn', 'it waits for no other session'],
  model: ['model', "the group's model, or claude's own default"],
  'max-budget-usd': ['maxBudgetUsd', 'no cap for this session alone'],
  'permission-mode': ['permissionMode', 'the mode of its settings, or acceptEdits'],
  'allowed-tools': ['allowedTools', 'no permission rules of its own'],
  retries: ['retries', 'the default'],
  timeout: ['timeoutMs', 'no limit for one attempt'],
  'stall-timeout': ['stallTimeoutMs', 'the default'],
  untrusted: ['untrusted', 'the project is trusted'],
  memory: ['memoryBytes', 'no limit'],
  'max-processes': ['maxProcesses', 'no limit'],
  requires: ['requires', 'on any machine that may work for the group'],
  host: ['host', 'on any machine that may work for the group'],
  'expect-changes': ['expectChanges', 'no warning when no file was changed'],
};

export function define(command: Command, context: Context): void {
  const described = command
    .description(`Changes a session that is not running; only what is given becomes another. Its next attempt works with
that: a changed task is told to the model, also in a conversation that goes on. Not of a session that is completed.`)
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--project <dir>', 'another folder, as long as it has not begun')
    .option('--commit', 'commit what it leaves uncommitted in its worktree');
  const options = withSessionOptions(described);
  for (const [name, [, what]] of Object.entries(without)) options.addOption(new Option(`--no-${name}`, what));
  options
    .option('--json', 'one JSON document: {"group", "session", "changed"}, the last with the names of what has changed')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => edit(context, reference, given)));
}

interface Given extends SessionOptions {
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

async function edit(context: Context, reference: string, given: Given): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const edit = await editFrom(context, given);
  if (!edit.ok) return edit;
  const edited = await whileWaiting(context, session.value, editSession(context, session.value, edit.value));
  if (!edited.ok) return edited;
  const { changed, notes } = edited.value;
  const { state, sessionId, record } = session.value;
  for (const note of notes) context.stderr.line(safeLine(note, noteColumnsMax));
  if (given.json) context.stdout.line(safeJson({ group: state.group.id, session: sessionId, changed }, 2));
  else {
    const title = titleOf(state, sessionId);
    const what =
      changed.length === 0 ? `${title} is like that already.` : `Changed ${title}: ${settingWords(changed)}.`;
    context.stdout.line(`${what}${nextOf(state, record)}`);
  }
  return ok(exitCode.done);
}

/** `--no-model` gives false for `model`. */
async function editFrom(context: Context, given: Given) {
  const keys = new Map<string, Removable | 'dependsOn'>(
    Object.entries(without).map(([option, [name]]) => [camelCase(option), name]),
  );
  const { json: _json, ...options } = given;
  const isGiven = Object.entries(options).filter(([, value]) => value !== undefined);
  if (isGiven.length === 0) {
    return fail('usage', 'Nothing was given that is to change.', see('session', 'edit', '--help'));
  }
  const taken = isGiven.flatMap(([key, value]) => (value === false ? (keys.get(key) ?? []) : []));
  const kept = Object.fromEntries(isGiven.filter(([key, value]) => value !== false || !keys.has(key)));
  const edit = await sessionFrom(context, kept);
  if (!edit.ok) return edit;
  const whole: EditOptions = {
    ...edit.value,
    project: given.project,
    work: { ...edit.value.work, commit: given.commit },
    ...(taken.includes('dependsOn') ? { dependsOn: [] } : {}),
    without: taken.filter((name) => name !== 'dependsOn'),
  };
  return ok(whole);
}

function camelCase(option: string): string {
  return option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function nextOf(state: GroupState, record: SessionRecord): string {
  const { status } = record.state;
  if (status === 'failed') {
    return ` Try it again with: ${commandText(['session', 'retry', sessionReference(state, record)])}`;
  }
  return status === 'paused' ? ` Go on with: ${commandText(resumeSessionCommand(state, record))}` : '';
}
