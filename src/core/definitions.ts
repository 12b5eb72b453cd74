/**
 * The settings of a session and of a group: one row each. Types, command-line options, workflow keys, the JSON Schema
 * of workflows, the checks of values and the man page follow from these tables. A new setting needs a row here
 * and the code that uses it.
 */

export const permissionModes = ['acceptEdits', 'auto', 'bypassPermissions', 'default', 'dontAsk', 'plan'] as const;
export type PermissionMode = (typeof permissionModes)[number];

export const isolationModes = ['none', 'worktree'] as const;
/** Whether a session works in the project folder itself or in a git worktree of its own. */
export type IsolationMode = (typeof isolationModes)[number];

export const contextNames = ['cpm', 'faber', 'handover'] as const;
/** Systems that keep a session's state over compactions, pauses and crashes. */
export type ContextName = (typeof contextNames)[number];

/** The kinds of settings and their stored types. */
interface ValueOfKind {
  readonly line: string;
  readonly text: string;
  /** One word without spaces, safe as an argument of a command line. */
  readonly word: string;
  /** Words separated by commas. */
  readonly wordList: string;
  readonly name: string;
  readonly host: string;
  readonly command: string;
  /** US dollars. */
  readonly money: number;
  /** Above 0 and up to 1. */
  readonly share: number;
  readonly count: number;
  /** Typed in megabytes (a million bytes) from `min` to `max`, stored in bytes. */
  readonly megabytes: number;
  /** Typed as `1h30m`, stored in milliseconds. */
  readonly duration: number;
  /** Local time, `07:00`. */
  readonly clock: string;
  /** Default answers to items. */
  readonly answers: { readonly permission?: 'allow' | 'deny'; readonly question?: string };
  readonly flag: boolean;
  readonly choice: string;
  readonly labels: readonly string[];
  /** Patterns of paths from the top of the repository. */
  readonly globs: readonly string[];
  /** Permission rules as `claude --allowedTools` takes them. */
  readonly rules: readonly string[];
  readonly systems: readonly ContextName[];
  /** Sizes of waves, such as `3`, `20%` and `rest`. */
  readonly waves: readonly string[];
  /** The rule by which the next wave starts. */
  readonly waveRule: string;
  readonly object: Readonly<Record<string, unknown>>;
}

export interface Setting {
  readonly kind: keyof ValueOfKind;
  readonly help: string;
  readonly default?: string | boolean;
  readonly words?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** Likely values of a word; a word that differs from one of them by a typing mistake is refused. */
  readonly likely?: readonly string[];
  /** Placeholder of the option's value, where the kind's default says too little. */
  readonly value?: string;
  /** Key in a workflow; absent = the name without its unit, false = none. */
  readonly key?: string | false;
  /** Name of the option; absent = derived from the key, false = none. */
  readonly option?: string | false;
  /** Help of `--no-OPTION`, which exists wherever the option does and sets false. */
  readonly no?: string;
  /** Help of `--no-OPTION` where the setting is edited; it removes the setting. */
  readonly without?: string;
  /**
   * A session setting that its group may set for all sessions. Settings of where a session works and how its work is
   * checked are copied to the sessions when a workflow is read, because the project's own file applies as well; all
   * others are settings of the group (`sharedSettings`).
   */
  readonly group?: true;
  /** A session setting that the project's own file may set. */
  readonly project?: true;
  /** Of a group setting: false = not an option of `group run`. */
  readonly run?: false;
}

export type Settings = Readonly<Record<string, Setting>>;

export type ValuesOf<T extends Settings> = {
  readonly [Name in keyof T]?: T[Name] extends { readonly words: readonly (infer Word)[] }
    ? Word
    : ValueOfKind[T[Name]['kind']];
};

