/** Finds reasons for which sessions would fail at their start. */
import { join } from 'node:path';
import { workerEnvironment } from '../../claude/launch/environment.ts';
import {
  checkFound,
  findSettings,
  parseSettings,
  type SettingsFile,
  sharedSettingsFile,
} from '../../claude/launch/project-settings.ts';
import { loginOf } from '../../claude/launch/user-claude.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';
import { isolationOf } from '../../core/plan/isolation.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { groupPaths, sessionPaths } from '../../store/paths.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { checkLimits } from '../../worker/limits.ts';
import type { AppContext } from '../app-context.ts';
import { unusedProjectConfig } from './unused-config.ts';

/**
 * Checks the claude settings in the project of each session. A worktree has the committed settings, and claude also
 * reads the local settings of the main checkout. Reads each project once. Fails with `spawn-failed`.
 */
export async function projectCheck(
  context: AppContext,
  root: string,
  state: GroupState,
  ids: readonly SessionId[],
  isRehearsal = false,
): Promise<(id: SessionId) => Result<void>> {
  const { world, env } = context;
  const found = new Map<string, readonly SettingsFile[]>();
  const keyOf = (id: SessionId) => `${isolationOf(state, id)} ${recordOf(state, id).definition.projectPath}`;
  for (const id of ids) {
    const { projectPath } = recordOf(state, id).definition;
    if (found.has(keyOf(id))) continue;
    found.set(keyOf(id), await settingsFor(context, projectPath, isolationOf(state, id) === 'worktree'));
  }
  return (id) => {
    const settings = found.get(keyOf(id)) ?? [];
    if (settings.length === 0) return ok(undefined);
    const { untrusted } = recordOf(state, id).definition;
    const { config, tmp } = sessionPaths(groupPaths(root, state.group.id), id);
    const own = { attemptId: '', configDir: config, tmpDir: tmp, untrusted };
    const rehearsal = isRehearsal ? { rehearsal: { baseUrl: 'http://127.0.0.1', home: tmp } } : {};
    const worker = workerEnvironment({ ...loginOf(world, env), ...own, ...rehearsal });
    try {
      return checkFound(world, settings, worker);
    } catch {
      return ok(undefined);
    }
  };
}

function recordOf({ sessions }: GroupState, id: SessionId): SessionRecord {
  return sessions.get(id) as SessionRecord;
}

async function settingsFor(
  context: AppContext,
  projectPath: string,
  isApart: boolean,
): Promise<readonly SettingsFile[]> {
  try {
    if (!isApart) return findSettings(context.world, projectPath);
    return [...(await committedSettings(context, projectPath)), ...findSettings(context.world, projectPath, [])];
  } catch {
    return [];
  }
}

async function committedSettings({ world, env }: AppContext, projectPath: string): Promise<readonly SettingsFile[]> {
  const { askOwn } = await import('../../git/run-git.ts');
  const result = await askOwn({ world, env }, projectPath, ['show', `HEAD:./.claude/${sharedSettingsFile}`]);
  if (!result.ok || result.value.exitCode !== 0) return [];
  const path = join(projectPath, '.claude', sharedSettingsFile);
  return [{ path, settings: parseSettings(Buffer.from(result.value.stdout)) }];
}

