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
/** Systems that carry a session's state over compactions, pauses and crashes. */
export type ContextName = (typeof contextNames)[number];

/** The kinds of settings, with what a definition stores for each. */
interface ValueOfKind {
  readonly line: string;
  readonly text: string;
  /** One word without blanks, which may become a word of a command line. */
  readonly word: string;
  /** Words with commas between. */
  readonly wordList: string;
  readonly name: string;
  readonly host: string;
  readonly command: string;
  /** US dollars. */
  readonly money: number;
  /** Above 0 and up to 1. */
  readonly share: number;
  readonly count: number;
  /** Written in megabytes (a million bytes) from `min` to `max`, stored in bytes. */
  readonly megabytes: number;
  /** Written as `1h30m`, stored in milliseconds. */
  readonly duration: number;
  /** Local time, `07:00`. */
  readonly clock: string;
  /** Default answers to items. */
  readonly answers: { readonly permission?: 'allow' | 'deny'; readonly question?: string };
  readonly flag: boolean;
  readonly choice: string;
  readonly labels: readonly string[];
  /** Permission rules as `claude --allowedTools` takes them. */
  readonly rules: readonly string[];
  readonly systems: readonly ContextName[];
  readonly object: Readonly<Record<string, unknown>>;
}

export interface Setting {
  readonly kind: keyof ValueOfKind;
  readonly help: string;
  readonly default?: string | boolean;
  readonly words?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** Of a word: those that it is likely to be; what differs from one of them by a slip is refused. */
  readonly likely?: readonly string[];
  /** Placeholder of the option's value, where the kind's own says too little. */
  readonly value?: string;
  /** Key in a workflow; absent = the name without its unit, false = none. */
  readonly key?: string | false;
  /** Name of the option; absent = made of the key, false = none. */
  readonly option?: string | false;
  /** Help of `--no-OPTION`, which stands wherever the option does and gives false. */
  readonly no?: string;
  /** Help of `--no-OPTION` where the setting is edited; it takes the setting away. */
  readonly without?: string;
  /**
   * Of a session: its group may give it for all sessions. What says where a session works and how its work is checked
   * is copied into the sessions of a workflow when that is read, because the project's own file has its say as well;
   * all else is a setting of the group (`sharedSettings`).
   */
  readonly group?: true;
  /** Of a session: the project's own file may give it. */
  readonly project?: true;
  /** Of a group: false = not an option of `group run`. */
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
    default: 'as the group needs it',
    group: true,
    project: true,
  },
  accept: {
    kind: 'command',
    help: 'shell command that must succeed before the session is completed',
    no: "without the accept command of the project's own file",
    group: true,
    project: true,
  },
  acceptRetries: {
    kind: 'count',
    min: 0,
    max: 10,
    help: 'how often claude may mend what the accept command found',
    default: '1',
    group: true,
  },
  acceptTimeoutMs: {
    kind: 'duration',
    help: 'longest time of the accept command',
    default: '10m',
    group: true,
    project: true,
  },
  setup: {
    kind: 'command',
    help: 'shell command that is run once in a new worktree',
    no: "without the setup command of the project's own file",
    group: true,
    project: true,
  },
  setupTimeoutMs: {
    kind: 'duration',
    help: 'longest time of the setup command',
    default: '10m',
    group: true,
    project: true,
  },
  expectChanges: {
    kind: 'flag',
    default: false,
    help: 'warn when the session changed no file',
    without: 'no warning when no file was changed',
  },
  commit: {
    kind: 'flag',
    default: true,
    help: 'commit what it leaves uncommitted in its worktree',
    no: 'leave uncommitted work of the worktree uncommitted',
    group: true,
  },
} as const satisfies Settings;

