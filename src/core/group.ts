/**
 * The nouns: a session group, its sessions and their settings, as a user defines them.
 * Their settings are tables in definitions.ts. What happens to them at run time is in state.ts; how they look on disk
 * is in store/meta.ts.
 */
import type { ConfigSettings, GroupSettings, SessionSettings } from './definitions.ts';

/** `YYYYMMDD-HHMMSS-slug`, see id.ts. */
export type GroupId = string;
/** `NNN-uuid`, see id.ts. The uuid is also the Claude session id of the first attempt. */
export type SessionId = string;
/** A set of sessions that is only queried for single members. */
export type SessionSet = Pick<ReadonlySet<SessionId>, 'has'>;

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheCreation: number;
  readonly cacheRead: number;
}

/** Price by a word that every model id of a family contains. */
export type PriceTable = Readonly<Record<string, Price>>;

type NeededSetting =
  | 'onBudgetExceeded'
  | 'warningThreshold'
  | 'maxConcurrentSessions'
  | 'respectDependencies'
  | 'pauseOnError'
  | 'errorThreshold';

/** Settings of a group. Options given to `group run` are logged and hold for later runs until given again. */
export type GroupConfig = GroupSettings &
  Required<Pick<GroupSettings, NeededSetting>> & {
    /** The user's own prices, for figures that claude has not reported yet; they come before the known ones. */
    readonly prices?: PriceTable;
  };

export const defaultGroupConfig: GroupConfig = {
  onBudgetExceeded: 'pause',
  warningThreshold: 0.8,
  maxConcurrentSessions: 3,
  respectDependencies: true,
  pauseOnError: true,
  errorThreshold: 2,
};

/** A folder of configuration as it was when it was named; a copy is frozen below the group's folder. */
export interface ConfigTemplateRef {
  readonly name: string;
  readonly origin: string;
  /** SHA-256 of its files in hexadecimal; names the frozen copy. */
  readonly digest: string;
}

export interface SessionConfig extends ConfigSettings {
  /** The text of `claudeMdTemplate`, with all variables filled in. */
  readonly claudeMdText?: string;
}

/** A place in a prompt that is filled with what dependencies said, when the session becomes ready. */
export interface PromptReference {
  /** UTF-16 units in the prompt, where the place stands as it was written. */
  readonly at: number;
  readonly length: number;
  readonly sessionIds: readonly SessionId[];
  /** Several sessions are meant, each is shown under its name. */
  readonly every?: true;
  readonly field: 'result' | 'structured' | 'diffStat' | 'branch';
  /** Way into a structured result, such as `['findings', '0', 'file']`. */
  readonly path?: readonly string[];
}

export interface WorkflowRef {
  readonly name: string;
  readonly origin: string;
  /** SHA-256 of the file in hexadecimal. */
  readonly digest: string;
}

/** What `group create` fixes. Sessions are added by events of their own. */
export interface GroupDefinition {
  readonly id: GroupId;
  readonly name: string;
  readonly description: string;
  readonly slug: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly config: GroupConfig;
  readonly template?: string;
  /** For all sessions that inherit from the group; sessions may name a further one. */
  readonly configTemplate?: ConfigTemplateRef;
  /** Values for the variables of templates. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly workflow?: WorkflowRef;
}

/** What a group is, besides the settings by which it is run. */
export type GroupDescription = Omit<GroupDefinition, 'id' | 'slug' | 'createdAt' | 'config'>;

export interface SessionDefinition extends SessionSettings {
  readonly id: SessionId;
  readonly description: string;
  readonly projectPath: string;
  /** The task as the user gave it, or as its template made it. */
  readonly prompt: string;
  readonly template?: string;
  /** The entry of the workflow whose matrix made it. */
  readonly matrix?: string;
  readonly variables?: Readonly<Record<string, string>>;
  readonly promptReferences?: readonly PromptReference[];
  readonly configTemplate?: ConfigTemplateRef;
  readonly config?: SessionConfig;
  readonly dependsOn: readonly SessionId[];
  /** Absolute real path of the git directory that all worktrees of the project share; absent = no repository. */
  readonly repository?: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
}

export interface WorktreeReplacement {
  /** ISO 8601; tells one such time from another. */
  readonly at: string;
  /** Its branch, or, when of that nothing was left either, the commit from which its work begins again. */
  readonly from: 'branch' | 'base';
}

export interface Workspace {
  readonly path: string;
  /** The project within the worktree, absolute; claude's working directory. */
  readonly folder: string;
  readonly repository: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Full id of the commit from which the branch began. */
  readonly base: string;
  /** Branch that was checked out in the project when the first worktree was made; absent = none was. */
  readonly target?: string;
  /** Root of the user's checkout that holds the project, absolute; absent = not known. */
  readonly checkout?: string;
  /** What was checked out there, when that is not the base; full id of the commit. */
  readonly origin?: string;
  /** The last time; absent = its folder was never gone. */
  readonly remade?: WorktreeReplacement;
}

export interface Changes {
  readonly commit: string;
  /** Differences between the workspace's base and that commit. */
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
}

export const defaultRetries = 2;
export const defaultAcceptRetries = 1;
export const defaultCommandTimeoutMs = 10 * 60_000;
/** More than the 10 minutes for which claude itself may wait for the API without a word. */
export const defaultStallTimeoutMs = 15 * 60_000;
export const defaultMinFreeMemoryBytes = 1024 ** 3;

/** Token counters as the Messages API reports them: `input` is without cache reads and writes. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheCreation: number;
}

export interface ModelUsage {
  readonly costUsd: number;
  readonly tokens: Tokens;
}

export interface Usage extends ModelUsage {
  /** Wall time of the worker processes, milliseconds. */
  readonly durationMs: number;
  readonly turns: number;
  /** Present when the figure is a lower bound taken from the stream instead of claude's own total. */
  readonly estimated?: true;
  /** The part of `costUsd` that an attempt may have cost after its last report; it counts until it is settled. */
  readonly heldUsd?: number;
  readonly models: Readonly<Record<string, ModelUsage>>;
}