/** Fails with `usage` if a session needs a worktree and git is missing. */
export async function checkGit(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<Result<undefined>> {
  const first = ids.find((id) => isolationOf(state, id) === 'worktree');
  if (first === undefined) return ok(undefined);
  const { askOwn } = await import('../../git/run-git.ts');
  const result = await askOwn({ world, env }, '/', ['--version']);
  if (result.ok) return ok(undefined);
  const { name } = (state.sessions.get(first) as SessionRecord).definition;
  const { message, next, nextInPlace } = result.failure;
  return fail('usage', `Session ${sessionLabel(first, name)} gets a git worktree: ${message}`, nextInPlace ?? next);
}

/** Checks whether a session can get its worktree and permission mode. Checks each project once. */
export function startCheck(context: AppContext, state: GroupState, isRehearsal = false) {
  const known = new Map<string, Promise<Result<void>>>();
  return async (id: SessionId, mode: string): Promise<readonly Result<void>[]> => {
    const { definition, workspace } = recordOf(state, id);
    const { projectPath, repository } = definition;
    const results = isRehearsal ? [] : [checkMode(context, mode)];
    if (repository === undefined || workspace !== undefined || isolationOf(state, id) !== 'worktree') return results;
    const { checkOrigin } = await import('../../git/worktrees/workspace.ts');
    const result = known.get(projectPath) ?? checkOrigin(context, { projectPath, repository });
    known.set(projectPath, result);
    return [...results, await result];
  };
}

/** Fails with `usage` and the first session that cannot get its worktree or limits. */
export async function checkStarts(
  context: AppContext,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<Result<undefined>> {
  const canStart = startCheck(context, state, true);
  for (const id of ids) {
    const { definition } = recordOf(state, id);
    const results = [checkLimits(definition, context.world.processes), ...(await canStart(id, ''))];
    const refused = results.find((one) => !one.ok && one.failure.reason !== 'project-missing');
    if (refused === undefined || refused.ok) continue;
    const { message, next } = refused.failure;
    return fail('usage', `Session ${sessionLabel(id, definition.name)}: ${message}`, next);
  }
  return ok(undefined);
}

/** Checks whether the programs of setup and acceptance commands are on PATH; set-up may install others. */
export function commandCheck({ world, env }: AppContext, state: GroupState) {
  const known = new Map<string, Promise<boolean>>();
  const isFound = async (word: string): Promise<boolean> => {
    const shell = { program: '/bin/sh', args: ['-c', 'command -v -- "$0"', word], cwd: '/', timeoutMs: 10_000 };
    const result = await world.processes.run({ ...shell, env: { PATH: env.PATH ?? '/usr/bin:/bin' } });
    return !result.ok || result.value.exitCode === 0;
  };
  return async (id: SessionId): Promise<Result<void>> => {
    const { setup, accept, host, requires } = recordOf(state, id).definition;
    const isSetUp = setup !== undefined && isolationOf(state, id) === 'worktree';
    const [what, command = ''] = isSetUp ? ['setup', setup] : ['accept', accept];
    // Check only plain command names, no shell syntax or paths.
    const word = /^\s*(?:\w+=[\w./:,-]*\s+)*([A-Za-z][\w.+-]*)(?=\s|;|$)/.exec(command)?.[1];
    if (word === undefined || host !== undefined || requires !== undefined) return ok(undefined);
    const result = known.get(word) ?? isFound(word);
    known.set(word, result);
    if (await result) return ok(undefined);
    return fail('usage', `The program ${word} of its ${what} command is not on PATH.`, 'Install it, or correct PATH.');
  };
}

/** As root, claude refuses bypassPermissions unless IS_SANDBOX is set. */
function checkMode({ env }: AppContext, mode: string): Result<void> {
  if (mode !== 'bypassPermissions' || process.getuid?.() !== 0 || env.IS_SANDBOX === '1') return ok(undefined);
  const next = 'Run as another user; or, where this machine is a sandbox, set IS_SANDBOX=1.';
  return fail('usage', 'claude refuses the permission mode bypassPermissions for root.', next);
}

const columnsMax = 600;

/** Prints foreseeable failures of sessions, and differences to plain claude. */
export async function warnOfForeseen(
  context: AppContext,
  root: string,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<void> {
  const check = await projectCheck(context, root, state, ids);
  const hasCommands = commandCheck(context, state);
  for (const id of ids) {
    for (const [what, checked] of [
      ['not start', check(id)],
      ['fail', await hasCommands(id)],
    ] as const) {
      if (checked.ok) continue;
      const title = sessionLabel(id, recordOf(state, id).definition.name);
      context.notes.line(safeLine(`Session ${title} will ${what}: ${describeFailure(checked.failure)}`, columnsMax));
    }
  }
  for (const sentence of unusedProjectConfig(context, state, ids)) context.notes.line(safeLine(sentence, columnsMax));
}

/** Fails with `usage` if the project settings prevent the start of all sessions. */
export async function checkFirstProjects(context: AppContext, root: string, state: GroupState): Promise<Result<void>> {
  const first = [...state.sessions.values()].filter(({ definition }) => definition.dependsOn.length === 0);
  const ids = first.map(({ definition }) => definition.id);
  const checked = ids.map(await projectCheck(context, root, state, ids));
  const refused = checked.find((one) => !one.ok);
  if (refused === undefined || refused.ok || checked.some(({ ok }) => ok)) return ok(undefined);
  return { ok: false, failure: { ...refused.failure, reason: 'usage' } };
}
