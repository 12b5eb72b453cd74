/** The user's own configuration of claude: settings, trust, MCP servers, login. Read only. */

import { dirname, join } from 'node:path';
import { defined } from '../../core/defined.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { isObject, type JsonObject } from '../../store/json.ts';
import type { World } from '../../system/world.ts';
import { list, object } from '../lenient.ts';
import { chooseLogin, type Login } from './login.ts';
import { checkoutRoots, type SettingsFile, settingsAt } from './project-settings.ts';
import { helperSettings, isOfPayer, isStated } from './settings.ts';
import { cloudVariables, isOn, providerSwitches } from './variables.ts';

type Caller = Readonly<Record<string, string | undefined>>;

export interface UserClaude {
  /** `~/.claude`, or the value of CLAUDE_CONFIG_DIR. */
  readonly folder: string;
  readonly settings: JsonObject;
  /** claude's own file: its `projects` contain trust and approvals, `mcpServers` the user's servers. */
  readonly state: JsonObject;
}

export function readUserClaude(world: World, caller: Caller): UserClaude {
  const { CLAUDE_CONFIG_DIR, HOME = '/' } = caller;
  const state = readObject(world, join(CLAUDE_CONFIG_DIR || HOME, '.claude.json'));
  return { ...readUserSettings(world, caller), state };
}

/** Without claude's own file, which may have megabytes. */
function readUserSettings(world: Pick<World, 'files'>, { CLAUDE_CONFIG_DIR, HOME = '/' }: Caller) {
  const folder = CLAUDE_CONFIG_DIR || join(HOME, '.claude');
  return { folder, settings: readObject(world, join(folder, 'settings.json')) };
}

/** The user's own instructions, which claude also finds above each project below the home folder. */
export function memoryOf({ folder }: UserClaude): string[] {
  return ['CLAUDE.md', 'rules/**'].map((name) => join(folder, name));
}

function statesOf({ files }: World, user: UserClaude, folders: readonly string[]): JsonObject[] {
  const projects = object(user.state.projects);
  const real = folders.flatMap((folder) => [folder, files.realPath(folder) ?? folder]);
  return [...new Set(real)].flatMap((folder) => (isObject(projects[folder]) ? [projects[folder]] : []));
}

/** claude's entry of a project: stored for its main checkout, whichever folder or worktree of it the session uses. */
function projectStates(world: World, user: UserClaude, projectPath: string): JsonObject[] {
  return statesOf(world, user, [projectPath, ...checkoutRoots(world, projectPath)]);
}

type Subject = Pick<SessionDefinition, 'projectPath' | 'trust' | 'untrusted'>;

/** Trust in a folder covers everything below it. */
export function isTrusted(world: World, user: UserClaude, { projectPath, trust, untrusted }: Subject): boolean {
  if (untrusted === true) return false;
  if (trust === true) return true;
  const folders = [projectPath, ...checkoutRoots(world, projectPath)].flatMap(withParents);
  return statesOf(world, user, folders).some(({ hasTrustDialogAccepted }) => hasTrustDialogAccepted === true);
}

/** Whether the user allowed CLAUDE.md of the project to import files from outside. */
export function mayImport(world: World, user: UserClaude, projectPath: string): boolean {
  return projectStates(world, user, projectPath).some((state) => state.hasClaudeMdExternalIncludesApproved === true);
}

function withParents(folder: string): string[] {
  return dirname(folder) === folder ? [folder] : [folder, ...withParents(dirname(folder))];
}

/** The servers in `.mcp.json` of a project: those the user approved in plain claude or by option, and the others. */
export function projectServers(
  world: World,
  user: UserClaude,
  definition: Subject & Pick<SessionDefinition, 'projectMcp'>,
  ofProject: readonly SettingsFile[],
): { readonly approved: JsonObject; readonly leftOut: readonly string[] } {
  const { projectPath, projectMcp = 'approved', untrusted } = definition;
  const servers = serversIn(world, projectPath);
  // A project approves its own servers only if the user trusts it.
  const trusted = isTrusted(world, user, definition) ? ofProject.map(({ settings }) => settings) : [];
  const said = [user.settings, ...projectStates(world, user, projectPath), ...trusted];
  const isNamed = (key: string, name: string) => said.some((one) => list(one[key]).includes(name));
  const isAll = said.some(({ enableAllProjectMcpServers }) => enableAllProjectMcpServers === true);
  const isApproved = (name: string) => projectMcp === 'all' || isAll || isNamed('enabledMcpjsonServers', name);
  const named = Object.entries(servers).filter(([name]) => !isNamed('disabledMcpjsonServers', name));
  const wanted = projectMcp === 'none' || untrusted === true ? [] : named.filter(([name]) => isApproved(name));
  const leftOut = projectMcp === 'approved' ? named.filter((one) => !wanted.includes(one)) : [];
  return { approved: Object.fromEntries(wanted), leftOut: leftOut.map(([name]) => name) };
}

