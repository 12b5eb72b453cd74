/** `session add`: a new session in a group; its id alone on stdout. */
import { resolve } from 'node:path';
import { type Command, Option } from '@commander-js/extra-typings';
import { fail, ok, type Result } from '../../core/failure.ts';
import { buildGraph } from '../../core/graph.ts';
import { permissionModes, type SessionDefinition, type SessionId } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { nextSessionId } from '../../runner/request-answers.ts';
import { changeGroup } from '../change-group.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import {
  collect,
  parseDuration,
  parseMoney,
  parseRetries,
  parseRules,
  parseSessionName,
  parseText,
  parseWord,
} from '../option-values.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import { type PromptOptions, readPrompt } from '../prompt-source.ts';
import { askRunner } from '../request.ts';
import { findSessionOf, type GroupReference, loadReferredGroup } from '../resolve.ts';

const example = `
Example:
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ claude-code-agent session add auth-refactor --project ./web --prompt-file login-page.md --depends-on api
  $ git diff | claude-code-agent session add review --project . --prompt -`;

export function define(command: Command, context: Context): void {
  command
    .description('Adds a session to a group and prints its id. Works while the group is running, too.')
    .argument('<group>', 'id, unique prefix or slug')
    .requiredOption('--project <dir>', 'folder of the project in which the session works')
    .option('--prompt <text>', 'the task; "-" reads it from standard input')
    .option('--prompt-file <file>', 'file with the task')
    .option('--name <name>', 'short name for references, unique in the group', parseSessionName)
    .option('--description <text>', 'what the session is for', parseText)
    .option('--depends-on <session>', 'id, number or name; may be given several times', collect)
    .option('--model <model>', "the session's model", parseWord)
    .option('--max-budget-usd <usd>', 'cap for this session alone', parseMoney)
    .addOption(new Option('--permission-mode <mode>', "claude's permission mode").choices(permissionModes))
    .option('--allowed-tools <rules>', 'permission rules such as "Edit,Bash(git log:*)"', parseRules)
    .option('--retries <n>', 'further attempts after a transient failure (default: 2)', parseRetries)
    .option('--timeout <time>', 'longest wall time of one attempt, such as 90s, 15m or 1h30m', parseDuration)
    .option('--stall-timeout <time>', 'longest time without any progress (default: 15m)', parseDuration)
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => add(context, reference, given)));
}

interface Given extends PromptOptions {
  readonly project: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly dependsOn?: readonly string[] | undefined;
  readonly model?: string | undefined;
  readonly maxBudgetUsd?: number | undefined;
  readonly permissionMode?: SessionDefinition['permissionMode'] | undefined;
  readonly allowedTools?: readonly string[] | undefined;
  readonly retries?: number | undefined;
  /** Milliseconds, like the next. */
  readonly timeout?: number | undefined;
  readonly stallTimeout?: number | undefined;
}

/** Everything but the id and the dependencies, which depend on the group's present sessions. */
type Draft = Omit<SessionDefinition, 'id' | 'dependsOn'>;

async function add(context: Context, reference: string, given: Given): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const draft = await draftOf(context, given);
  if (!draft.ok) return draft;
  // A mistake is told before anybody is asked; what may have changed meanwhile is checked again under the lock.
  const possible = newSession(context, group.value.state, draft.value, given.dependsOn ?? []);
  if (!possible.ok) return possible;
  const added = await changeGroup<SessionId>(context.world, group.value, {
    direct(writer) {
      const session = newSession(context, writer.state, draft.value, given.dependsOn ?? []);
      if (!session.ok) return session;
      writer.record([{ type: 'session_added', sessionId: session.value.id, session: session.value }]);
      return ok(session.value.id);
    },
    viaRunner: (runId) => addThroughRunner(context, group.value, runId, possible.value),
  });
  if (!added.ok) return added;
  context.stdout.line(added.value);
  return ok(exitCode.done);
}

async function addThroughRunner(
  context: Context,
  group: GroupReference,
  runId: string,
  { id: _id, ...session }: SessionDefinition,
): Promise<Result<SessionId> | 'runner-gone'> {
  const answer = await askRunner(context.world, group, runId, { kind: 'add-session', session });
  if (answer === 'runner-gone' || !answer.ok) return answer;
  const { sessionId } = answer.value;
  return sessionId === undefined ? fail('internal', 'The runner did not name the new session.', '') : ok(sessionId);
}

async function draftOf(context: Context, given: Given): Promise<Result<Draft>> {
  const projectPath = projectOf(context, given.project);
  if (!projectPath.ok) return projectPath;
  const prompt = await readPrompt(context, given);
  if (!prompt.ok) return prompt;
  const { name, model, maxBudgetUsd, permissionMode, allowedTools, retries, timeout, stallTimeout } = given;
  return ok({
    ...(name === undefined ? {} : { name }),
    description: given.description ?? '',
    projectPath: projectPath.value,
    prompt: prompt.value,
    ...(model === undefined ? {} : { model }),
    ...(permissionMode === undefined ? {} : { permissionMode }),
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
    ...(retries === undefined ? {} : { retries }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(stallTimeout === undefined ? {} : { stallTimeoutMs: stallTimeout }),
    createdAt: new Date(context.world.clock.now()).toISOString(),
  });
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
    if (!found.ok) return reference === draft.name ? needsItself(reference) : found;
    dependsOn.add(found.value);
  }
  const id = nextSessionId(context.world, state);
  const session: SessionDefinition = { id, ...draft, dependsOn: [...dependsOn] };
  const graph = buildGraph([...[...state.sessions.values()].map(({ definition }) => definition), session]);
  return graph.ok ? ok(session) : graph;
}

function needsItself(name: string): Result<never> {
  const message = `The session would wait for itself: ${name} -> ${name}.`;
  return fail('cycle', message, `Leave out --depends-on ${name}.`);
}
