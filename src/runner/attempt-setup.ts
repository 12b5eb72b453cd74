/**
 * Everything that must be true before an attempt's process exists: a program, a login, the project folder, the
 * generated config dir, the prompt. Done anew for every attempt, because any of it may have changed since the last.
 */
import { join } from 'node:path';
import { workerArgs } from '../claude/argv.ts';
import { prepareConfigDir } from '../claude/config-dir.ts';
import { conversationExists } from '../claude/conversation.ts';
import { type Environment, workerEnvironment } from '../claude/environment.ts';
import { checkLogin, chooseLogin } from '../claude/login.ts';
import { findClaude } from '../claude/program.ts';
import { checkProjectSettings } from '../claude/project-settings.ts';
import { resumePrompt } from '../claude/resume-prompt.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { sessionLabel, sessionUuid } from '../core/id.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../store/paths.ts';
import { isolatedBunFlags } from '../world/own-program.ts';
import { type World, writeFailure } from '../world/world.ts';
import type { Launch } from './worker.ts';

export interface PreparerOptions {
  readonly paths: GroupPaths;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  /** Base URL of the scripted API; present in a rehearsal. */
  readonly rehearsalUrl?: string;
}

export interface AttemptPreparer {
  /** Fails with claude-missing, project-missing, not-logged-in or write-failed. */
  prepare(state: GroupState, record: SessionRecord, attempt: Attempt): Promise<Result<Launch>>;
}

/** A preparer for one run: the program is looked for and the login checked once, before the first start. */
export function createPreparer(world: World, options: PreparerOptions): AttemptPreparer {
  const preferPinned = options.rehearsalUrl !== undefined;
  const claude = findClaude(world, options.callerEnv, { packageRoot: options.packageRoot, preferPinned });
  let login: Promise<Result<unknown>> | null = null;
  return {
    prepare: async (state, record, attempt) => {
      if (!claude.ok) return claude;
      const { program } = claude.value;
      const { id, projectPath } = record.definition;
      const paths = sessionPaths(options.paths, id);
      if (world.files.info(projectPath)?.kind !== 'folder') return projectMissing(projectPath);
      try {
        const env = environment(world, options, paths, attempt);
        const settings = checkProjectSettings(world, projectPath, env);
        if (!settings.ok) return settings;
        login ??= checkLogin(world, program, env, projectPath);
        const loggedIn = await login;
        if (!loggedIn.ok) return loggedIn;
        return prepareFiles(world, options, { state, record, attempt, paths, program, env });
      } catch (error) {
        return { ok: false, failure: writeFailure(paths.folder, error) };
      }
    },
  };
}

function projectMissing(projectPath: string): Result<never> {
  return fail(
    'project-missing',
    `The project folder ${projectPath} does not exist any more or is not a folder.`,
    'Put it back and retry the session, or remove the session from the group.',
  );
}

function environment(world: World, options: PreparerOptions, paths: SessionPaths, attempt: Attempt): Environment {
  const home = join(options.paths.folder, 'rehearsal-home');
  if (options.rehearsalUrl !== undefined) world.files.makeFolder(home);
  world.files.makeFolder(paths.config);
  world.files.makeFolder(paths.tmp);
  return workerEnvironment({
    caller: options.callerEnv,
    attemptId: attempt.id,
    configDir: paths.config,
    tmpDir: paths.tmp,
    login: chooseLogin(options.callerEnv),
    ...(options.rehearsalUrl === undefined ? {} : { rehearsal: { baseUrl: options.rehearsalUrl, home } }),
  });
}

interface Subject {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  readonly program: string;
  readonly env: Environment;
}

/** Writes config dir and prompt, and puts the command line together. */
function prepareFiles(world: World, options: PreparerOptions, subject: Subject): Result<Launch> {
  const { state, record, attempt, paths, program, env } = subject;
  const { definition } = record;
  const config = prepareConfigDir(world, {
    paths,
    env,
    instructions: instructionsFor(world, options, state, record),
    settings: { sessionStart: sessionStartHook(world, options) },
  });
  if (!config.ok) return config;
  const claudeSessionId = record.claudeSessionIds.at(-1) ?? sessionUuid(definition.id);
  const continues = conversationExists(world, paths.config, claudeSessionId);
  const failure = record.lastFailure;
  const prompt = resumePrompt({
    task: definition.prompt,
    kind: attempt.kind,
    continues,
    ...(failure === undefined ? {} : { failure }),
    messages: record.messages,
  });
  world.files.writeAtomic(paths.prompt, prompt);
  const model = record.model ?? definition.model ?? state.group.config.model;
  const { allowedTools } = definition;
  const args = workerArgs({
    ...(model === undefined ? {} : { model }),
    conversation: { kind: continues ? 'resume' : 'new', claudeSessionId },
    name: `${state.group.slug}/${sessionLabel(definition.id, definition.name)}`,
    permissionMode: definition.permissionMode ?? 'acceptEdits',
    settingsFile: paths.workerSettings,
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...(attempt.reservedUsd === undefined ? {} : { reservedUsd: attempt.reservedUsd }),
    rehearsal: options.rehearsalUrl !== undefined,
  });
  const { fifo, transcript, stderr } = paths;
  const files = { stdinFifo: fifo, stdoutFile: transcript, stderrFile: stderr };
  return ok({ spawn: { program, args, cwd: definition.projectPath, env, ...files, keepsOrphans: true }, prompt });
}

function instructionsFor(world: World, options: PreparerOptions, state: GroupState, record: SessionRecord) {
  const { definition } = record;
  const shared = world.files.readText(join(options.paths.sharedConfig, 'CLAUDE.md'));
  return {
    group: { name: state.group.name, description: state.group.description },
    session: {
      name: sessionLabel(definition.id, definition.name),
      description: definition.description,
      projectPath: definition.projectPath,
      task: definition.prompt,
    },
    dependencies: definition.dependsOn.flatMap((id) => {
      const dependency = state.sessions.get(id);
      if (!dependency) return [];
      const { name, projectPath } = dependency.definition;
      const { status } = dependency.state;
      const result = dependency.state.status === 'completed' ? { result: dependency.state.result } : {};
      return [{ name: sessionLabel(id, name), status, projectPath, ...result }];
    }),
    ...(shared === null ? {} : { shared }),
  };
}

function sessionStartHook(world: World, options: PreparerOptions) {
  const hookMain = join(options.packageRoot, 'src', 'hook-main.ts');
  return { program: world.machine.bun, args: [...isolatedBunFlags, hookMain, 'all', 'session-start'] };
}
