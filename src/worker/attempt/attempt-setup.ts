/** Prepares an attempt: program, login, folder, config dir and prompt. */

import { basename, join, relative } from 'node:path';
import { isSlashCommand } from '../../claude/control.ts';
import { conversationExists, removeEmptyConversation } from '../../claude/conversation.ts';
import { attendedArgs, workerArgs } from '../../claude/launch/argv.ts';
import { answerFirstRun, noteDecisions, pluginFolders, prepareConfigDir } from '../../claude/launch/config-dir.ts';
import { commandEnvironment, workerEnvironment } from '../../claude/launch/environment.ts';
import {
  gitGuidance,
  type InstructionsInput,
  type ResumePromptInput,
  repeatPrompt,
  resumePrompt,
} from '../../claude/launch/instructions.ts';
import { chooseLogin } from '../../claude/launch/login.ts';
import { findClaude, forRehearsal } from '../../claude/launch/program.ts';
import {
  checkFound,
  checkSettings,
  findSettings,
  gitSettings,
  modelOfSettings,
  type SettingsFile,
} from '../../claude/launch/project-settings.ts';
import {
  type ClaudeHookEvent,
  hookElsewhere,
  type OwnHook,
  telemetryOf,
  toolsNotOffered,
} from '../../claude/launch/settings.ts';
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
import { cpmInstructions, cpmRules } from '../../context/cpm/state.ts';
import { noteInProject } from '../../context/handover/note.ts';
import { handoverProjectHere, type ProjectAssignment, resumeFileName } from '../../context/handover/projects.ts';
import { asksMark, chosenMark } from '../../context/hook-call.ts';
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
import { ownCommand } from '../../system/own-program.ts';
import { linkFailure } from '../../system/system-error.ts';
import type { SpawnOptions, World } from '../../system/world.ts';
import { fillPrompt, type InputFile } from '../../template/fill-references.ts';
import type { Launch, PreparedWorkspace, WorkspaceInput } from '../host.ts';
import { checkLimits, limitsOf } from '../limits.ts';
import { frozenTemplates, generatedConfig, permissionModeOf, type TemplateStore } from '../prepare/generated-config.ts';
import { copyIn } from '../prepare/handover-files.ts';
import { workspacePreparer } from '../prepare/workspace-preparer.ts';
import { sessionVariables } from '../session-variables.ts';
import type { CommandSlots } from './command-slots.ts';

export interface PreparerOptions {
  readonly paths: GroupPaths;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly worktrees: string;
  readonly rehearsalUrl?: string;
  /** Absent = the installed claude, unchecked. */
  readonly claude?: ClaudeGate;
  readonly slots: CommandSlots;
  readonly isAttended?: boolean;
}

/** Chooses a claude that passed the compatibility check. */
export interface ClaudeGate {
  /**
   * The program for the next attempt: always the same file. If that was replaced or removed, the installed claude is
   * checked and used. `accepted` is a version that is used even if its check fails. Fails with `claude-unproven` or
   * `claude-missing`.
   */
  choose(accepted: string | undefined): Promise<Result<{ readonly program: string }>>;
}

export interface AttemptPreparer {
  prepare(input: PrepareInput): Promise<Result<Launch>>;
  /** For acceptance and set-up commands. */
  readonly forCommands: { readonly env: Environment; readonly git: Git; readonly worktrees: string };
}

export type PrepareInput = Pick<WorkspaceInput, 'state' | 'record' | 'attempt' | 'isolated' | 'noticed' | 'onStop'> & {
  /** The attempt runs on another host, with that host's program and login. */
  readonly isElsewhere?: boolean;
};