/** Where a session works and how its work is checked. */
export const workSettings = {
  isolate: {
    kind: 'choice',
    words: isolationModes,
    help: 'a git worktree of its own, or none: the project folder itself',
    default: 'whatever the group needs',
    group: true,
    project: true,
  },
  accept: {
    kind: 'command',
    help: 'shell command that must succeed before the session is completed',
    no: 'ignore the accept command of the project file',
    group: true,
    project: true,
  },
  acceptRetries: {
    kind: 'count',
    min: 0,
    max: 10,
    help: 'how often claude may fix what the accept command rejected',
    default: '1',
    group: true,
  },
  acceptTimeoutMs: {
    kind: 'duration',
    help: 'time limit of the accept command',
    default: '10m',
    group: true,
    project: true,
  },
  acceptIn: {
    kind: 'choice',
    words: ['fresh', 'worktree'],
    value: 'place',
    help: 'where the accept command runs: a fresh checkout of the commit, or the worktree with its uncommitted files',
    default: 'fresh',
    without: 'in a fresh checkout',
    group: true,
    project: true,
  },
  guard: {
    kind: 'globs',
    help: 'files whose versions before the session must pass as well, such as "tests/**"; none: no files',
    default: 'tests, CI configuration and what the accept command runs',
    without: 'the default files',
    group: true,
    project: true,
  },
  prove: {
    kind: 'flag',
    default: false,
    help: "require that the session's tests fail without its change",
    without: 'require no such proof',
    group: true,
    project: true,
  },
  setup: {
    kind: 'command',
    help: 'shell command that runs once in a new worktree',
    no: 'ignore the setup command of the project file',
    group: true,
    project: true,
  },
  setupTimeoutMs: {
    kind: 'duration',
    help: 'time limit of the setup command',
    default: '10m',
    group: true,
    project: true,
  },
  expectChanges: {
    kind: 'flag',
    default: false,
    help: 'warn if the session changed no files',
    without: 'do not warn if no files changed',
  },
  commit: {
    kind: 'flag',
    default: true,
    help: 'commit uncommitted work in its worktree',
    no: 'do not commit uncommitted work',
    group: true,
  },
} as const satisfies Settings;

/** claude's short model names. */
const modelAliases = ['sonnet', 'opus', 'haiku', 'fable', 'mythos', 'opusplan'] as const;

/** The other settings of a session. */
export const plainSettings = {
  name: { kind: 'name', key: false, help: 'short name for references, unique in the group' },
  description: { kind: 'line', help: 'what the session is for' },
  model: {
    kind: 'word',
    value: 'model',
    likely: modelAliases,
    help: "the session's model",
    without: "the group's model, or claude's own default",
  },
  fallbackModel: {
    kind: 'wordList',
    value: 'models',
    help: 'models to use, in this order, when the first one is overloaded or unavailable: a,b',
    without: 'use no other model',
    group: true,
  },
  effort: {
    kind: 'choice',
    words: ['low', 'medium', 'high', 'xhigh', 'max'],
    value: 'level',
    help: 'how much the model thinks',
    without: "the model's default",
    group: true,
  },
  maxTurns: {
    kind: 'count',
    min: 1,
    max: 100_000,
    help: 'maximum number of model turns per attempt',
    without: 'no limit on turns',
    group: true,
  },
  maxBudgetUsd: {
    kind: 'money',
    help: 'cap for this session alone, US dollars',
    without: 'no cap for this session alone',
  },
  permissionMode: {
    kind: 'choice',
    words: permissionModes,
    help: "claude's permission mode",
    without: 'use the mode in the settings, or acceptEdits',
    group: true,
  },
  ask: {
    kind: 'choice',
    words: ['deny', 'wait'],
    help: 'wait: questions and permission requests wait for a person in the inbox; deny: they are refused',
    default: 'deny',
    without: 'use the default',
    group: true,
  },
  allowedTools: {
    kind: 'rules',
    help: 'permission rules such as "Edit,Bash(git log:*)"',
    without: 'no permission rules of its own',
    group: true,
  },
  context: {
    kind: 'systems',
    help: 'context systems: cpm, faber, handover, or none',
    default: 'all',
    group: true,
  },
  outputSchema: { kind: 'object', option: false, help: 'JSON Schema for the result' },
  retries: {
    kind: 'count',
    min: 0,
    max: 20,
    help: 'further attempts after a transient failure',
    default: '2',
    without: 'use the default',
    group: true,
  },
  timeoutMs: {
    kind: 'duration',
    help: 'time limit of one attempt, such as 90s, 15m or 1h30m',
    without: 'no time limit',
    group: true,
  },
  stallTimeoutMs: {
    kind: 'duration',
    help: 'time without progress after which an attempt is stalled',
    default: '15m',
    without: 'use the default',
    group: true,
  },
  untrusted: {
    kind: 'flag',
    default: false,
    help: "do not run the project's hooks, and use only its harmless variables",
    without: 'trust the project',
    group: true,
  },
  trust: {
    kind: 'flag',
    default: false,
    help: "apply the project's allow rules, as if you had trusted it in claude",
    without: 'use your decision in claude',
    group: true,
  },
  projectMcp: {
    kind: 'choice',
    words: ['approved', 'all', 'none'],
    value: 'servers',
    help: "servers of the project's .mcp.json to start: those approved in plain claude, all, or none",
    default: 'approved',
    without: 'the servers approved in plain claude',
    group: true,
  },
  inherit: {
    kind: 'choice',
    words: ['user', 'none'],
    value: 'from',
    help: 'user: also use your own claude configuration (CLAUDE.md, settings, skills, agents, MCP servers)',
    default: 'none',
    without: 'do not use your own claude configuration',
    group: true,
  },
  memoryBytes: {
    kind: 'megabytes',
    // With less, not even a shell can run.
    min: 64,
    max: 10_000_000,
    help: 'memory limit in megabytes, for the commands of all sessions that run at once',
    without: 'no limit',
    group: true,
  },
  maxProcesses: {
    kind: 'count',
    // The kernel counts processes and threads alike: an idle claude on two cores has 8.
    min: 64,
    max: 4_000_000,
    help: 'limit on processes and threads, including those of claude; at least 64',
    without: 'no limit',
    group: true,
  },
  requires: {
    kind: 'labels',
    help: 'run only on fleet hosts with this label',
    without: 'run on any host that the group may use',
    group: true,
  },
  host: {
    kind: 'host',
    help: 'run only on this fleet host',
    without: 'run on any host that the group may use',
  },
} as const satisfies Settings;

