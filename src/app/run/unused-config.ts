/** What plain claude would use in the projects of a group and the group does not, said before money is spent. */
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
export function leftOutOfProjects(context: AppContext, state: GroupState, ids: readonly SessionId[]): string[] {
  const user = readUserClaude(context.world, context.env);
  const remedy = remedyFor(context, state);
  const said = ids.flatMap((id) => {
    const definition = state.sessions.get(id)?.definition;
    return definition === undefined ? [] : leftOutOf(context, user, definition, remedy);
  });
  return [...droppedSentence(context), ...new Set(said)];
}

function droppedSentence({ world, env }: AppContext): string[] {
  const nowhere = { attemptId: '', configDir: '', tmpDir: '' };
  const dropped = droppedVariables(env, workerEnvironment({ ...loginOf(world, env), ...nowhere }));
  if (dropped.length === 0) return [];
  const [what, it] = dropped.length === 1 ? ['A variable', 'it'] : ['Variables', 'they'];
  const names = listNames(dropped.sort(), namesShown);
  return [`${what} of your environment will not reach sessions, which need what ${it} would change: ${names}`];
}

type Remedy = (option: readonly string[], entry: string) => string;

/** A command for a group that is there, else the entry of its workflow. */
function remedyFor(context: AppContext, state: GroupState): Remedy {
  const id = storedGroupId(context, state);
  return (option, entry) =>
    id === undefined ? `\`${entry}\` in the group of the workflow` : commandText(['group', 'edit', id, ...option]);
}

/** The id of a group that is on disk; a workflow that is only looked at has made none. */
export function storedGroupId(context: AppContext, { group: { id } }: GroupState): GroupId | undefined {
  const found = context.root();
  return found.ok && context.world.files.info(groupPaths(found.value, id).events) !== null ? id : undefined;
}

function leftOutOf({ world }: AppContext, user: UserClaude, definition: SessionDefinition, remedy: Remedy): string[] {
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
    // What cannot be read is reported when the session starts.
    return [];
  }
}

/** claude ignores a settings file with a mistake as a whole, its deny rules too, and says nothing. */
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

/** What of the user's own configuration the sessions do not get; null when there is nothing, or all inherit it. */
export function leftOutOfUser(context: AppContext, state: GroupState, ids: readonly SessionId[]): string | null {
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
  const how = `Bring it in with: ${remedyFor(context, state)(['--inherit', 'user'], 'inherit: user')}`;
  return `Your own claude configuration in ${folder} is not used: ${all.join(', ')}. ${how}`;
}
