/** `session add`: a new session in a group; its id alone on stdout. */

import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { referencesOf } from '../../../control/create/session-references.ts';
import { briefPath, lookAt, tryPath } from '../../../control/path-argument.ts';
import { askRunner, whileWaiting } from '../../../control/request.ts';
import {
  findSessionOf,
  type GroupReference,
  type LoadedGroup,
  loadReferredGroup,
  resolveGroup,
} from '../../../control/resolve.ts';
import { see } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import {
  type ContextName,
  type GroupId,
  permissionModes,
  type SessionDefinition,
  type SessionId,
} from '../../../core/group.ts';
import { quoted } from '../../../core/id.ts';
import type { GroupState } from '../../../core/state.ts';
import { nextGroupStatus } from '../../../core/status.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import { frozenTemplates, generatedConfig } from '../../../runner/place/generated-config.ts';
import { additionProblem, nextSessionId } from '../../../runner/request-answers.ts';
import { problemsFailure } from '../../../store/yaml-text.ts';
import { type ConfigTemplate, freezeConfigTemplate } from '../../../template/config-template.ts';
import type { LaterPlace } from '../../../template/render.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import {
  collect,
  parseContext,
  parseDuration,
  parseMaxProcesses,
  parseMemory,
  parseMoney,
  parseRetries,
  parseRules,
  parseSessionName,
  parseText,
  parseWord,
} from '../../options/option-values.ts';
import { type ConfigOptions, configOf, withConfigOptions } from '../../options/session-config.ts';
import { readTask, type TaskOptions } from '../../options/session-task.ts';
import { type WorkOptions, withWorkOptions, workOf } from '../../options/session-work.ts';

const noteColumnsMax = 1000;

const example = `
Example:
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ claude-code-agent session add auth-refactor --project ./web --prompt-file login-page.md --depends-on api
  $ claude-code-agent session add auth-refactor --project ./api --template code-review --var file_path=src/login.ts
  $ git diff | claude-code-agent session add review --project . --prompt -
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Speed it up" --accept "npm test"`;

export function define(command: Command, context: Context): void {
  const described = command
    .description('Adds a session to a group and prints its id. Works while the group is running, too.')
    .argument('<group>', 'id, unique prefix or slug')
    .requiredOption('--project <dir>', 'folder of the project in which the session works')
    .option('--prompt <text>', 'the task; "-" reads it from standard input')
    .option('--prompt-file <file>', 'file with the task')
    .option('--template <name>', 'prompt template that makes the task, or a config template')
    .option('--config-template <name>', 'what the session finds in its config dir')
    .option('--var <name=value>', 'value for a variable of a template; may be repeated', collect)
    .option('--name <name>', 'short name for references, unique in the group', parseSessionName)
    .option('--description <text>', 'what the session is for', parseText)
    .option('--depends-on <session>', 'id, number or name, with or without <group>/; may be repeated', collect)
    .option('--model <model>', "the session's model", parseWord)
    .option('--max-budget-usd <usd>', 'cap for this session alone', parseMoney)
    .addOption(new Option('--permission-mode <mode>', "claude's permission mode").choices(permissionModes))
    .option('--allowed-tools <rules>', 'permission rules such as "Edit,Bash(git log:*)"', parseRules)
    .option(
      '--context <systems>',
      'what keeps its state: of cpm, faber and handover, or none (default: all)',
      parseContext,
    )
    .option('--retries <n>', 'further attempts after a transient failure (default: 2)', parseRetries)
    .option('--timeout <time>', 'longest wall time of one attempt, such as 90s, 15m or 1h30m', parseDuration)
    .option('--stall-timeout <time>', 'longest time without any progress (default: 15m)', parseDuration)
    .option('--untrusted', "the project's hooks do not run, and of its variables only harmless ones count")
    .option(
      '--memory <mb>',
      'megabytes that its commands, with those of others that run at once, may take',
      parseMemory,
    )
    .option(
      '--max-processes <n>',
      "processes and threads that it may have at once, claude's own included; at least 64",
      parseMaxProcesses,
    );
  withConfigOptions(withWorkOptions(described))
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => add(context, reference, given)));
}