type Shared<T extends Settings> = {
  readonly [Name in keyof T as T[Name] extends { group: true } ? Name : never]: T[Name];
};

/**
 * Settings of a group for all its sessions, whenever they were added: a session's own value wins, and lists are merged
 * (`withShared`).
 */
export const sharedSettings = Object.fromEntries(
  Object.entries<Setting>(plainSettings).filter(([, { group }]) => group),
) as Shared<typeof plainSettings>;

export const sessionSettings = { ...plainSettings, ...workSettings } as const satisfies Settings;

export const configSettings = {
  generateClaudeMd: {
    kind: 'flag',
    default: true,
    help: 'write a CLAUDE.md with group, task and dependencies',
    no: 'write no CLAUDE.md; put template texts into the system prompt',
  },
  generateSettings: {
    kind: 'flag',
    default: true,
    help: "use the config template's settings.json",
    no: 'do not use its settings.json',
  },
  generateCommands: {
    kind: 'flag',
    default: true,
    help: "use the config template's commands, skills, agents and rules",
    no: 'do not use them',
  },
  generateMcpConfig: {
    kind: 'flag',
    option: 'generate-mcp',
    default: true,
    help: "start the config template's MCP servers",
    no: 'do not start its MCP servers',
  },
  claudeMdTemplate: {
    kind: 'text',
    value: 'name',
    help: "prompt template or file that replaces the config template's CLAUDE.md",
  },
  settingsOverride: {
    kind: 'object',
    help: 'settings that override those of the templates; cannot be combined with generateSettings: false',
  },
  inheritFromGroup: {
    kind: 'flag',
    default: true,
    help: "use shared-config and the group's config template",
    no: 'use neither of them',
  },
} as const satisfies Settings;

