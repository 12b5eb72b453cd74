/** Names configuration that plain claude would use and the sessions do not, before anything is spent. */
import { join } from 'node:path';
import { droppedVariables, workerEnvironment } from '../../claude/launch/environment.ts';
import { findSettings, settingsFiles } from '../../claude/launch/project-settings.ts';
import { readBackCheck } from '../../claude/launch/settings.ts';
import {
  ignoredRules,
  isTrusted,
  loginOf,
  projectServers,
  readUserClaude,
  type UserClaude,
} from '../../claude/launch/user-claude.ts';
import { object } from '../../claude/lenient.ts';
import { commandText } from '../../core/advice.ts';
import { ok } from '../../core/failure.ts';
import type { GroupId, SessionDefinition, SessionId } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';
import { listNames } from '../../core/text.ts';
import { groupPaths } from '../../store/paths.ts';
import type { AppContext } from '../app-context.ts';

const namesShown = 5;

/** One sentence for each project and cause. */
export function unusedProjectConfig(context: AppContext, state: GroupState, ids: readonly SessionId[]): string[] {
  const user = readUserClaude(context.world, context.env);
  const remedy = remedyFor(context, state);
  const sentences = ids.flatMap((id) => {
    const definition = state.sessions.get(id)?.definition;
    return definition === undefined ? [] : unusedIn(context, user, definition, remedy);
  });
  return [...droppedSentence(context), ...new Set(sentences)];
}

function droppedSentence({ world, env }: AppContext): string[] {
  const nowhere = { attemptId: '', configDir: '', tmpDir: '' };
  const dropped = droppedVariables(env, workerEnvironment({ ...loginOf(world, env), ...nowhere }));
  if (dropped.length === 0) return [];
  const what = dropped.length === 1 ? 'this variable' : 'these variables';
  const names = listNames(dropped.sort(), namesShown);
  return [`Sessions do not get ${what} of your environment, which would override their settings: ${names}`];
}

type Remedy = (option: readonly string[], entry: string) => string;

/** A command for an existing group, else an entry for its workflow. */
function remedyFor(context: AppContext, state: GroupState): Remedy {
  const id = storedGroupId(context, state);
  return (option, entry) =>
    id === undefined ? `\`${entry}\` in the group of the workflow` : commandText(['group', 'edit', id, ...option]);
}

/** The id of the group, if it exists on disk: the dry run of a workflow has not created one. */
export function storedGroupId(context: AppContext, { group: { id } }: GroupState): GroupId | undefined {
  const found = context.root();
  return found.ok && context.world.files.info(groupPaths(found.value, id).events) !== null ? id : undefined;
}

function unusedIn({ world }: AppContext, user: UserClaude, definition: SessionDefinition, remedy: Remedy): string[] {
  const { projectPath, untrusted } = definition;
  if (untrusted === true) return [];
  try {
    const settings = findSettings(world, projectPath);
    const rules = isTrusted(world, user, definition) ? [] : ignoredRules(settings);
    const { leftOut } = projectServers(world, user, definition, settings);
    return [
      ...ignoredFiles(world, projectPath),
      ...(rules.length === 0 ? [] : [rulesSentence(projectPath, rules, remedy)]),
      ...(leftOut.length === 0 ? [] : [serversSentence(projectPath, leftOut, remedy)]),
    ];
  } catch {
    // Unreadable settings are reported when the session starts.
    return [];
  }
}

/** claude silently ignores a whole settings file with one mistake, including its deny rules. */
function ignoredFiles({ files }: AppContext['world'], projectPath: string): string[] {
  return settingsFiles.flatMap((name) => {
    const path = join(projectPath, '.claude', name);
    const text = files.info(path)?.kind === 'file' ? files.readText(path) : null;
    const checked = text === null ? ok(undefined) : readBackCheck(path, text);
    return checked.ok ? [] : [checked.failure.message];
  });
}

function rulesSentence(projectPath: string, rules: readonly string[], remedy: Remedy): string {
  const what = rules.length === 1 ? `An allow rule of ${projectPath} is` : `Allow rules of ${projectPath} are`;
  const how = `Trust it once in claude, or with: ${remedy(['--trust'], 'trust: true')}`;
  return `${what} ignored, because the project is not trusted: ${listNames(rules, namesShown)}. ${how}`;
}

function serversSentence(projectPath: string, servers: readonly string[], remedy: Remedy): string {
  const [what, them] = servers.length === 1 ? ['An MCP server', 'it'] : ['MCP servers', 'them'];
  const how = `Approve ${them} once in claude, or with: ${remedy(['--project-mcp', 'all'], 'projectMcp: all')}`;
  const why = `because you have not approved ${them}`;
  return `${what} in .mcp.json of ${projectPath} will not start, ${why}: ${listNames(servers, namesShown)}. ${how}`;
}

/** The parts of the user's configuration that sessions do not get; null if there are none. */
export function unusedUserConfig(context: AppContext, state: GroupState, ids: readonly SessionId[]): string | null {
  const { world, env } = context;
  const isInherited = ids.every((id) => state.sessions.get(id)?.definition.inherit === 'user');
  if (isInherited) return null;
  const { folder, settings, state: own } = readUserClaude(world, env);
  const parts = ['CLAUDE.md', 'rules', 'skills', 'commands', 'agents', 'output-styles'].filter((name) => {
    const path = join(folder, name);
    const kind = world.files.info(path)?.kind;
    return kind === 'file' || (kind === 'folder' && world.files.list(path).length > 0);
  });
  const inSettings = ['permissions', 'hooks', 'env', 'model'].filter((key) => settings[key] !== undefined);
  const all = [
    ...parts,
    ...(inSettings.length === 0 ? [] : [`settings.json (${inSettings.join(', ')})`]),
    ...(Object.keys(object(own.mcpServers)).length === 0 ? [] : ['MCP servers']),
  ];
  if (all.length === 0) return null;
  const how = `Include it with: ${remedyFor(context, state)(['--inherit', 'user'], 'inherit: user')}`;
  return `Your own claude configuration in ${folder} is not used: ${all.join(', ')}. ${how}`;
}