interface Given extends TaskOptions, WorkOptions, ConfigOptions {
  readonly project: string;
  readonly description?: string | undefined;
  readonly dependsOn?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly permissionMode?: SessionDefinition['permissionMode'] | undefined;
  readonly allowedTools?: readonly string[] | undefined;
  readonly context?: readonly ContextName[] | undefined;
  readonly retries?: number | undefined;
  /** Milliseconds, like the next. */
  readonly timeout?: number | undefined;
  readonly stallTimeout?: number | undefined;
  readonly untrusted?: boolean | undefined;
  /** Bytes. */
  readonly memory?: number | undefined;
  readonly maxProcesses?: number | undefined;
}

/** Everything but what depends on the group's present sessions. */
interface Draft {
  readonly definition: Omit<SessionDefinition, 'id' | 'dependsOn'>;
  /** Places of the prompt that name other sessions. */
  readonly later: readonly LaterPlace[];
  readonly configTemplate?: ConfigTemplate;
  /** What the user should know once the session is added. */
  readonly notes: readonly string[];
}

async function add(context: Context, reference: string, given: Given): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const draft = await draftOf(context, group.value, given);
  if (!draft.ok) return draft;
  // A mistake is told before anybody is asked; what may have changed meanwhile is checked again under the lock.
  const dependencies = withinGroup(context, group.value.groupId, given.dependsOn ?? []);
  if (!dependencies.ok) return dependencies;
  const possible = newSession(context, group.value.state, draft.value, dependencies.value);
  if (!possible.ok) return possible;
  const { configTemplate } = draft.value;
  const usable = checkConfig(context, group.value, possible.value, configTemplate);
  if (!usable.ok) return usable;
  // Before the session that names it; a copy that nobody names does no harm.
  if (configTemplate !== undefined) freezeConfigTemplate(context.world, configTemplate, group.value.paths.templates);
  const added = await changeGroup<SessionId>(context, group.value, {
    direct(writer) {
      const session = newSession(context, writer.state, draft.value, dependencies.value);
      if (!session.ok) return session;
      writer.record([{ type: 'session_added', sessionId: session.value.id, session: session.value }]);
      return ok(session.value.id);
    },
    viaRunner: (runId) => addThroughRunner(context, group.value, runId, possible.value),
  });
  if (!added.ok) return added;
  for (const note of draft.value.notes) context.stderr.line(safeLine(note, noteColumnsMax));
  context.stdout.line(added.value);
  return ok(exitCode.done);
}

/** A configuration that claude would ignore, or that nothing beats, is told now and not when it is to be used. */
function checkConfig(
  context: Context,
  { state, paths }: LoadedGroup,
  session: SessionDefinition,
  own: ConfigTemplate | undefined,
): Result<unknown> {
  const frozen = frozenTemplates(context.world, paths);
  const load = (digest: string) => (own?.digest === digest ? ({ ok: true, value: own } as const) : frozen.load(digest));
  return generatedConfig(context.world, { ...frozen, load }, state.group, session);
}

async function addThroughRunner(
  context: Context,
  group: GroupReference,
  runId: string,
  { id: _id, ...session }: SessionDefinition,
): Promise<Result<SessionId> | 'runner-gone'> {
  const asked = askRunner(context.world, group, runId, { kind: 'add-session', session });
  const answer = await whileWaiting(context, group, asked);
  if (answer === 'runner-gone' || !answer.ok) return answer;
  const { sessionId } = answer.value;
  return sessionId === undefined ? fail('internal', 'The runner did not name the new session.', '') : ok(sessionId);
}