/** Settings of the group itself. Options of `group run` are logged and hold for later runs until given again. */
export const ownGroupSettings = {
  model: {
    kind: 'word',
    value: 'model',
    likely: modelAliases,
    run: false,
    help: 'default model of the sessions',
    default: "claude's own",
    without: "use claude's default model",
  },
  maxBudgetUsd: { kind: 'money', help: 'hard cap for all sessions and attempts, US dollars', without: 'no cap' },
  onBudgetExceeded: {
    kind: 'choice',
    words: ['stop', 'warn', 'pause'],
    value: 'action',
    help: 'what to do when the cap is reached',
    default: 'pause',
  },
  warningThreshold: { kind: 'share', run: false, help: 'share of the budget at which to warn', default: '0.8' },
  maxConcurrentSessions: {
    kind: 'count',
    min: 1,
    max: 256,
    key: 'concurrent',
    help: 'maximum number of sessions at once',
    default: '3',
  },
  commandsAtOnce: {
    kind: 'count',
    min: 1,
    max: 256,
    help: 'maximum number of checkouts, setup and acceptance commands at once',
    default: 'cores',
    without: 'as many as there are cores',
  },
  errorThreshold: {
    kind: 'count',
    min: 1,
    max: 1_000_000,
    help: 'number of failed sessions after which nothing new starts',
    default: '2',
  },
  pauseOnError: {
    kind: 'flag',
    default: true,
    help: 'pause the group at the error threshold',
    no: 'fail the group at the error threshold',
  },
  respectDependencies: {
    kind: 'flag',
    default: true,
    help: 'start sessions after their dependencies',
    no: 'ignore dependencies',
  },
  onLimit: {
    kind: 'choice',
    words: ['wait', 'pause'],
    value: 'action',
    help: 'at a usage limit of the login: wait for its reset, or pause',
    default: 'wait',
    without: 'use the default',
  },
  warmCache: {
    kind: 'flag',
    default: true,
    help: 'let one of several similar sessions fill the prompt cache before the others start',
    no: 'start similar sessions at once',
  },
  minFreeMemoryBytes: {
    kind: 'megabytes',
    min: 0,
    max: 100_000_000,
    key: false,
    option: 'min-free-memory',
    help: 'free memory in MB that is required to start a session',
    default: '1 GiB',
    without: 'use the default',
  },
  shareCheckouts: {
    kind: 'flag',
    default: false,
    run: false,
    help: 'let sessions without a worktree share a checkout at the same time',
    without: 'one session at a time in a checkout',
  },
  acceptClaude: {
    kind: 'word',
    value: 'version',
    key: false,
    option: 'accept-claude',
    help: 'use this version of claude even if it fails a check',
    without: 'use no version of claude that fails a check',
  },
  where: {
    kind: 'choice',
    words: ['local', 'fleet', 'any'],
    value: 'hosts',
    help: 'where sessions run: on this host, on fleet hosts, or on any',
    default: 'any, once there is a fleet',
    without: 'on any host, once there is a fleet',
  },
  askTimeoutMs: {
    kind: 'duration',
    run: false,
    help: 'how long to wait for an answer before parking the session',
    default: '5m',
    without: 'use the default',
  },
  answerBy: {
    kind: 'clock',
    value: 'time',
    run: false,
    help: 'local time, such as 07:00, at which open items get their default answers',
    without: 'no default answers',
  },
  answers: {
    kind: 'answers',
    option: false,
    help: 'default answers at answerBy: permission (allow or deny) and question (a text)',
    default: 'deny, and the session decides itself',
  },
  waves: {
    kind: 'waves',
    run: false,
    value: 'list',
    help: 'sizes of the waves of a matrix, each followed by a decision, such as 3,20%,rest',
    without: 'all sessions start without a decision',
  },
  continueIf: {
    kind: 'waveRule',
    run: false,
    value: 'rule',
    help: 'when the next wave starts without a person, such as "accepted >= 2/3 and cost <= quote"',
    without: 'a person decides on each wave',
  },
  onLost: {
    kind: 'choice',
    words: ['move', 'wait'],
    option: false,
    help: 'when a host is lost: move its sessions, or wait for it',
    default: 'move',
  },
  onEvent: {
    kind: 'command',
    option: false,
    help: 'shell command that receives each end, pause and usage limit of the group as a line of JSON',
  },
} as const satisfies Settings;

export const groupSettings = { ...ownGroupSettings, ...sharedSettings } as const satisfies Settings;

export type SessionSettings = ValuesOf<typeof sessionSettings>;
export type ConfigSettings = ValuesOf<typeof configSettings>;
export type GroupSettings = ValuesOf<typeof groupSettings>;

/** Only the changes; null removes a setting. */
export type ChangesOf<T> = { readonly [K in keyof T]?: T[K] | null };
