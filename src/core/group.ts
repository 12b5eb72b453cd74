/**
 * A session group, its sessions and their settings, as a user defines them. The settings are tables in definitions.ts.
 * The state at run time is in state.ts; the files on disk are in store/snapshots.ts.
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

/** Price by a word in the id of every model of a family. */
export type PriceTable = Readonly<Record<string, Price>>;

type NeededSetting =
  | 'onBudgetExceeded'
  | 'warningThreshold'
  | 'maxConcurrentSessions'
  | 'respectDependencies'
  | 'pauseOnError'
  | 'errorThreshold';

/** Settings of a group. Options of `group run` are logged and hold for later runs until given again. */
export type GroupConfig = GroupSettings &
  Required<Pick<GroupSettings, NeededSetting>> & {
    /** The user's own prices, for figures that claude has not reported yet; they override the known ones. */
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

/** A configuration folder at the time it was chosen; a copy is stored below the group's folder. */
export interface ConfigTemplateRef {
  readonly name: string;
  readonly origin: string;
  /** SHA-256 of its files in hexadecimal; names the stored copy. */
  readonly digest: string;
}

export interface SessionConfig extends ConfigSettings {
  /** The text of `claudeMdTemplate`, with all variables filled in. */
  readonly claudeMdText?: string;
}

/** A reference in a prompt that is replaced by results of dependencies when the session becomes ready. */
export interface PromptReference {
  /** Position in the prompt, UTF-16 units, and its text there. */
  readonly at: number;
  readonly length: number;
  readonly sessionIds: readonly SessionId[];
  /** It refers to several sessions, each shown under its name. */
  readonly every?: true;
  readonly field: 'result' | 'structured' | 'diffStat' | 'branch';
  /** Path into a structured result, such as `['findings', '0', 'file']`. */
  readonly path?: readonly string[];
}

export interface WorkflowRef {
  readonly name: string;
  readonly origin: string;
  /** SHA-256 of the file in hexadecimal. */
  readonly digest: string;
}

/** The fields that `group create` fixes. Sessions are added by their own events. */
export interface GroupDefinition {
  readonly id: GroupId;
  readonly name: string;
  readonly description: string;
  readonly slug: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly config: GroupConfig;
  readonly template?: string;
  /** For all sessions that inherit from the group; sessions may add another one. */
  readonly configTemplate?: ConfigTemplateRef;
  /** Values for the variables of templates. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly workflow?: WorkflowRef;
}

/** A group's description, without its run settings. */
export type GroupDescription = Omit<GroupDefinition, 'id' | 'slug' | 'createdAt' | 'config'>;

export interface SessionDefinition extends SessionSettings {
  readonly id: SessionId;
  readonly description: string;
  readonly projectPath: string;
  /** The prompt as the user gave it, or as its template made it. */
  readonly prompt: string;
  readonly template?: string;
  /** The workflow entry whose matrix made it. */
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

export interface Workspace {
  readonly path: string;
  /** The project within the worktree, absolute; claude's working directory. */
  readonly folder: string;
  readonly repository: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Full id of the commit from which the branch started. */
  readonly base: string;
  /** The branch checked out in the project when the first worktree was created; absent = none. */
  readonly target?: string;
  /** Root of the user's checkout of the project, absolute; absent = unknown. */
  readonly checkout?: string;
  /** The commit checked out there, if it is not the base; full id. */
  readonly origin?: string;
  /** When it was last created again, ISO 8601; absent = its folder was never missing. */
  readonly remadeAt?: string;
}

export interface Changes {
  readonly commit: string;
  /** Number of differences between the workspace's base and that commit. */
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
}

export const defaultRetries = 2;
export const defaultAcceptRetries = 1;
export const defaultCommandTimeoutMs = 10 * 60_000;
/** More than the 10 minutes for which claude itself may silently wait for the API. */
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
  /** Present when the figure is a lower bound from the stream instead of claude's own total. */
  readonly estimated?: true;
  /** The part of `costUsd` that an attempt may have cost after its last report; it counts until it is settled. */
  readonly heldUsd?: number;
  readonly models: Readonly<Record<string, ModelUsage>>;
}

export const noTokens: Tokens = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };
export const noUsage: Usage = { costUsd: 0, tokens: noTokens, durationMs: 0, turns: 0, models: {} };

/** Sanity limits of one reported figure: a count, and US dollars. */
export const sanityLimits = { count: Number.MAX_SAFE_INTEGER, usd: 100_000 };

/** Saturates, so that no sum is infinite. */
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

/** US dollars to nine digits (less than a token costs), so that sums agree in any order. */
export function roundUsd(usd: number): number {
  return Math.abs(usd) < 1e6 ? Math.round(usd * nanoUsd) / nanoUsd : usd;
}

function sumUsd(a: number, b: number): number {
  return roundUsd(sum(a, b));
}

/** Sums by model. Model names are external: in a map `__proto__` is only an odd name. */
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

/** The sum with one of its parts replaced. It stays an estimate if it contains another one. */
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