export function createPreparer(world: World, options: PreparerOptions): AttemptPreparer {
  const claude = options.claude ?? anyClaude(world, options);
  const git = { world, env: options.callerEnv };
  const templates = frozenTemplates(world, options.paths);
  const prepareWorkspace = workspacePreparer(world, git, options.slots, options.worktrees);
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
        world.files.makeFolder(paths.config);
        const env = environment(world, options, paths, input);
        const found = await prepareWorkspace({ ...input, paths, env: commandEnv, isElsewhere });
        if (!found.ok) return found;
        const { folder, remadeFrom, linked, workspace } = found.value;
        const ofProject = findSettings(world, folder);
        const harmless = checkFound(world, ofProject, env);
        if (!harmless.ok) return harmless;
        // A rehearsal has its own key, and another host has its own login.
        const isOwn = options.rehearsalUrl === undefined && !isElsewhere;
        const { helpers } = (isOwn ? loginOf(world, options.callerEnv) : elsewhere).login;
        const systems = contextOf(record.definition);
        const about = sessionVariables(git, state, { ...record, ...defined({ workspace }) });
        const place = { folder, ...defined({ remadeFrom, linked }), env: { ...env, ...about }, helpers };
        const subject: Subject = { ...input, ...place, ofProject, systems, paths, program, templates };
        const launch = prepareFiles(world, options, subject);
        // The project's resume file is updated only once the session can start.
        if (launch.ok) {
          noteHandover(world, subject);
          if (record.isolated) await copyIn(git, record, { paths, folder });
        }
        return launch;
      } catch (error) {
        return { ok: false, failure: systemFailure(paths.folder, error) };
      }
    },
  };
}

function anyClaude(world: World, { callerEnv, packageRoot, rehearsalUrl }: PreparerOptions): ClaudeGate {
  const found = findClaude(world, callerEnv, { packageRoot, ...(rehearsalUrl === undefined ? {} : forRehearsal) });
  return { choose: async () => (found.ok ? ok({ program: found.value.program }) : found) };
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
    // Rehearsed commits have a recognizable author, unless the repository sets its own.
    const identity = '[user]\n\tname = Rehearsal\n\temail = rehearsal@localhost\n';
    world.files.writeAtomic(join(home, '.gitconfig'), identity);
  }
  world.files.makeFolder(paths.tmp);
  const { untrusted, memoryBytes } = record.definition;
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
  // Shipped workflows call this program. It comes last in PATH, so that a program of the user's takes precedence.
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
}