/** claude's own short names of models. */
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
    help: 'models that answer when the first is overloaded or not there, in this order: a,b',
    without: 'no other model answers',
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
    help: 'turns of the model that one attempt may take',
    without: 'as many turns as it needs',
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
    without: 'the mode of its settings, or acceptEdits',
    group: true,
  },
  ask: {
    kind: 'choice',
    words: ['deny', 'wait'],
    help: 'wait: questions and permission requests wait for a person in the inbox; deny: they are refused',
    default: 'deny',
    without: 'the default',
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
    help: 'what keeps its state: of cpm, faber and handover, or none',
    default: 'all',
    group: true,
  },
  outputSchema: { kind: 'object', option: false, help: 'JSON Schema to which the result is held' },
  retries: {
    kind: 'count',
    min: 0,
    max: 20,
    help: 'further attempts after a transient failure',
    default: '2',
    without: 'the default',
    group: true,
  },
  timeoutMs: {
    kind: 'duration',
    help: 'longest wall time of one attempt, such as 90s, 15m or 1h30m',
    without: 'no limit for one attempt',
    group: true,
  },
  stallTimeoutMs: {
    kind: 'duration',
    help: 'longest time without any progress',
    default: '15m',
    without: 'the default',
    group: true,
  },
  untrusted: {
    kind: 'flag',
    default: false,
    help: "the project's hooks do not run, and of its variables only harmless ones count",
    without: 'the project is trusted',
    group: true,
  },
  trust: {
    kind: 'flag',
    default: false,
    help: "the project's allow rules count, as if it had been trusted in plain claude",
    without: 'what was decided in plain claude counts',
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
    help: 'user: your own claude configuration (CLAUDE.md, settings, skills, agents, MCP servers) counts',
    default: 'none',
    without: 'nothing of your own claude configuration',
    group: true,
  },
  memoryBytes: {
    kind: 'megabytes',
    // With less, not even a shell can do anything.
    min: 64,
    max: 10_000_000,
    help: 'megabytes that its commands, with those of others that run at once, may take',
    without: 'no limit',
    group: true,
  },
  maxProcesses: {
    kind: 'count',
    // The kernel counts processes and threads alike: an idle claude on two cores has 8.
    min: 64,
    max: 4_000_000,
    help: "processes and threads that it may have at once, claude's own included; at least 64",
    without: 'no limit',
    group: true,
  },
  requires: {
    kind: 'labels',
    help: 'work only on a host of the fleet that has this label',
    without: 'on any host that may work for the group',
    group: true,
  },
  host: {
    kind: 'host',
    help: 'work only on this machine of the fleet',
    without: 'on any host that may work for the group',
  },
} as const satisfies Settings;

type Shared<T extends Settings> = {
  readonly [Name in keyof T as T[Name] extends { group: true } ? Name : never]: T[Name];
};

/**
 * What a group gives to all its sessions, whenever they were added: a value of the session's own counts instead, and
 * lists of both count together (`withShared`).
 */
export const sharedSettings = Object.fromEntries(
  Object.entries<Setting>(plainSettings).filter(([, { group }]) => group),
) as Shared<typeof plainSettings>;

export const sessionSettings = { ...plainSettings, ...workSettings } as const satisfies Settings;

export const configSettings = {
  generateClaudeMd: {
    kind: 'flag',
    default: true,
    help: 'a CLAUDE.md that tells group, task and dependencies',
    no: 'no CLAUDE.md; the text of templates goes into the system prompt',
  },
  generateSettings: {
    kind: 'flag',
    default: true,
    help: "the config template's settings.json counts",
    no: 'it does not',
  },
  generateCommands: {
    kind: 'flag',
    default: true,
    help: "the config template's commands, skills, agents and rules count",
    no: 'they do not',
  },
  generateMcpConfig: {
    kind: 'flag',
    option: 'generate-mcp',
    default: true,
    help: "the config template's MCP servers are started",
    no: 'they are not',
  },
  claudeMdTemplate: {
    kind: 'text',
    value: 'name',
    help: "prompt template or file that replaces the config template's CLAUDE.md",
  },
  settingsOverride: {
    kind: 'object',
    help: 'settings merged over those of the templates; not together with generateSettings: false',
  },
  inheritFromGroup: {
    kind: 'flag',
    default: true,
    help: "shared-config and the group's config template count",
    no: 'they do not',
  },
} as const satisfies Settings;

