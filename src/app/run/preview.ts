/** `group plan` and `--dry-run`: what a run would do and need. Starts and writes nothing. */

import { join, relative } from 'node:path';
import { checkSupported, findClaude, forRehearsal, versionOf } from '../../claude/launch/program.ts';
import { readUserClaude } from '../../claude/launch/user-claude.ts';
import { list, object } from '../../claude/lenient.ts';
import { adviceText, commandText, see } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, ok, type Result } from '../../core/failure.ts';
import { ancestorsOf } from '../../core/graph.ts';
import type { SessionDefinition, SessionId } from '../../core/group.ts';
import type { HostSlots } from '../../core/plan/decision.ts';
import { isolationOf } from '../../core/plan/isolation.ts';
import { requiresRemote, unsatisfiableRequirements } from '../../core/plan/placement.ts';
import { costHistory, type Preview, previewOf } from '../../core/plan/preview.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { findRepository } from '../../git/git.ts';
import { askOwn, longTimeoutMs } from '../../git/run-git.ts';
import { foreseenNotes } from '../../git/worktrees/workspace.ts';
import { groupPaths, worktreesFolder } from '../../store/paths.ts';
import type { Files } from '../../system/world.ts';
import type { ResolvedConfig } from '../../template/config-layers.ts';
import { plural } from '../../view/format.ts';
import type { Missing, PlanDetails } from '../../view/plan.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { titleOf } from '../../view/wording.ts';
import { checkLimits } from '../../worker/limits.ts';
import {
  frozenTemplates,
  generatedConfig,
  permissionModeOf,
  type TemplateStore,
} from '../../worker/prepare/generated-config.ts';
import { lackingSetup } from '../../worker/prepare/lacking-setup.ts';
import { composeFiles } from '../../worker/session-variables.ts';
import type { AppContext } from '../app-context.ts';
import { checkClaudeLogin } from '../check/machine.ts';
import { checkAccepted, judgeCheck } from '../claude-check/checks.ts';
import { lastCheckOf } from '../claude-check/gate.ts';
import { dayBudget, readUserConfig } from '../config/user-config.ts';
import { readIn, usedBeside } from '../create/nearby-projects.ts';
import { presentUsage, readSamples, readStanding } from '../watch/live-view.ts';
import { checkGit, commandCheck, projectCheck, startCheck } from './run-check.ts';
import { storedGroupId, unusedProjectConfig, unusedUserConfig } from './unused-config.ts';

const sentenceColumnsMax = 600;

export interface PreviewOptions {
  readonly rehearsal: boolean;
  readonly acceptClaude?: string | undefined;
}

export interface RunPreview extends PlanDetails {
  readonly configs: Configs;
}

/** The copies in the folder of the group, or the templates of a group that does not exist yet. */
export type PreviewTemplates = TemplateStore | 'frozen';

export async function previewRun(
  context: AppContext,
  root: string,
  state: GroupState,
  templates: PreviewTemplates,
  options: PreviewOptions,
): Promise<RunPreview> {
  const paths = groupPaths(root, state.group.id);
  const store = templates === 'frozen' ? frozenTemplates(context.world, paths) : templates;
  const { live } = readStanding(context.world, { state, paths, hadRunner: false });
  const liveUsd = new Map([...live].map(([id, { usage }]) => [id, usage.costUsd]));
  const preview = previewOf(state, costHistory(readSamples(context.world, root, state)), liveUsd);
  const configs = configsFor(context, state, preview, store);
  const modes = modesOf(state, configs);
  const missing = await missingFor(context, root, { state, preview, configs, modes }, options);
  const warnings = options.rehearsal ? [] : await warningsFor(context, root, state);
  const day = options.rehearsal ? undefined : await dayBudget(context, root);
  const spentUsd = presentUsage(state, live).costUsd;
  const ids = preview.waves.flat();
  const ofUser = unusedUserConfig(context, state, ids);
  return {
    ...{ preview, spentUsd, missing, configs, modes, notes: powerNotes(state, configs), warnings },
    ...defined({ day }),
    leftOut: [...unusedProjectConfig(context, state, ids), ...(ofUser === null ? [] : [ofUser])],
    worktrees: await worktreeLines(context, root, state, ids),
  };
}

/** Reads the hosts of the fleet only if a session requires one. */
async function warningsFor(context: AppContext, root: string, state: GroupState): Promise<string[]> {
  const unasked = (): HostSlots => ({ text: 'it was not checked', cure: see('host', 'list') });
  if (unsatisfiableRequirements(state, unasked).size === 0) return [];
  const { describeHosts, fleetHosts: listHosts } = await import('../fleet/init.ts');
  const hosts = await listHosts(context, root);
  if (!hosts.ok) return [describeFailure(hosts.failure)];
  const lacks = unsatisfiableRequirements(state, (needs) => describeHosts(hosts.value, needs));
  return [...lacks.values()].map(({ message, advice }) => `${message} ${adviceText(advice)}`);
}

