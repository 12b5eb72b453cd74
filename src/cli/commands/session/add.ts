/** `session add`, which prints only the id on stdout, and `session edit`. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { addSession, editSession, type NewSessionOptions } from '../../../app/create/new-session.ts';
import { briefPath } from '../../../app/path-argument.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredGroup, loadReferredSession } from '../../../app/resolve.ts';
import { commandText, see } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { configSettings, sessionSettings } from '../../../core/definitions.ts';
import { resumeSessionCommand, sessionReference } from '../../../core/plan/advice.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import type { GroupState } from '../../../core/state.ts';
import { isObject } from '../../../store/json.ts';
import { findObjectFault } from '../../../store/json-positions.ts';
import { readTextFile } from '../../../template/text-file.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { settingWords, titleOf } from '../../../view/wording.ts';
import { type CommandResult, type Context, need, refuse } from '../../context.ts';
import { addSessionSettings, collect, givenSettings, type OptionTarget } from '../../options/options.ts';
import { promptSource, readStandardInput, standardInput } from '../../options/prompt-source.ts';

const noteColumnsMax = 1000;

const addExample = `
Example:
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ claude-code-agent session add auth-refactor --project ./web --prompt-file login-page.md --depends-on api
  $ claude-code-agent session add auth-refactor --project ./api --template code-review --var file_path=src/login.ts
  $ git diff | claude-code-agent session add review --project . --prompt -
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Speed it up" --accept "npm test"`;

export function define(command: Command, context: Context): void {
  const described = command
    .description('Add a session to a group and print its id. Also works while the group runs.')
    .argument('<group>', 'id, unique prefix or slug')
    .requiredOption('--project <dir>', 'project folder of the session');
  addSessionOptions(described, false);
  described
    .option('--json', 'one JSON document: {"group", "session"}')
    .addHelpText('after', addExample)
    .action((reference, given) => context.run(() => add(context, reference, given)));
}

interface GivenToAdd {
  readonly project: string;
  readonly json?: true | undefined;
}

async function add(context: Context, reference: string, given: GivenToAdd): Promise<CommandResult> {
  const group = need(loadReferredGroup(context, reference));
  const settings = await sessionFrom(context, given);
  const adding = addSession(context, group, { ...settings, project: given.project });
  const added = need(await whileWaiting(context, group, adding));
  for (const note of added.notes) context.stderr.line(safeLine(note, noteColumnsMax));
  const { groupId } = group;
  const { sessionId } = added;
  context.stdout.line(given.json ? safeJson({ group: groupId, session: sessionId }, 2) : sessionId);
}

const editExample = `
Example:
  $ claude-code-agent session edit auth-refactor/api --prompt "Add a login endpoint, with tests"
  $ claude-code-agent session edit auth-refactor/api --model sonnet --max-budget-usd 2 --accept "npm test"
  $ claude-code-agent session edit auth-refactor/web --no-depends-on --no-max-budget-usd`;

export function defineEdit(command: Command, context: Context): void {
  const described = command
    .description(
      `Change a session that is not running and not completed. Options that are not
      given keep their values. The next attempt uses the changes; a changed task is
      sent to the model, even in a continued conversation.`,
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--project <dir>', 'another folder, if the session has not started');
  addSessionOptions(described, true);
  described
    .option('--json', 'one JSON document: {"group", "session", "changed": names of the changed settings}')
    .addHelpText('after', editExample)
    .action((reference, given) =>
      context.run(async () => {
        const session = need(loadReferredSession(context, reference));
        const { json, project, ...options } = given;
        if (project === undefined && Object.values(options).every((value) => value === undefined)) {
          return refuse('usage', 'No change was given.', see('session', 'edit', '--help'));
        }
        const edit = await sessionFrom(context, options);
        const editing = editSession(context, session, { ...edit, ...defined({ project }) });
        const edited = need(await whileWaiting(context, session, editing));
        const { changed, notes } = edited;
        const { state, sessionId, record } = session;
        for (const note of notes) context.stderr.line(safeLine(note, noteColumnsMax));
        if (json) context.stdout.json({ group: state.group.id, session: sessionId, changed });
        else {
          const title = titleOf(state, sessionId);
          const what =
            changed.length === 0
              ? `${title} already has these settings.`
              : `Changed ${title}: ${settingWords(changed)}.`;
          context.stdout.line(`${what}${nextOf(state, record)}`);
        }
      }),
    );
}

function nextOf(state: GroupState, record: SessionRecord): string {
  const { status } = record.state;
  if (status === 'failed') {
    return ` Retry with: ${commandText(['session', 'retry', sessionReference(state, record)])}`;
  }
  return status === 'paused' ? ` Continue with: ${commandText(resumeSessionCommand(state, record))}` : '';
}

const overrideBytesMax = 1024 * 1024;

function addSessionOptions(command: OptionTarget, isEdit: boolean): void {
  const add = (flags: string, what: string) => {
    const option = new Option(flags, what);
    command.addOption(option);
    return option;
  };
  add('--prompt <text>', 'the task; "-" reads it from standard input');
  add('--prompt-file <file>', 'file with the task; "-" is standard input');
  add('--template <name>', 'prompt template for the task, or a config template');
  add('--config-template <name>', "config template for the session's config dir");
  add('--var <name=value>', 'value for a variable of a template; may be repeated').argParser(collect);
  const dependsOn = 'id, number or name, with or without <group>/; may be repeated';
  add('--depends-on <session>', dependsOn).argParser(collect);
  if (isEdit) add('--no-depends-on', 'no dependencies');
  addSessionSettings(command, isEdit);
}

interface GivenOptions {
  readonly prompt?: string;
  readonly promptFile?: string;
  readonly template?: string;
  readonly configTemplate?: string;
  readonly var?: readonly string[];
  readonly dependsOn?: readonly string[] | false;
}

async function sessionFrom(context: Context, options: object): Promise<Omit<NewSessionOptions, 'project'>> {
  const { prompt, promptFile, template, configTemplate, var: vars, dependsOn }: GivenOptions = options;
  const config = givenSettings(configSettings, options);
  const { settingsOverride: typed } = config;
  const override = typeof typed === 'string' ? await settingsIn(context, typed) : undefined;
  return {
    ...givenSettings(sessionSettings, options),
    ...defined({ template, configTemplate, var: vars, prompt: promptSource(context, { prompt, promptFile }) }),
    ...(dependsOn === undefined ? {} : { dependsOn: dependsOn || null }),
    config: { ...config, ...defined({ settingsOverride: override }) },
  };
}

/** `typed`: a JSON object, "-" for standard input, or a path. */
async function settingsIn(context: Context, typed: string): Promise<Readonly<Record<string, unknown>>> {
  const next =
    'Give a JSON object such as \'{"permissions": {"deny": ["WebFetch"]}}\', or the path of a file with one.';
  if (typed.trimStart().startsWith('{')) return objectIn(typed, 'The JSON of --settings-override', next);
  if (typed === standardInput) {
    const bytes = need(await readStandardInput(context, 'The settings', overrideBytesMax));
    return objectIn(Buffer.from(bytes).toString(), 'The JSON on standard input', next);
  }
  const path = resolve(context.cwd, typed);
  const read = readTextFile(context.world, path, overrideBytesMax);
  if (!read.ok) return refuse('usage', `The file of --settings-override ${briefPath(path)} ${read.trouble}.`, next);
  return objectIn(read.text, `The file of --settings-override ${briefPath(path)}`, next);
}

function objectIn(text: string, source: string, next: string): Readonly<Record<string, unknown>> {
  const fault = findObjectFault(text);
  if (fault !== null)
    return refuse('usage', `${source} is wrong at character ${fault.offset + 1}: ${fault.message}.`, next);
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : refuse('usage', `${source} is not a JSON object.`, next);
}