/** claude reads the file in the project's folder and in all above it; the nearest counts. */
function serversIn(world: World, projectPath: string): JsonObject {
  const found = withParents(projectPath).map((folder) => readObject(world, join(folder, '.mcp.json')).mcpServers);
  const servers = Object.assign({}, ...found.reverse().map(object));
  return Object.fromEntries(Object.entries(servers).filter(([, server]) => isObject(server)));
}

function readObject(world: Pick<World, 'files'>, path: string): JsonObject {
  try {
    return settingsAt(world, path);
  } catch {
    // An unreadable folder counts as empty.
    return {};
  }
}

/** The allow rules and folders that claude ignores in a project without trust. */
export function ignoredRules(ofProject: readonly SettingsFile[]): string[] {
  return ofProject.flatMap(({ settings }) => {
    const { allow, additionalDirectories } = object(settings.permissions);
    return [...list(allow).map(String), ...list(additionalDirectories).map((folder) => `folder ${folder}`)];
  });
}

/** In addition to payment: model names that only a gateway or a provider knows, and the lifetime of a helper's key. */
const besidePayer = /^ANTHROPIC_(?:(?:CUSTOM|DEFAULT_\w+)_MODEL\w*|MODEL|SMALL_FAST_MODEL)$|_API_KEY_HELPER_TTL_MS$/;

/** Programs for telemetry headers say nothing about the login. */
const loginHelpers = helperSettings.filter((name) => name !== 'otelHeadersHelper');

export interface UserLogin {
  /**
   * The caller's environment with the payment variables of the user's own settings, which override it, as in plain
   * claude.
   */
  readonly caller: Caller;
  readonly login: Login;
}

/** The login that plain claude would use for this caller. */
export function loginOf(world: Pick<World, 'files'>, caller: Caller): UserLogin {
  const { settings } = readUserSettings(world, caller);
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string';
  const said = Object.entries(object(settings.env)).filter(isText);
  const isLoginHelper = ([name]: readonly [string, string]) => loginHelpers.includes(name);
  const helpers = Object.fromEntries(Object.entries(settings).filter(isText).filter(isLoginHelper));
  const all = Object.fromEntries([...Object.entries(caller), ...said]);
  const usesCloud = providerSwitches.some((name) => isOn(all[name]));
  const payers = said.filter(([name]) => isOfPayer(name) || (usesCloud && cloudVariables.includes(name)));
  const isOwn = payers.length > 0 || Object.keys(helpers).length > 0;
  const beside = isOwn ? said.filter(([name]) => besidePayer.test(name)) : [];
  const merged = { ...caller, ...Object.fromEntries([...payers, ...beside]) };
  return { caller: merged, login: chooseLogin(merged, helpers) };
}

/** The user's settings and MCP servers for `inherit: user`, without what decides who pays. */
export function inheritedSettings(
  world: World,
  user: UserClaude,
  projectPath: string,
): { settings: JsonObject; servers: JsonObject } {
  const { permissions, hooks, model, outputStyle, language } = user.settings;
  const kept = Object.entries(object(user.settings.env)).filter(
    ([name]) => !isStated(name) && !cloudVariables.includes(name),
  );
  const env = kept.length > 0 ? Object.fromEntries(kept) : undefined;
  const states = [user.state, ...projectStates(world, user, projectPath)];
  return {
    settings: defined({ permissions, hooks, model, outputStyle, language, env }),
    servers: Object.assign({}, ...states.map(({ mcpServers }) => object(mcpServers))),
  };
}
