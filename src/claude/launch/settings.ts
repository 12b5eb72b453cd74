/**
 * The two settings files of a worker: `--settings FILE`, which overrides the project's settings, and settings.json in
 * its config dir. claude silently ignores a faulty file, including its deny rules, so both are built here and read
 * back.
 */

import { permissionModes } from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject, type JsonObject, parseJson } from '../../store/json.ts';
import { schema } from '../../store/schema.ts';
import { issueSentence } from '../../store/yaml-text.ts';
import { list, object, objects } from '../lenient.ts';
import { attemptMark } from './attempt-mark.ts';
import {
  cloudVariables,
  type Environment,
  isOn,
  isSecret,
  loaderVariables,
  managedSwitch,
  managedVariables,
  memoryVariable,
  providerSwitches,
  proxyVariables,
  restatedVariables,
  steeringVariables,
  telemetrySwitches,
  telemetryVariables,
  untrustedSwitch,
} from './variables.ts';

/** Our own controls, which a project could otherwise disable. */
const controlVariables = [
  attemptMark,
  managedSwitch,
  'CLAUDE_CONFIG_DIR',
  'CLAUDE_SECURESTORAGE_CONFIG_DIR',
  'CLAUDE_CODE_TMPDIR',
  'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC',
  'DISABLE_AUTOUPDATER',
  'CLAUDE_CODE_MAX_RETRIES',
  'CLAUDE_CODE_DISABLE_BACKGROUND_TASKS',
  'CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS',
  'CLAUDE_CODE_ENABLE_TODO_TOOLS',
  'CLAUDE_CODE_EXIT_AFTER_STOP_DELAY',
  'CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS',
  untrustedSwitch,
  memoryVariable,
];

/** Tools that schedule a later turn, which never comes because a session ends when it is idle. */
const laterTools = ['ScheduleWakeup', 'CronCreate', 'CronDelete', 'CronList'];

/**
 * Tools that create a worktree. If the session is already in a worktree, they would create the new one in the user's
 * checkout, and its work would end up on a branch that we never merge. Agents that a project defines with `isolation:
 * worktree` and those of a Workflow are not covered; their leftovers are named at the end of the session.
 */
const worktreeTools = ['EnterWorktree', 'ExitWorktree', 'Agent(isolation:worktree)'];

export function toolsNotOffered(isInWorktree: boolean): readonly string[] {
  return isInWorktree ? [...laterTools, ...worktreeTools] : laterTools;
}

/**
 * Settings that name programs for credentials or headers. An empty string overrides the project's value; null does not.
 */
export const helperSettings: readonly string[] = [
  'apiKeyHelper',
  'awsAuthRefresh',
  'awsCredentialExport',
  'gcpAuthRefresh',
  'otelHeadersHelper',
  'proxyAuthHelper',
];

export interface WorkerSettingsOptions {
  readonly deny?: readonly string[];
  /**
   * Settings of a template or of the session; its compaction and telemetry settings take effect; a project's do not.
   */
  readonly base?: JsonObject;
  /** Credential programs of the user's own settings. */
  readonly helpers?: Readonly<Record<string, string>>;
}

const statedVariables: readonly string[] = [
  ...controlVariables,
  ...managedVariables,
  ...restatedVariables,
  ...loaderVariables,
  ...steeringVariables,
];

/** Whether `--settings` sets this variable, so that no other settings file can change it. */
export function isStated(name: string): boolean {
  return statedVariables.includes(name);
}

/** Whether the variable decides who pays, or where requests go. */
export function isOfPayer(name: string): boolean {
  return managedVariables.includes(name) || restatedVariables.includes(name);
}

/**
 * The content of `--settings` for a worker with this environment. An unset variable is stated as empty, which claude
 * treats as unset. Secrets are left out: the environment has them, `managedSwitch` guards them, and the file outlives
 * the worker.
 */
export function workerSettings(caller: Environment, options: WorkerSettingsOptions = {}): JsonObject {
  const env = inBothSpellings(caller);
  const told: Environment = { ...env, ...telemetryOf(options.base ?? {}) };
  const kept = [...telemetryVariables, ...(usesProvider(env) ? cloudVariables : [])];
  const stated = [...statedVariables, ...telemetrySwitches, ...kept.filter((name) => told[name] !== undefined)];
  const values = stated.map((name) => [name, told[name] ?? ''] as const);
  return {
    env: Object.fromEntries(values.filter(([name, value]) => value === '' || !isSecret(name, value))),
    disableAllHooks: false,
    // Otherwise a long conversation ends in an error instead of being compacted.
    autoCompactEnabled: options.base?.autoCompactEnabled !== false,
    ...Object.fromEntries(helperSettings.map((name) => [name, options.helpers?.[name] ?? ''])),
    // If they were only in settings.json, the project's settings could override them.
    ...permissionsOf({ deny: [...list(object(options.base?.permissions).deny), ...(options.deny ?? [])] }),
  };
}