function prepareFiles(world: World, options: PreparerOptions, subject: Subject): Result<Launch> {
  const { state, record, attempt, paths, program, env, folder, templates, systems } = subject;
  // The session sees its workspace folder as the project.
  const definition = { ...record.definition, projectPath: folder };
  const user = readUserClaude(world, options.callerEnv);
  // The user's configuration exists on this machine only.
  const inherited = definition.inherit === 'user' && subject.isElsewhere !== true ? user.folder : undefined;
  const generated = generatedConfig(world, templates, state.group, definition, user);
  if (!generated.ok) return generated;
  const { settings: base, claudeMd, files, mcp } = generated.value;
  const harmless = checkOwnSettings(world, base, subject);
  if (!harmless.ok) return harmless;
  const claudeSessionId = conversationId(record);
  const filled = fillPrompt(definition, state, paths.inputs);
  writeInputs(world, paths, filled.files);
  const cpm = systems.includes('cpm') ? [{ rules: cpmRules, text: cpmInstructions(claudeSessionId) }] : [];
  const hooks = ownHooks(options.packageRoot, record.definition, subject.isElsewhere === true);
  const own = ownInstructions(state, { ...record, definition }, filled.prompt, gitSettings(base, subject.ofProject));
  const config = prepareConfigDir(world, {
    paths,
    env,
    helpers: subject.helpers,
    instructions: {
      ...own,
      shared: [...claudeMd.map(({ text }) => text), ...cpm.map(({ text }) => text)],
      rules: cpm.map(({ rules }) => rules),
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
  removeEmptyConversation(world, paths.config, claudeSessionId);
  const continues = conversationExists(world, paths.config, claudeSessionId);
  const words = promptInput(subject, filled.prompt, continues);
  // The session's hooks read the task from this file.
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
  return ok({ spawn: { program, args, cwd: folder, env, ...streamsAndLimits(world, subject) }, prompt, commands });
}

function promptInput({ record, attempt, remadeFrom }: Subject, task: string, continues: boolean): ResumePromptInput {
  const { lastFailure: failure, rejection } = record;
  return {
    task,
    kind: attempt.kind,
    // A cleared conversation does not contain earlier attempts.
    continues: continues && record.cleared !== true,
    spokenWith: record.spokenWith === true,
    isTaskChanged: record.taskChanged === true,
    isRewound: continues && record.resumeAt !== undefined,
    contextLost: record.warnings.some(({ code }) => code === contextLostCode),
    isRolledBack: record.lost?.some(({ attempt: lost }) => lost.number === attempt.number - 1) === true,
    isCutOff: record.warnings.some(({ code }) => code === cutOffCode),
    ...defined({ failure, rejection, remadeFrom }),
    messages: record.messages.filter((text) => !isSlashCommand(text)),
    asks: record.definition.ask === 'wait',
    answers: leftAnswers(record).flatMap((item) => (item.left === 'quote' ? [quoteAnswer(item)] : [])),
  };
}

/**
 * The user's CLAUDE.md if inherited, and the checkout's CLAUDE.local.md, which a worktree lacks because git ignores it.
 */
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

/** If the user's settings enable telemetry, the project's telemetry settings are checked too. */
function checkOwnSettings(world: World, base: JsonObject, { env, ofProject }: Subject): Result<void> {
  const harmless = checkSettings(world, base, 'The configuration of the session', env);
  const telemetry = telemetryOf(base);
  if (!harmless.ok || Object.keys(telemetry).length === 0) return harmless;
  return checkFound(world, ofProject, { ...env, ...telemetry });
}

function ownRules(world: World, own: InstructionsInput, subject: Subject): { allow: string[]; deny: string[] } {
  const { definition, isolated } = subject.record;
  // The model may run the acceptance and set-up commands itself.
  const commands = [definition.accept, definition.setup].flatMap((line) => line ?? []).flatMap(rulesForOwnCommand);
  const allow = [...ownPermissions(subject.systems), ...readsOf(own, subject), ...commands];
  // claude may read the targets of workspace links but not edit them.
  const linked = (subject.linked ?? []).flatMap(({ link, target }) => {
    const isFolder = world.files.info(target)?.kind === 'folder';
    return [link, target].flatMap((path) => rulePaths(path, isFolder));
  });
  allow.push(...linked.map((path) => `Read(${path})`));
  const deny = linked.map((path) => `Edit(${path})`);
  return { allow, deny: [...toolsNotOffered(isolated === true), ...guardedFolders(world, subject), ...deny] };
}

/** `.claude-code-agent` holds commands and hooks of later groups, so editing it needs an explicit allow rule. */
function guardedFolders(world: World, { folder, record: { definition } }: Subject): string[] {
  if (definition.allowedTools?.some((rule) => rule.includes('.claude-code-agent'))) return [];
  const tops = [folder, definition.projectPath].map((path) => findRepository(world.files, path)?.top ?? path);
  return [...new Set(tops)].map((top) => denyEdits(top, '.claude-code-agent'));
}

/**
 * A session must be able to read the work of its dependencies, and no user can permit that during the run. Other hosts
 * lack those folders.
 */
function readsOf({ dependencies }: InstructionsInput, { folder, isElsewhere }: Subject): string[] {
  if (isElsewhere === true) return [];
  const others = new Set(dependencies.map(({ projectPath, worktree }) => worktree?.folder ?? projectPath));
  others.delete(folder);
  return [...others].flatMap(readRules);
}

function streamsAndLimits(
  world: World,
  { record, attempt, paths }: Subject,
): Omit<SpawnOptions, 'program' | 'args' | 'cwd' | 'env'> {
  const { fifo, transcript, stderr } = paths;
  // Synced, so that the cost of a response is on disk before the next request.
  const streams = { stdinFifo: fifo, stdoutFile: transcript, stderrFile: stderr, syncsStdout: true as const };
  const limits = limitsOf(record.definition, world.processes);
  return { ...streams, contained: attempt.id, ...defined({ limits }) };
}

/** Rewritten for each attempt: a dependency may have been retried, and the worker can change these files. */
function writeInputs(world: World, { inputs }: SessionPaths, files: readonly InputFile[]): void {
  world.files.remove(inputs);
  if (files.length > 0) world.files.makeFolder(inputs);
  for (const { name, text } of files) world.files.writeAtomic(join(inputs, name), text);
}

/** Input of the generated CLAUDE.md. `task` is the filled-in prompt. `settings`: see `gitSettings`. */
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

// The context systems of a session: hooks, permissions and instructions.

/** In the order in which the model reads them. */
const systemsDefault: readonly ContextName[] = ['cpm', 'handover', 'faber'];

/** The chosen systems, or all: a system with nothing to do prints nothing. */
function contextOf({ context }: SessionDefinition): readonly ContextName[] {
  return context ?? systemsDefault;
}

const eventArguments = {
  SessionStart: 'session-start',
  PreCompact: 'pre-compact',
  SessionEnd: 'session-end',
} as const satisfies Record<ClaudeHookEvent, string>;

/** The session's task first, then each system. */
function ownHooks(packageRoot: string, definition: SessionDefinition, isElsewhere = false): OwnHook[] {
  const systems = contextOf(definition);
  // Only the other host knows how to start its copy of this program.
  const own = isElsewhere ? { program: hookElsewhere, args: [] } : ownCommand('hook', packageRoot);
  const chosen = definition.context === undefined ? [] : [chosenMark];
  const asks = definition.ask === 'wait' ? [asksMark] : [];
  const hook = (event: ClaudeHookEvent, system: string): OwnHook => ({
    event,
    program: {
      ...own,
      args: [...own.args, system, eventArguments[event], ...chosen, ...(system === 'task' ? asks : [])],
    },
  });
  const events: readonly ClaudeHookEvent[] = ['SessionStart', 'PreCompact', 'SessionEnd'];
  return [hook('SessionStart', 'task'), ...events.flatMap((event) => systems.map((system) => hook(event, system)))];
}

/** Allow rules for the commands that a context system instructs the model to run. */
function ownPermissions(systems: readonly ContextName[]): string[] {
  return systems.flatMap((system) =>
    modelCommands[system].map((word) => `Bash(claude-code-agent ${system} ${word}:*)`),
  );
}

const modelCommands: Readonly<Record<ContextName, readonly string[]>> = {
  cpm: ['list', 'show'],
  handover: ['list', 'find'],
  faber: ['phase', 'status', 'prime-context', 'session-end'],
};

/**
 * Writes the session's id into the project's resume file before the start, and the project's path for the hooks, which
 * in a worktree would find only a copy. If the id cannot be written, the hooks report that in hooks.log.
 */
function noteHandover(world: World, { record, folder, paths, systems }: Subject): void {
  const { projectPath } = record.definition;
  const own = systems.includes('handover') ? handoverProjectHere(world.files, projectPath) : null;
  // A link to a file with another name is ordinary work, and each worktree has its own.
  const isOther = own !== null && basename(world.files.realPath(own.file) ?? own.file) !== resumeFileName;
  const root = isOther ? folder : projectPath;
  const here = isOther ? handoverProjectHere(world.files, root) : own;
  if (here === null) {
    world.files.remove(paths.handover);
    return;
  }
  const assignment: ProjectAssignment = { root, file: relative(root, here.file) };
  world.files.writeAtomic(paths.handover, `${JSON.stringify({ version: 1, ...assignment })}\n`);
  noteInProject(world.files, here, conversationId(record), world.clock.now());
}