/** What a group is by itself. Options given to `group run` are logged and hold for later runs until given again. */
export const ownGroupSettings = {
  model: {
    kind: 'word',
    value: 'model',
    likely: modelAliases,
    run: false,
    help: 'model for sessions that name none',
    default: "claude's own",
    without: "claude's own default for sessions that name no model",
  },
  maxBudgetUsd: { kind: 'money', help: 'hard cap over all sessions and attempts, US dollars', without: 'no cap' },
  onBudgetExceeded: {
    kind: 'choice',
    words: ['stop', 'warn', 'pause'],
    value: 'action',
    help: 'what to do then',
    default: 'pause',
  },
  warningThreshold: { kind: 'share', run: false, help: 'share of the budget that gives a warning', default: '0.8' },
  maxConcurrentSessions: {
    kind: 'count',
    min: 1,
    max: 256,
    key: 'concurrent',
    help: 'sessions that may run at once',
    default: '3',
  },
  commandsAtOnce: {
    kind: 'count',
    min: 1,
    max: 256,
    help: 'checkouts, set-up and acceptance commands that may run at once',
    default: 'cores',
    without: 'as many as there are cores',
  },
  errorThreshold: {
    kind: 'count',
    min: 1,
    max: 1_000_000,
    help: 'failed sessions after which nothing new starts',
    default: '2',
  },
  pauseOnError: {
    kind: 'flag',
    default: true,
    help: 'at the threshold pause the group',
    no: 'at the threshold end the group as failed',
  },
  respectDependencies: {
    kind: 'flag',
    default: true,
    help: 'start a session after its dependencies',
    no: 'ignore dependencies',
  },
  onLimit: {
    kind: 'choice',
    words: ['wait', 'pause'],
    value: 'action',
    help: 'at a usage limit of the login: wait for its reset, or pause',
    default: 'wait',
    without: 'the default',
  },
  warmCache: {
    kind: 'flag',
    default: true,
    help: 'one of several similar sessions makes its first request before the others start',
    no: 'similar sessions start at once, each filling the prompt cache',
  },
  minFreeMemoryBytes: {
    kind: 'megabytes',
    min: 0,
    max: 100_000_000,
    key: false,
    option: 'min-free-memory',
    help: 'memory that a start must leave free, in MB',
    default: '1 GiB',
    without: 'the default',
  },
  shareCheckouts: {
    kind: 'flag',
    default: false,
    run: false,
    help: 'sessions without a worktree may work in one checkout at the same time',
    without: 'one session at a time in a checkout',
  },
  acceptClaude: {
    kind: 'word',
    value: 'version',
    key: false,
    option: 'accept-claude',
    help: 'use this version of claude although it failed a check',
    without: 'no version of claude that failed a check',
  },
  where: {
    kind: 'choice',
    words: ['local', 'fleet', 'any'],
    value: 'hosts',
    help: 'on which hosts sessions work: this one, those of the fleet, or any',
    default: 'any, once there is a fleet',
    without: 'on any host, once there is a fleet',
  },
  askTimeoutMs: {
    kind: 'duration',
    run: false,
    help: 'how long claude waits for an answer before the session is parked',
    default: '5m',
    without: 'the default',
  },
  answerBy: {
    kind: 'clock',
    value: 'time',
    run: false,
    help: 'local time, such as 07:00, at which the default answers apply to what still waits',
    without: 'no default answers',
  },
  answers: {
    kind: 'answers',
    option: false,
    help: 'default answers at answerBy: permission (allow or deny) and question (a text)',
    default: 'deny, and the session decides itself',
  },
  onLost: {
    kind: 'choice',
    words: ['move', 'wait'],
    option: false,
    help: 'when a host is lost: move its sessions to another one, or wait for it',
    default: 'move',
  },
  onEvent: {
    kind: 'command',
    option: false,
    help: 'shell command that gets each end, pause and usage limit of the group as one line of JSON',
  },
} as const satisfies Settings;

export const groupSettings = { ...ownGroupSettings, ...sharedSettings } as const satisfies Settings;

export type SessionSettings = ValuesOf<typeof sessionSettings>;
export type ConfigSettings = ValuesOf<typeof configSettings>;
export type GroupSettings = ValuesOf<typeof groupSettings>;

/** Only what changes; null takes a setting away. */
export type ChangesOf<T> = { readonly [K in keyof T]?: T[K] | null };