export const noTokens: Tokens = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };
export const noUsage: Usage = { costUsd: 0, tokens: noTokens, durationMs: 0, turns: 0, models: {} };

/** Sanity limits of one reported figure: a count, the tokens of one message, and US dollars. */
export const sanityLimits = { count: Number.MAX_SAFE_INTEGER, messageTokens: 100_000_000, usd: 100_000 };

/** Stops where figures can no longer be told apart, so that no sum is infinite. */
function sum(a: number, b: number): number {
  return Math.min(sanityLimits.count, a + b);
}

export function addTokens(a: Tokens, b: Tokens): Tokens {
  return {
    input: sum(a.input, b.input),
    output: sum(a.output, b.output),
    cacheRead: sum(a.cacheRead, b.cacheRead),
    cacheCreation: sum(a.cacheCreation, b.cacheCreation),
  };
}

const nanoUsd = 1e9;

/** US dollars to the ninth digit (less than a token costs), so that sums agree in whatever order they are added. */
export function roundUsd(usd: number): number {
  return Math.abs(usd) < 1e6 ? Math.round(usd * nanoUsd) / nanoUsd : usd;
}

function sumUsd(a: number, b: number): number {
  return roundUsd(sum(a, b));
}

/** Sums by model. Names of models come from outside: in a map `__proto__` is only an odd name. */
export function addModels(a: Usage['models'], b: Usage['models']): Usage['models'] {
  const models = new Map(Object.entries(a));
  for (const [model, usage] of Object.entries(b)) {
    const { costUsd, tokens } = models.get(model) ?? { costUsd: 0, tokens: noTokens };
    models.set(model, { costUsd: sumUsd(costUsd, usage.costUsd), tokens: addTokens(tokens, usage.tokens) });
  }
  return Object.fromEntries(models);
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    costUsd: sumUsd(a.costUsd, b.costUsd),
    tokens: addTokens(a.tokens, b.tokens),
    durationMs: sum(a.durationMs, b.durationMs),
    turns: sum(a.turns, b.turns),
    ...(a.estimated || b.estimated ? { estimated: true as const } : {}),
    ...(a.heldUsd || b.heldUsd ? { heldUsd: sumUsd(a.heldUsd ?? 0, b.heldUsd ?? 0) } : {}),
    models: addModels(a.models, b.models),
  };
}

/** The sum with another value for one of its parts. An estimate that is part of it stays one. */
export function exchanged(sum: Usage, from: Usage, to: Usage): Usage {
  const { heldUsd: _, ...usage } = addUsage(addUsage(sum, negative(from)), to);
  const heldUsd = roundUsd((sum.heldUsd ?? 0) - (from.heldUsd ?? 0) + (to.heldUsd ?? 0));
  return { ...usage, ...(heldUsd > 0 ? { heldUsd } : {}), models: withoutNothing(usage.models) };
}

function withoutNothing(models: Usage['models']): Usage['models'] {
  const isLeft = ({ costUsd, tokens }: ModelUsage) =>
    costUsd !== 0 || Object.values(tokens).some((count) => count !== 0);
  return Object.fromEntries(Object.entries(models).filter(([, usage]) => isLeft(usage)));
}

function negative({ costUsd, tokens, durationMs, turns, models }: Usage): Usage {
  const ofModels = Object.entries(models).map(([model, usage]): [string, ModelUsage] => [
    model,
    { costUsd: -usage.costUsd, tokens: negativeTokens(usage.tokens) },
  ]);
  return {
    costUsd: -costUsd,
    tokens: negativeTokens(tokens),
    durationMs: -durationMs,
    turns: -turns,
    models: Object.fromEntries(ofModels),
  };
}

export function negativeTokens({ input, output, cacheRead, cacheCreation }: Tokens): Tokens {
  return { input: -input, output: -output, cacheRead: -cacheRead, cacheCreation: -cacheCreation };
}
