/** Everything an attempt needs before it starts: program, login, folder, config dir, prompt. Done for every attempt. */

import { join, relative } from 'node:path';
import { isSlashCommand } from '../../claude/control.ts';
import { conversationExists, removeEmptyConversation } from '../../claude/conversation.ts';
import { attendedArgs, workerArgs } from '../../claude/launch/argv.ts';
import { answerFirstRun, noteDecisions, pluginFolders, prepareConfigDir } from '../../claude/launch/config-dir.ts';
import { commandEnvironment, workerEnvironment } from '../../claude/launch/environment.ts';
import { gitGuidance, type InstructionsInput } from '../../claude/launch/instructions.ts';
import { checkLogin, chooseLogin } from '../../claude/launch/login.ts';
import { findClaude, forRehearsal } from '../../claude/launch/program.ts';
import {
  checkFound,
  checkSettings,
  findSettings,
  gitSettings,
  modelOfSettings,
  type SettingsFile,
} from '../../claude/launch/project-settings.ts';
import { type ResumePromptInput, repeatPrompt, resumePrompt } from '../../claude/launch/resume-prompt.ts';
import { telemetryOf, toolsNotOffered } from '../../claude/launch/settings.ts';
import {
  isTrusted,
  loginOf,
  mayImport,
  memoryOf,
  readUserClaude,
  type UserLogin,
} from '../../claude/launch/user-claude.ts';
import type { Environment } from '../../claude/launch/variables.ts';
import { contextLostCode, cutOffCode } from '../../claude/outcome.ts';
import { denyEdits, readRules, rulePaths, rulesForOwnCommand } from '../../claude/permission-rules.ts';
import { quoteAnswer } from '../../claude/questions.ts';
import { defined } from '../../core/defined.ts';
import type { ContextName } from '../../core/definitions.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition } from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';
import { leftAnswers } from '../../core/item.ts';
import { conversationId, type SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { findRepository, type Git } from '../../git/git.ts';
import type { JsonObject } from '../../store/json.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { SpawnOptions, World } from '../../system/world.ts';
import { linkFailure } from '../../system/write-failure.ts';
import { fillPrompt, type InputFile } from '../../template/fill-references.ts';
import type { Launch, PreparedWorkspace, WorkspaceInput } from '../host.ts';
import { checkLimits, limitsOf } from '../limits.ts';
import { frozenTemplates, generatedConfig, permissionModeOf, type TemplateStore } from '../prepare/generated-config.ts';
import {
  contextInstructions,
  contextOf,
  contextRules,
  noteHandover,
  ownHooks,
  ownPermissions,
} from '../prepare/session-context.ts';
import { createWorkspacePreparer } from '../prepare/workspace-preparer.ts';
import { sessionVariables } from '../session-variables.ts';
import type { CommandSlots } from './command-slots.ts';

export interface PreparerOptions {
  readonly paths: GroupPaths;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  /** The folder for new worktrees. */
  readonly worktrees: string;
  readonly rehearsalUrl?: string;
  /** The claude to start; absent = the installed one, unchecked. */
  readonly claude?: ClaudeGate;
  readonly slots: CommandSlots;
  readonly isAttended?: boolean;
}

export interface ChosenClaude {
  readonly program: string;
}

/** Admits a claude that passed the checks. */
export interface ClaudeGate {
  /**
   * The program for the next attempt: always the same file, or, after that was replaced or removed, the installed
   * claude once it was checked. `accepted` is a version that is used whatever its check says. Fails with
   * `claude-unproven` or `claude-missing`.
   */
  choose(accepted: string | undefined): Promise<Result<ChosenClaude>>;
  /** The login was checked before the run started and is not checked again. */
  readonly isLoggedIn?: boolean;
}

export interface AttemptPreparer {
  prepare(input: PrepareInput): Promise<Result<Launch>>;
  /** Inputs of the acceptance besides the record. */
  readonly forCommands: { readonly env: Environment; readonly git: Git; readonly worktrees: string };
}

export type PrepareInput = Pick<WorkspaceInput, 'state' | 'record' | 'attempt' | 'isolated' | 'noticed' | 'onStop'> & {
  /** The attempt runs on another host, which has its own program and login. */
  readonly isElsewhere?: boolean;
};

/** A preparer for one run: finds the program and checks the login once, before the first start. */
export function createPreparer(world: World, options: PreparerOptions): AttemptPreparer {
  const claude = options.claude ?? anyClaude(world, options);
  let login: Promise<Result<unknown>> | null = null;
  const git = { world, env: options.callerEnv };
  const templates = frozenTemplates(world, options.paths);
  const workplaces = createWorkspacePreparer(world, git, options.slots, options.worktrees);
  const commandEnv = commandEnvironment(options.callerEnv);
  return {
    forCommands: { env: commandEnv, git, worktrees: options.worktrees },
    prepare: async (input) => {
      const { record, state, isElsewhere = false } = input;
      const chosen = isElsewhere ? ok({ program: 'claude' }) : await claude.choose(state.group.config.acceptClaude);
      if (!chosen.ok) return chosen;
      const { program } = chosen.value;
      const limitable = isElsewhere ? ok(undefined) : checkLimits(record.definition, world.processes);
      if (!limitable.ok) return limitable;
      const paths = sessionPaths(options.paths, record.definition.id);
      try {
        const ours = [options.paths.sessions, paths.folder, paths.config, paths.tmp];
        const link = ours.find((path) => world.files.entryKind(path) === 'link');
        if (link !== undefined) return { ok: false, failure: linkFailure(link) };
        const isNew = world.files.makeFolder(paths.config);
        const env = environment(world, options, paths, input);
        const found = await workplaces.placeFor({ ...input, paths, env: commandEnv, isElsewhere });
        if (!found.ok) return found;
        const { folder, loss, linked, workspace } = found.value;
        const ofProject = findSettings(world, folder);
        const harmless = checkFound(world, ofProject, env);
        if (!harmless.ok) return harmless;
        // The key of a rehearsal is ours, a check takes as long as starting a session, and another host knows its own
        // login.
        const isOwn = options.rehearsalUrl === undefined && !isElsewhere;
        const { login: userLogin } = isOwn ? loginOf(world, options.callerEnv) : elsewhere;
        const asks = isOwn && claude.isLoggedIn !== true && userLogin.kind !== 'helper';
        if (asks) login ??= askLogin(world, options, { program, env, folder });
        const known = asks ? (login as Promise<Result<unknown>>) : Promise.resolve(ok(null));
        const systems = contextOf(record.definition);
        const about = isElsewhere ? {} : sessionVariables(git, state, { ...record, ...defined({ workspace }) });
        const place = { folder, ...defined({ loss, linked }), env: { ...env, ...about }, helpers: userLogin.helpers };
        const subject: Subject = { ...input, ...place, ofProject, systems, paths, program, templates, isNew };
        const launch = prepareFiles(world, options, subject);
        // Files written by then belong to the session; its project learns the session's id once it can start.
        const loggedIn = await known;
        // A problem with our own files says nothing about the login.
        if (!loggedIn.ok && loggedIn.failure.reason === 'write-failed') login = null;
        if (!loggedIn.ok) return loggedIn;
        if (launch.ok) {
          noteHandover(world, systems, { record, folder, paths });
          if (record.isolated)
            await (await import('../prepare/handover-files.ts')).copyIn(git, record, { paths, folder });
        }
        return launch;
      } catch (error) {
        return { ok: false, failure: systemFailure(paths.folder, error) };
      }
    },
  };
}

/** Found once. A rehearsal costs nothing, so its claude is not checked. */
function anyClaude(world: World, { callerEnv, packageRoot, rehearsalUrl }: PreparerOptions): ClaudeGate {
  const found = findClaude(world, callerEnv, { packageRoot, ...(rehearsalUrl === undefined ? {} : forRehearsal) });
  return { choose: async () => (found.ok ? ok({ program: found.value.program }) : found) };
}

/** As `checkLogin`, in a separate config dir, so that no setting of the session counts as a login. */
async function askLogin(
  world: World,
  { paths }: PreparerOptions,
  { program, env, folder }: Pick<Subject, 'program' | 'env' | 'folder'>,
): Promise<Result<unknown>> {
  const config = join(paths.folder, 'login-check');
  try {
    world.files.remove(config);
    world.files.makeFolder(config);
    return await checkLogin(world, program, { ...env, CLAUDE_CONFIG_DIR: config }, folder);
  } catch (error) {
    return { ok: false, failure: systemFailure(config, error) };
  } finally {
    world.files.remove(config);
  }
}

const elsewhere: UserLogin = { caller: {}, login: chooseLogin({}) };

function environment(
  world: World,
  options: PreparerOptions,
  paths: SessionPaths,
  { record, attempt, isElsewhere = false }: PrepareInput,
): Environment {
  const home = join(options.paths.folder, 'rehearsal-home');
  if (options.rehearsalUrl !== undefined) {
    world.files.makeFolder(home);
    // Commits are rehearsed too, with an obvious author unless the repository names its own.
    const identity = '[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n';
    world.files.writeAtomic(join(home, '.gitconfig'), identity);
  }
  world.files.makeFolder(paths.tmp);
  const { untrusted, memoryBytes } = record.definition;
  // An attempt on another host has the environment of that host.
  const { caller, login } = isElsewhere ? elsewhere : loginOf(world, options.callerEnv);
  const env = workerEnvironment({
    caller,
    attemptId: attempt.id,
    configDir: paths.config,
    tmpDir: paths.tmp,
    login,
    ...defined({ untrusted, memoryBytes }),
    isAttended: options.isAttended,
    ...(options.rehearsalUrl === undefined ? {} : { rehearsal: { baseUrl: options.rehearsalUrl, home } }),
  });
  // Prompts of shipped workflows call this program; another program of the same name comes first.
  return { ...env, PATH: `${env.PATH ?? '/usr/bin:/bin'}:${join(options.packageRoot, 'bin')}` };
}

interface Subject extends PrepareInput, PreparedWorkspace {
  readonly paths: SessionPaths;
  readonly program: string;
  readonly env: Environment;
  readonly templates: TemplateStore;
  readonly ofProject: readonly SettingsFile[];
  readonly helpers: UserLogin['login']['helpers'];
  readonly systems: readonly ContextName[];
  /** No file was ever written for the session. */
  readonly isNew: boolean;
}

function prepareFiles(world: World, options: PreparerOptions, subject: Subject): Result<Launch> {
  const { state, record, attempt, paths, program, env, folder, templates, systems, isNew } = subject;
  // For the session, its folder is the project.
  const definition = { ...record.definition, projectPath: folder };
  const user = readUserClaude(world, options.callerEnv);
  // The user's configuration is on this machine only.
  const inherited = definition.inherit === 'user' && subject.isElsewhere !== true ? user.folder : undefined;
  const generated = generatedConfig(world, templates, state.group, definition, user);
  if (!generated.ok) return generated;
  const { settings: base, claudeMd, files, mcp } = generated.value;
  const harmless = checkOwnSettings(world, base, subject);
  if (!harmless.ok) return harmless;
  const claudeSessionId = conversationId(record);
  const filled = fillPrompt(definition, state, paths.inputs);
  if (!isNew || filled.files.length > 0) writeInputs(world, paths, filled.files);
  const hooks = ownHooks(options.packageRoot, record.definition, subject.isElsewhere === true);
  const own = ownInstructions(state, { ...record, definition }, filled.prompt, gitSettings(base, subject.ofProject));
  const config = prepareConfigDir(world, {
    paths,
    isNew,
    env,
    helpers: subject.helpers,
    instructions: {
      ...own,
      shared: [...claudeMd.map(({ text }) => text), ...contextInstructions(systems, claudeSessionId)],
      rules: contextRules(systems),
      imports: subject.isElsewhere === true ? [] : importsOf(world, record.definition, folder, inherited),
    },
    settings: { base, hooks, ...ownRules(world, own, subject), excludes: inherited ? [] : memoryOf(user) },
    files,
    mcp,
    ...defined({ inherited }),
  });
  if (!config.ok) return config;
  noteDecisions(world, paths.config, folder, {
    hasTrustDialogAccepted: isTrusted(world, user, definition),
    hasClaudeMdExternalIncludesApproved: mayImport(world, user, folder),
  });
  if (!isNew) removeEmptyConversation(world, paths.config, claudeSessionId);
  const continues = conversationExists(world, paths.config, claudeSessionId);
  const words = promptInput(subject, filled.prompt, continues);
  // Its hooks read the session's task from this file, whatever messages follow.
  if (options.isAttended !== true) world.files.writeAtomic(paths.prompt, resumePrompt(words));
  else answerFirstRun(world, paths.config, folder, env);
  const prompt = continues && record.promptUnsent === true ? repeatPrompt(words) : resumePrompt(words);
  const chosen = record.model ?? definition.model ?? state.group.config.model;
  const model = chosen ?? modelOfSettings(base, subject.ofProject, env);
  const { allowedTools, outputSchema, fallbackModel, effort, maxTurns } = definition;
  const args = (options.isAttended === true ? attendedArgs : workerArgs)({
    ...defined({ model, fallbackModel, effort, maxTurns }),
    conversation: { kind: continues ? 'resume' : 'new', claudeSessionId },
    ...(continues ? defined({ resumeAt: record.resumeAt }) : {}),
    name: `${state.group.slug}/${sessionLabel(definition.id, definition.name)}`,
    permissionMode: permissionModeOf(definition, generated.value),
    asks: definition.ask === 'wait',
    settingsFile: paths.workerSettings,
    systemPromptFile: paths.systemPrompt,
    pluginFolders: pluginFolders(paths.config, files),
    ...defined({ allowedTools, outputSchema }),
    ...(mcp === null ? {} : { mcpConfigFile: paths.mcpConfig }),
    ...(filled.files.length === 0 ? {} : { addedFolders: [paths.inputs] }),
    ...defined({ reservedUsd: attempt.reservedUsd }),
  });
  const commands = record.messages.filter(isSlashCommand);
  return ok({ spawn: { program, args, cwd: folder, env, ...heldBy(world, subject) }, prompt, commands });
}

function promptInput({ record, attempt, loss }: Subject, task: string, continues: boolean): ResumePromptInput {
  const { lastFailure: failure, rejection } = record;
  return {
    task,
    kind: attempt.kind,
    // A cleared conversation knows nothing of earlier attempts either.
    continues: continues && record.cleared !== true,
    spokenWith: record.spokenWith === true,
    isTaskChanged: record.taskChanged === true,
    isRewound: continues && record.resumeAt !== undefined,
    contextLost: record.warnings.some(({ code }) => code === contextLostCode),
    isRolledBack: record.lost?.some(({ attempt: lost }) => lost.number === attempt.number - 1) === true,
    isCutOff: record.warnings.some(({ code }) => code === cutOffCode),
    ...defined({ failure, rejection, loss }),
    messages: record.messages.filter((text) => !isSlashCommand(text)),
    asks: record.definition.ask === 'wait',
    answers: leftAnswers(record).flatMap((item) => (item.left === 'quote' ? [quoteAnswer(item)] : [])),
  };
}

/** The user's CLAUDE.md where it applies, and CLAUDE.local.md of the checkout, which git keeps out of a worktree. */
export function importsOf(
  world: World,
  { projectPath }: SessionDefinition,
  folder: string,
  inherited: string | undefined,
): string[] {
  const { files } = world;
  const top = findRepository(files, projectPath)?.top ?? projectPath;
  const local = folder === projectPath ? [] : [...new Set([top, projectPath])].map((at) => join(at, 'CLAUDE.local.md'));
  const missing = local.filter((path) => files.info(join(folder, relative(projectPath, path))) === null);
  const all = [...(inherited === undefined ? [] : [join(inherited, 'CLAUDE.md')]), ...missing];
  return all.filter((path) => files.info(path)?.kind === 'file');
}

/** If the user's settings send telemetry, the project's telemetry settings matter too. */
function checkOwnSettings(world: World, base: JsonObject, { env, ofProject }: Subject): Result<void> {
  const harmless = checkSettings(world, base, 'The configuration of the session', env);
  const telemetry = telemetryOf(base);
  if (!harmless.ok || Object.keys(telemetry).length === 0) return harmless;
  return checkFound(world, ofProject, { ...env, ...telemetry });
}

function ownRules(world: World, own: InstructionsInput, subject: Subject): { allow: string[]; deny: string[] } {
  const { definition, isolated } = subject.record;
  const allow = [...ownPermissions(subject.systems), ...readsOf(own, subject), ...ownCommandsOf(definition)];
  // Targets of workspace links may be read, and are protected from claude's file tools.
  const linked = (subject.linked ?? []).flatMap(({ link, target }) => {
    const isFolder = world.files.info(target)?.kind === 'folder';
    return [link, target].flatMap((path) => rulePaths(path, isFolder));
  });
  allow.push(...linked.map((path) => `Read(${path})`));
  const deny = linked.map((path) => `Edit(${path})`);
  return { allow, deny: [...toolsNotOffered(isolated === true), ...guardedFolders(world, subject), ...deny] };
}

/** A later group runs commands and hooks from `.claude-code-agent`. An allow rule lifts the denial. */
function guardedFolders(world: World, { folder, record: { definition } }: Subject): string[] {
  if (definition.allowedTools?.some((rule) => rule.includes('.claude-code-agent'))) return [];
  const tops = [folder, definition.projectPath].map((path) => findRepository(world.files, path)?.top ?? path);
  return [...new Set(tops)].map((top) => denyEdits(top, '.claude-code-agent'));
}

/** The model wants to run the acceptance and set-up commands itself as well. */
function ownCommandsOf({ accept, setup }: SessionDefinition): string[] {
  return [accept, setup].flatMap((command) => (command === undefined ? [] : rulesForOwnCommand(command)));
}

/**
 * A session must read the work of its dependencies, and no user can permit that during the run. Other hosts lack those
 * folders.
 */
function readsOf({ dependencies }: InstructionsInput, { folder, isElsewhere }: Subject): string[] {
  if (isElsewhere === true) return [];
  const others = new Set(dependencies.map(({ projectPath, worktree }) => worktree?.folder ?? projectPath));
  others.delete(folder);
  return [...others].flatMap(readRules);
}

/** Its process's streams and limits. */
function heldBy(
  world: World,
  { record, attempt, paths }: Subject,
): Omit<SpawnOptions, 'program' | 'args' | 'cwd' | 'env'> {
  const { fifo, transcript, stderr } = paths;
  // Before claude sends the next request, the cost of its last answer is on disk.
  const streams = { stdinFifo: fifo, stdoutFile: transcript, stderrFile: stderr, syncsStdout: true as const };
  const limits = limitsOf(record.definition, world.processes);
  return { ...streams, contained: attempt.id, ...defined({ limits }) };
}

/** Rewritten for each attempt: a dependency may have been retried since, and the worker could have written there. */
function writeInputs(world: World, { inputs }: SessionPaths, files: readonly InputFile[]): void {
  world.files.remove(inputs);
  if (files.length > 0) world.files.makeFolder(inputs);
  for (const { name, text } of files) world.files.writeAtomic(join(inputs, name), text);
}

/** Our part of CLAUDE.md; `task` is the prompt with everything filled in. `settings`: see `gitSettings`. */
export function ownInstructions(
  state: GroupState,
  record: SessionRecord,
  task: string,
  settings: JsonObject,
): InstructionsInput {
  const { definition } = record;
  return {
    shared: [],
    rules: [],
    asks: definition.ask === 'wait',
    git: gitGuidance(settings),
    own: definition.config?.generateClaudeMd !== false,
    group: { name: state.group.name, description: state.group.description },
    session: {
      name: sessionLabel(definition.id, definition.name),
      description: definition.description,
      projectPath: definition.projectPath,
      task,
    },
    dependencies: definition.dependsOn.flatMap((id) => {
      const dependency = state.sessions.get(id);
      if (!dependency) return [];
      const { name, projectPath } = dependency.definition;
      const { status } = dependency.state;
      const worktree = defined({ worktree: dependency.workspace });
      const result = dependency.state.status === 'completed' ? { result: dependency.state.result } : {};
      return [{ name: sessionLabel(id, name), status, projectPath, ...worktree, ...result }];
    }),
  };
}