async function draftOf(context: Context, group: LoadedGroup, given: Given): Promise<Result<Draft>> {
  const projectPath = projectOf(context, given.project);
  if (!projectPath.ok) return projectPath;
  const work = workOf(context, projectPath.value, given);
  if (!work.ok) return work;
  const groupConfig = given.inheritFromGroup === false ? ok(undefined) : groupConfigOf(context, group);
  if (!groupConfig.ok) return groupConfig;
  const surroundings = { group: group.state.group, groupConfig: groupConfig.value, projectPath: projectPath.value };
  const task = await readTask(context, surroundings, given);
  if (!task.ok) return task;
  const config = configOf(context, given, task.value.claudeMdText);
  if (!config.ok) return config;
  const { name, model, maxBudgetUsd, permissionMode, allowedTools, context: systems } = given;
  const { retries, timeout, stallTimeout, untrusted, memory, maxProcesses } = given;
  const definition = {
    ...(name === undefined ? {} : { name }),
    description: given.description ?? '',
    projectPath: projectPath.value,
    ...task.value.definition,
    ...config.value,
    ...(model === undefined ? {} : { model }),
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
    ...(systems === undefined ? {} : { context: systems }),
    ...(retries === undefined ? {} : { retries }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(stallTimeout === undefined ? {} : { stallTimeoutMs: stallTimeout }),
    ...(untrusted === true ? { untrusted: true as const } : {}),
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(maxProcesses === undefined ? {} : { maxProcesses }),
    ...work.value.settings,
    createdAt: new Date(context.world.clock.now()).toISOString(),
  };
  const { later, configTemplate } = task.value;
  const { notes } = work.value;
  return ok({ definition, later, notes, ...(configTemplate === undefined ? {} : { configTemplate }) });
}

function groupConfigOf(context: Context, { state, paths }: LoadedGroup): Result<ConfigTemplate | undefined> {
  const { configTemplate } = state.group;
  if (configTemplate === undefined) return ok(undefined);
  const loaded = frozenTemplates(context.world, paths).load(configTemplate.digest);
  if (loaded.ok) return ok(loaded.value);
  return problemsFailure(
    `The group’s config template ${configTemplate.name}`,
    loaded.problems,
    'Create the group again.',
  );
}

/** The project's absolute path without symbolic links: claude keeps a conversation under exactly that path. */
function projectOf(context: Context, project: string): Result<string> {
  const next = 'Give the path of an existing folder to --project.';
  if (project === '') return fail('usage', 'The path of the project is empty.', next);
  const path = resolve(context.cwd, project);
  const { files } = context.world;
  const found = lookAt(files, path);
  if (!found.ok) return fail('usage', `The project ${briefPath(path)} ${found.trouble}.`, next);
  if (found.value !== 'folder') return fail('usage', `The project ${briefPath(path)} is not a folder.`, next);
  // Looking through the folder takes the right to enter it, which claude needs as well.
  const entered = lookAt(files, `${path}/.`);
  if (!entered.ok) return fail('usage', `The project ${briefPath(path)} ${entered.trouble}.`, next);
  const real = tryPath(() => files.realPath(path));
  if (!real.ok) return fail('usage', `The project ${briefPath(path)} ${real.trouble}.`, next);
  return real.value === null ? fail('usage', `The project ${briefPath(path)} is gone.`, next) : ok(real.value);
}

/** The session as it would be added to the group as it is now. */
function newSession(
  context: Context,
  state: GroupState,
  draft: Draft,
  dependencies: readonly string[],
): Result<SessionDefinition> {
  const { id: groupId } = state.group;
  if (nextGroupStatus(state.status, 'session_added') === null) {
    return fail(
      'illegal-transition',
      `Group ${groupId} is ${state.status}.`,
      'Create a new group for further sessions.',
    );
  }
  const dependsOn = new Set<SessionId>();
  for (const reference of dependencies) {
    const found = findSessionOf(state, reference);
    if (!found.ok) return reference === draft.definition.name ? needsItself(reference) : found;
    dependsOn.add(found.value);
  }
  const id = nextSessionId(context.world, state);
  const references = referencesOf(state, draft.later, [...dependsOn]);
  if (!references.ok) return references;
  const session: SessionDefinition = {
    id,
    ...draft.definition,
    dependsOn: [...dependsOn],
    ...(references.value.length === 0 ? {} : { promptReferences: references.value }),
  };
  return additionProblem(state, session) ?? ok(session);
}

/**
 * What names each dependency within the group: `<group>/<session>` is fine too, but only with the group that the
 * session is added to. Looked up once, because a slug may mean a newer group a moment later.
 */
function withinGroup(context: Context, groupId: GroupId, references: readonly string[]): Result<readonly string[]> {
  const names: string[] = [];
  for (const reference of references) {
    const slash = reference.indexOf('/');
    const named = slash < 0 ? ok({ groupId }) : resolveGroup(context, reference.slice(0, slash));
    if (!named.ok) return named;
    if (named.value.groupId !== groupId) return needsOtherGroup(groupId, reference, named.value.groupId);
    names.push(reference.slice(slash + 1));
  }
  return ok(names);
}

function needsOtherGroup(groupId: GroupId, reference: string, other: GroupId): Result<never> {
  const message = `${quoted(reference)} names the group ${other}, and a session can only depend on its own group’s.`;
  return fail('usage', message, see('session', 'list', groupId));
}

function needsItself(name: string): Result<never> {
  const message = `The session would wait for itself: ${name} -> ${name}.`;
  return fail('cycle', message, `Leave out --depends-on ${name}.`);
}