/**
 * Variables that no settings of ours can protect: when the project sets one of these, the session must not start. A
 * socket cannot be unset, tracing is on with any value, and a user's secret is not written into our settings.
 */
export function unprotectedVariables(caller: Environment): string[] {
  const env = inBothSpellings(caller);
  const restated = isOn(env[managedSwitch]) ? restatedVariables : [...restatedVariables, ...proxyVariables];
  const secrets = restated.filter((name) => (env[name] ?? '') !== '' && isSecret(name, env[name] ?? ''));
  const cloud = cloudVariables.filter((name) => env[name] === undefined || isSecret(name, env[name]));
  return ['ANTHROPIC_UNIX_SOCKET', 'LD_TRACE_LOADED_OBJECTS', ...secrets, ...(usesProvider(env) ? cloud : [])];
}

export function telemetryOf({ env }: JsonObject): Readonly<Record<string, string>> {
  const set = Object.entries(object(env)).filter(
    ([name, value]) =>
      typeof value === 'string' && (telemetrySwitches.includes(name) || telemetryVariables.includes(name)),
  );
  return Object.fromEntries(set as [string, string][]);
}

/**
 * Telemetry variables that our settings leave open: with telemetry on, a project could set one and send the data to its
 * own collector. `env` must include the template's variables.
 */
export function unprotectedTelemetry(env: Environment): string[] {
  if (!telemetrySwitches.some((name) => (env[name] ?? '') !== '')) return [];
  return telemetryVariables.filter((name) => env[name] === undefined || isSecret(name, env[name]));
}

function usesProvider(env: Environment): boolean {
  return providerSwitches.some((name) => isOn(env[name]));
}

/**
 * Copies a proxy variable to its other spelling (HTTP_PROXY, http_proxy). We would otherwise set the missing one to
 * empty, and tools that read it first would use no proxy.
 */