export type Configs = ReadonlyMap<SessionId, Result<ResolvedConfig>>;

function configsFor(
  { world, env }: AppContext,
  state: GroupState,
  { waves }: Preview,
  templates: TemplateStore,
): Configs {
  const user = readUserClaude(world, env);
  return new Map(
    waves.flat().map((id) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      return [id, generatedConfig(world, templates, state.group, definition, user)];
    }),
  );
}

function modesOf(state: GroupState, configs: Configs): ReadonlyMap<SessionId, string> {
  return new Map(
    [...configs].map(([id, config]) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      return [id, config.ok ? permissionModeOf(definition, config.value) : (definition.permissionMode ?? '')];
    }),
  );
}

/** Summarises the permissions and programs of config templates, because users do not reread them before a run. */
function powerNotes(state: GroupState, configs: Configs): string[] {
  const notes = new Map<string, string>();
  for (const [id, config] of configs) {
    const { configTemplate } = (state.sessions.get(id) as SessionRecord).definition;
    const reference = configTemplate ?? state.group.configTemplate;
    if (reference === undefined || !config.ok || notes.has(reference.digest)) continue;
    const { settings, mcp } = config.value;
    const rules = object(settings.permissions);
    const count = (kind: string) => list(rules[kind]).length;
    const programs = [
      ...Object.keys(object(settings.hooks)).map((event) => `${event} hooks`),
      ...Object.keys(object(mcp?.mcpServers)).map((name) => `the MCP server ${name}`),
    ];
    const starts = programs.length === 0 ? 'starts no programs' : `starts ${programs.join(', ')}`;
    const permissions = `allows ${count('allow')}, asks for ${count('ask')} and denies ${count('deny')} rules`;
    notes.set(reference.digest, `${reference.name} (${reference.origin}): ${permissions}, ${starts}`);
  }
  return [...notes.values()];
}

type Planned = Pick<RunPreview, 'preview' | 'configs' | 'modes'> & { readonly state: GroupState };

async function missingFor(
  context: AppContext,
  root: string,
  { state, preview, configs, modes }: Planned,
  { rehearsal, acceptClaude }: PreviewOptions,
): Promise<Missing[]> {
  const missing: Missing[] = [];
  const note = (result: Result<unknown>, sessionId?: SessionId) => {
    if (result.ok) return;
    const { message } = result.failure;
    const next = adviceText(result.failure.next);
    missing.push({ ...defined({ sessionId }), message, next });
  };
  const ofProject = await projectCheck(context, root, state, preview.waves.flat(), rehearsal);
  const canStart = startCheck(context, state, rehearsal);
  const hasCommands = commandCheck(context, state);
  for (const id of preview.waves.flat()) {
    const { definition } = state.sessions.get(id) as SessionRecord;
    if (context.world.files.info(definition.projectPath)?.kind !== 'folder') {
      const message = `The project folder ${definition.projectPath} is gone.`;
      missing.push({ sessionId: id, message, next: 'Restore it, or remove the session.' });
    }
    note(configs.get(id) as Result<ResolvedConfig>, id);
    note(ofProject(id), id);
    note(await hasCommands(id), id);
    note(checkLimits(definition, context.world.processes), id);
    for (const result of await canStart(id, modes.get(id) ?? '')) note(result, id);
  }
  if (preview.waves.length === 0) return missing;
  note(await checkGit(context, state, preview.waves.flat()));
  const { world, env, packageRoot } = context;
  const claude = findClaude(world, env, { packageRoot, ...(rehearsal ? forRehearsal : {}) });
  note(claude);
  if (!claude.ok || rehearsal) return missing;
  const checked = await lastCheckOf(context, root, claude.value.program);
  const version = checked === undefined ? await versionOf(world, claude.value.program, env) : ok(checked.version);
  if (version.ok) note(checkSupported(version.value));
  if (version.ok) note(checkAccepted(version.value, acceptClaude));
  if (checked !== undefined) note(judgeCheck(checked, state.group.config.acceptClaude));
  const definitions = preview.waves.flat().flatMap((id) => state.sessions.get(id)?.definition ?? []);
  // Only the logins of the hosts count.
  if (definitions.every((definition) => requiresRemote(state.group.config, definition))) return missing;
  const { level, message, next } = await checkClaudeLogin(context, claude.value);
  if (level === 'broken') missing.push({ message, next });
  else if (level === 'warning') context.notes.line(safeLine(`${message} ${next}`, sentenceColumnsMax));
  return missing;
}

// Sentences for `group plan`: size and location of the worktrees, and what does not work in them.