function inBothSpellings(env: Environment): Environment {
  const spelled = [...proxyVariables, 'ALL_PROXY', 'all_proxy'].flatMap((name) => {
    const other = name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase();
    const value = env[name] ?? env[other];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...env, ...Object.fromEntries(spelled) };
}

/** Dotted paths of settings without effect in a worker, because `--settings` states them itself. */
export function overriddenPaths(settings: JsonObject): string[] {
  return [
    ...Object.keys(object(settings.env)).flatMap((name) => (isStated(name) ? [`env.${name}`] : [])),
    ...['disableAllHooks', ...helperSettings].filter((name) => Object.hasOwn(settings, name)),
  ];
}

export interface HookProgram {
  readonly program: string;
  readonly args: readonly string[];
  /**
   * Absolute path of a program to run with the same arguments, for when the hook program is gone, or cannot start in a
   * deleted folder.
   */
  readonly instead?: string;
}

/** Every way in which a conversation starts or continues: each time, the session is given its task and its state. */
const sessionStartSources = 'startup|resume|clear|compact|fork';

export type ClaudeHookEvent = 'SessionStart' | 'PreCompact' | 'SessionEnd';

export interface OwnHook {
  readonly event: ClaudeHookEvent;
  readonly program: HookProgram;
}

/** Placeholder in settings for our hook program, which another host replaces with its own. */
export const hookElsewhere = '{{cca:hook}}';

/** Replaces the placeholder in hooks with the program that `own` returns for the hook's arguments. */
export function withHooksHere(settings: JsonObject, own: (args: readonly string[]) => HookProgram): JsonObject {
  const here = (hook: JsonObject): JsonObject => {
    if (hook.command !== hookElsewhere) return hook;
    const { program, args } = own(list(hook.args).map(String));
    return { ...hook, command: program, args: [...args] };
  };
  const entries = (all: unknown) => objects(all).map((one) => ({ ...one, hooks: objects(one.hooks).map(here) }));
  const hooks = Object.entries(object(settings.hooks)).map(([event, all]) => [event, entries(all)]);
  return settings.hooks === undefined ? settings : { ...settings, hooks: Object.fromEntries(hooks) };
}

/** The environment of our hook: nothing from a project, only what programs need to load on the user's machine. */
const hookVariables = [attemptMark, 'CLAUDE_CONFIG_DIR', ...loaderVariables, 'NIX_LD', 'NIX_LD_LIBRARY_PATH'];

/**
 * The same program in an environment of its own. Hooks get a project's variables, and Bun obeys some that an empty
 * value does not disable: `BUN_INSPECT_PRELOAD` runs code in it, `BUN_JSC_*` keeps it from starting.
 */
export function inCleanEnvironment(hook: HookProgram, env: Environment, projectPath: string): HookProgram {
  const kept = hookVariables.flatMap((name) => (env[name] === undefined ? [] : [`${name}=${env[name]}`]));
  // claude sets it as well, but then its whole environment would have to be passed on.
  kept.push(`CLAUDE_PROJECT_DIR=${projectPath}`);
  // The shell is needed because `env` takes a program path with a `=` for a variable.
  return { program: '/usr/bin/env', args: ['-i', ...kept, '/bin/sh', '-c', ...shellWords(hook)] };
}

function shellWords({ program, args, instead }: HookProgram): string[] {
  if (instead === undefined) return ['exec "$0" "$@"', program, ...args];
  const either = 'if [ -x "$1" ] && [ . -ef "$PWD" ]; then exec "$@"; fi; shift; exec "$0" "$@"';
  return [either, instead, program, ...args];
}

export interface ConfigSettingsInput {
  readonly base?: JsonObject;
  /** Ours: they give the session its task and its state after a start, a resume, a clear and a compaction. */
  readonly hooks?: readonly OwnHook[];
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  /** Patterns of instruction files above the project that claude would read, and that are not for this session. */
  readonly excludes?: readonly string[];
}

/** A hanging hook blocks the start; claude's default is ten minutes. */
const hookTimeoutSeconds = 10;

export function mergedSettings(input: ConfigSettingsInput): JsonObject {
  const { base = {}, hooks: ours = [], excludes = [] } = input;
  const theirs = object(base.permissions);
  const hooks = object(base.hooks);
  return {
    ...base,
    ...(excludes.length === 0 ? {} : { claudeMdExcludes: [...list(base.claudeMdExcludes), ...excludes] }),
    ...permissionsOf({
      ...theirs,
      allow: [...list(theirs.allow), ...(input.allow ?? [])],
      deny: [...list(theirs.deny), ...(input.deny ?? [])],
    }),
    ...(ours.length === 0 && base.hooks === undefined ? {} : { hooks: withOwn(hooks, ours) }),
  };
}

/** Appends our hooks to the others, each as its own entry because the length of an entry is limited. */
function withOwn(theirs: JsonObject, ours: readonly OwnHook[]): JsonObject {
  const hooks: Record<string, unknown> = { ...theirs };
  for (const { event, program } of ours) hooks[event] = [...list(hooks[event]), ownEntry(event, program)];
  return hooks;
}

function ownEntry(event: ClaudeHookEvent, { program, args }: HookProgram): JsonObject {
  return {
    ...(event === 'SessionStart' ? { matcher: sessionStartSources } : {}),
    hooks: [{ type: 'command', command: program, args: [...args], timeout: hookTimeoutSeconds }],
  };
}

/** `permissions` without empty lists; `{}` when nothing is left. */
function permissionsOf(permissions: JsonObject): JsonObject {
  const kept = Object.entries(permissions).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  return kept.length === 0 ? {} : { permissions: Object.fromEntries(kept) };
}

/** Checks a settings file as claude reads it. Fails with `write-failed` and the reason why claude would ignore it. */
export function readBackCheck(path: string, content: string | null): Result<JsonObject> {
  const refuse = (what: string) =>
    fail(
      'write-failed',
      `${path} ${what}; claude would silently ignore all of it.`,
      'Correct the settings of the session or its template.',
    );
  if (content === null) return refuse('does not exist');
  const value = parseJson(content);
  if (value === undefined) return refuse('is not valid JSON');
  if (!isObject(value)) return refuse('is not a JSON object');
  const [fault] = settingsSchema().safeParse(value).error?.issues ?? [];
  return fault === undefined ? ok(value) : refuse(`is invalid: ${issueSentence(fault, value)}`);
}

/** Settings whose type is often wrong; a wrong one makes claude ignore the whole file. */
const settingsSchema = schema((z) => {
  const texts = z.array(z.string());
  const [text, flag, number] = [z.string().optional(), z.boolean().optional(), z.number().optional()];
  const named = <T>(names: readonly string[], type: T) => Object.fromEntries(names.map((name) => [name, type]));
  const hook = z
    .looseObject({
      type: z.enum(['command', 'prompt', 'agent', 'http', 'mcp_tool']),
      command: text,
      args: texts.optional(),
      timeout: z.number().positive().optional(),
    })
    .refine(({ type, command }) => type !== 'command' || (command ?? '') !== '', 'a command is missing');
  return z.looseObject({
    ...named(['model', 'outputStyle', 'language', ...helperSettings], text),
    ...named(['cleanupPeriodDays', 'autoCompactWindow'], number),
    ...named(['disableAllHooks', 'autoCompactEnabled', 'includeGitInstructions', 'includeCoAuthoredBy'], flag),
    ...named(['alwaysThinkingEnabled', 'enableAllProjectMcpServers'], flag),
    env: z.record(z.string(), z.string()).optional(),
    permissions: z
      .looseObject({
        ...named(['allow', 'deny', 'ask'], texts.optional()),
        defaultMode: z.enum(permissionModes).optional(),
      })
      .optional(),
    hooks: z.record(z.string(), z.array(z.looseObject({ matcher: text, hooks: z.array(hook) }))).optional(),
  });
});