/** Empty if no session has a worktree. */
export async function worktreeLines(
  context: AppContext,
  root: string,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<string[]> {
  const { files } = context.world;
  const isolated = ids.filter((id) => isolationOf(state, id) === 'worktree');
  const definitions = isolated.map((id) => (state.sessions.get(id) as SessionRecord).definition);
  const tops = Map.groupBy(definitions, ({ projectPath }) => findRepository(files, projectPath)?.top ?? projectPath);
  if (tops.size === 0) return [];
  const costs: string[] = [];
  const lacks: string[][] = [];
  for (const [top, sessions] of tops) {
    costs.push(await costLine(context, top, sessions));
    const [{ projectPath, repository }] = sessions as [SessionDefinition];
    const isBegun = [...state.sessions.values()].some((one) => one.workspace?.repository === repository);
    if (repository !== undefined && !isBegun) lacks.push(await foreseenNotes(context, { projectPath, repository }));
  }
  const ofUser = await readUserConfig(context);
  const folder = (ofUser.ok ? ofUser.value.worktrees : undefined) ?? worktreesFolder(root);
  const merge = commandText(['group', 'merge', storedGroupId(context, state) ?? 'latest']);
  const where = `Worktrees are created below ${folder}. Your checkouts do not change until you run ${merge}`;
  const tripped = [...new Set(definitions.flatMap((definition) => brokenLinks(files, definition)))];
  const unlinked = definitions.flatMap((definition) => withoutWork(files, state, ids, definition));
  const uninstalled = [...new Set(definitions.flatMap((definition) => lackingSetup(context.world, definition)))];
  return [...costs, where, ...lacks.flat(), ...uninstalled, ...unlinked, ...tripped];
}

async function costLine(context: AppContext, top: string, sessions: readonly SessionDefinition[]): Promise<string> {
  const listed = await askOwn(context, top, ['ls-tree', '-r', '-l', 'HEAD'], { timeoutMs: longTimeoutMs });
  const lines = listed.ok && listed.value.exitCode === 0 ? listed.value.stdout.split('\n') : [];
  const bytes = lines.reduce((sum, line) => sum + (Number(/^\S+ \S+ \S+ +(\d+)\t/.exec(line)?.[1]) || 0), 0);
  const size = bytes < 1_000_000 ? 'less than 1 MB' : `about ${Math.round(bytes / 1_000_000)} MB`;
  const each = sessions.length === 1 ? '' : ' each';
  const setups = sessions.filter(({ setup }) => setup !== undefined).length;
  const runs = setups === 0 ? '' : `; setup runs ${setups === 1 ? 'once' : `${setups} times`} and may need more space`;
  return `${top}: ${plural(sessions.length, 'worktree')} of ${size}${each}${runs}`;
}

const parentContext = /^\s*(?:context|build)\s*:\s*["']?\.\.(?:\/|["']?\s*(?:#.*)?$)/m;

/** Sibling projects that this one uses and that other sessions change, without a dependency. */
function withoutWork(files: Files, state: GroupState, ids: readonly SessionId[], session: SessionDefinition): string[] {
  const { id, projectPath, dependsOn, repository } = session;
  const all = new Map([...state.sessions].map(([key, { definition }]) => [key, definition]));
  const paths = usedBeside(files, projectPath);
  const used = new Set(paths.map((path) => findRepository(files, path)?.repository ?? repository));
  return ids.flatMap((other) => {
    const its = all.get(other) as SessionDefinition;
    if (its.repository === repository || !used.has(its.repository)) return [];
    if (ancestorsOf(all, dependsOn).has(other) || ancestorsOf(all, its.dependsOn).has(id)) return [];
    const why = `it does not depend on ${titleOf(state, other)}, which changes it`;
    return [`${titleOf(state, id)} uses ${its.projectPath} as it is in your checkout: ${why}`];
  });
}

/** Tools that do not follow the symlinks to sibling repositories. */
function brokenLinks(files: Files, { projectPath }: SessionDefinition): string[] {
  const read = (name: string): string => readIn(files, projectPath, name);
  const top = findRepository(files, projectPath)?.top ?? projectPath;
  const found: string[] = [];
  const isOutside = (path: string) => relative(top, join(projectPath, path)).startsWith('..');
  const beside = [...read('package.json').matchAll(/"file:([^"]+)"/g)].some(([, path = '']) => isOutside(path));
  if (beside && read('yarn.lock').includes('yarn lockfile v1')) {
    const file = join(projectPath, 'package.json');
    found.push(
      `${file}: yarn 1 copies "file:" dependencies without following symlinks; use "link:", or --isolate none`,
    );
  }
  for (const name of composeFiles) {
    if (!parentContext.test(read(name)) || !isOutside('..')) continue;
    const file = join(projectPath, name);
    found.push(
      `${file}: a build with the context ".." does not follow symlinks; use --isolate none for sessions that build it`,
    );
  }
  return found;
}
