/**
 * Writes meta.json files. They are a cache of the log: never fsynced, written at most a few times a second, and a
 * failed write only makes them outdated.
 */
import { dirname } from 'node:path';
import { defined } from '../core/defined.ts';
import type { Evidence } from '../core/evidence.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import {
  type Changes,
  defaultGroupConfig,
  type GroupConfig,
  type GroupDefinition,
  noTokens,
  type SessionDefinition,
  type SessionId,
  type Tokens,
  type Workspace,
} from '../core/group.ts';
import { sessionUuid } from '../core/id.ts';
import type { SessionRecord } from '../core/session-state.ts';
import { elapsedMs, type GroupState, isRehearsal } from '../core/state.ts';
import type { GroupStatus, SessionStatus } from '../core/status.ts';
import { errorCode } from '../system/system-error.ts';
import type { Files, World } from '../system/world.ts';
import { parseOwn } from './json.ts';
import { type GroupPaths, sessionPaths } from './paths.ts';

/** Longest delay of writes in large groups, milliseconds. */
const longestDelayMs = 5_000;

export function createSnapshots(world: World, paths: GroupPaths, state: GroupState) {
  const changed = new Set<SessionId>();
  const { files } = world;
  let group = false;
  const flush = (): void => {
    later.cancel();
    if (!group) return;
    try {
      // A deleted group must not come back as an empty shell.
      if (files.info(paths.events) === null) return;
      for (const id of changed) {
        const record = state.sessions.get(id);
        const { meta } = sessionPaths(paths, id);
        if (record === undefined) files.remove(meta);
        else writeChanged(files, meta, renderMeta(sessionMeta(record)));
        changed.delete(id);
      }
      writeChanged(files, paths.meta, renderMeta(groupMeta(state)));
      group = false;
    } catch (error) {
      // Retried with the next change, and at the latest when the group is opened next.
      if (errorCode(error) === '') throw error;
    }
  };
  const later = delayedAction(world, state, longestDelayMs, flush);
  return {
    /** The group and these sessions changed; their files are written within the delay. */
    mark(sessionIds: Iterable<SessionId>): void {
      for (const id of sessionIds) changed.add(id);
      group = true;
      later.request();
    },
    /** Writes all changes at once. */
    flush,
  };
}

/** Reading is cheaper than writing when a whole group is checked for missing, partial or outdated files. */
function writeChanged(files: Files, path: string, text: string): void {
  if (files.readText(path) === text) return;
  files.makeFolder(dirname(path));
  files.writeAtomic(path, text);
}

const shortestMs = 250;
/** Larger groups are written less often than with the shortest delay, so that the load stays constant. */
const sessionsAtShortest = 100;

/** An action that is requested often and executed seldom: once for all requests within an interval. */
export function delayedAction({ clock }: World, state: GroupState, longestMs: number, action: () => void) {
  let cancel: (() => void) | null = null;
  const delayMs = () => Math.min(longestMs, shortestMs * Math.max(1, state.sessions.size / sessionsAtShortest));
  return {
    request(): void {
      cancel ??= clock.after(delayMs(), () => {
        cancel = null;
        action();
      });
    },
    cancel(): void {
      cancel?.();
      cancel = null;
    },
  };
}

// meta.json of groups and sessions (pure): snapshots of the state for people, `jq` and fast listings; the
// program itself uses the log.

export interface SessionSummary {
  readonly id: SessionId;
  readonly name?: string;
  readonly projectPath: string;
  readonly description: string;
  readonly status: SessionStatus;
  readonly reason?: string;
  /** US dollars over all ended attempts; absent in the example of the specification. */
  readonly cost?: number;
  readonly estimated?: true;
  readonly dependsOn?: readonly SessionId[];
  /** Host of its last attempt, or of the next; absent when only this machine was involved. */
  readonly host?: string;
}

export interface GroupMeta extends GroupDefinition {
  /** ISO 8601, time of the last event. */
  readonly updatedAt: string;
  readonly status: GroupStatus;
  readonly reason?: string;
  readonly message?: string;
  readonly sessions: readonly SessionSummary[];
  /** It was rehearsed: `cost` is not real money. */
  readonly rehearsal?: true;
  /** Branches of other groups on which its sessions build. */
  readonly inheritedBranches?: readonly Pick<Workspace, 'repository' | 'branch'>[];
  /** US dollars over all ended attempts. */
  readonly cost: number;
  readonly estimated?: true;
  readonly tokens: Tokens;
  /** Milliseconds in which the group was running. */
  readonly durationMs: number;
}

export interface SessionMeta extends SessionDefinition {
  readonly status: SessionStatus;
  /** Why the session is paused or failed: a code, a sentence and the next step. */
  readonly reason?: string;
  readonly message?: string;
  readonly next?: string;
  readonly result?: string;
  readonly structured?: unknown;
  /** The id for `claude --resume`: the last one seen, otherwise the one chosen for the first attempt. */
  readonly claudeSessionId?: string;
  readonly claudeSessionIds: readonly string[];
  readonly startedAt?: string;
  readonly completedAt?: string;
  readonly endedAt?: string;
  /** US dollars over all ended attempts. */
  readonly cost: number;
  readonly estimated?: true;
  readonly tokens: Tokens;
  readonly durationMs: number;
  readonly turns: number;
  readonly attempts: number;
  /** Host of its last attempt, or of the next; `host` is the only permitted one. */
  readonly machine?: string;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
  readonly workspace?: Workspace;
  readonly work?: Changes;
  readonly mergedInto?: string;
  /** What its acceptance has shown. */
  readonly evidence?: Evidence;
}

export function groupMeta(state: GroupState): GroupMeta {
  const { config, ...definition } = state.group;
  const isHeld = state.status === 'paused' || state.status === 'failed';
  return {
    ...definition,
    updatedAt: state.updatedAt,
    status: state.status,
    ...(isHeld ? defined({ reason: state.reason, message: state.message }) : {}),
    sessions: [...state.sessions.values()].map(sessionSummary),
    config,
    ...(isRehearsal(state) ? { rehearsal: true as const } : {}),
    ...inheritedBranches(state),
    cost: state.usage.costUsd,
    ...defined({ estimated: state.usage.estimated }),
    tokens: state.usage.tokens,
    durationMs: elapsedMs(state, Date.parse(state.updatedAt)),
  };
}

function inheritedBranches({ sessions }: GroupState): Pick<GroupMeta, 'inheritedBranches'> {
  const named = [...sessions.values()].flatMap(({ inherited, workspace }) =>
    inherited === undefined || workspace === undefined
      ? []
      : [{ repository: workspace.repository, branch: workspace.branch }],
  );
  return named.length === 0 ? {} : { inheritedBranches: named };
}

function sessionSummary(record: SessionRecord): SessionSummary {
  const { id, name, projectPath, prompt, dependsOn } = record.definition;
  const description = record.definition.description || firstLine(prompt);
  return {
    id,
    ...defined({ name }),
    projectPath,
    description,
    status: record.state.status,
    ...defined({ reason: explanationOf(record).reason }),
    cost: record.usage.costUsd,
    ...defined({ estimated: record.usage.estimated }),
    ...(dependsOn.length > 0 ? { dependsOn } : {}),
    ...defined({ host: record.host }),
  };
}

/** The first non-blank line, at most 200 characters of it. */
function firstLine(text: string): string {
  return /\S.{0,199}/u.exec(text)?.[0].trimEnd() ?? '';
}

export function sessionMeta(record: SessionRecord): SessionMeta {
  const { definition, usage, claudeSessionIds } = record;
  const { id, ...settings } = definition;
  const { status } = record.state;
  const chosenId = record.attempts > 0 ? sessionUuid(id) : undefined;
  return {
    id,
    ...settings,
    // One field for the template of a session, of either kind.
    ...defined({ template: definition.template ?? definition.configTemplate?.name }),
    status,
    ...explanationOf(record),
    ...(record.state.status === 'completed' ? defined({ ...record.state, status: undefined }) : {}),
    ...defined({ claudeSessionId: claudeSessionIds.at(-1) ?? chosenId }),
    claudeSessionIds,
    ...defined({ model: record.model ?? definition.model, startedAt: record.startedAt }),
    ...defined({ completedAt: status === 'completed' ? record.endedAt : undefined, endedAt: record.endedAt }),
    cost: usage.costUsd,
    ...defined({ estimated: usage.estimated }),
    tokens: usage.tokens,
    durationMs: usage.durationMs,
    turns: usage.turns,
    attempts: record.attempts,
    ...defined({ machine: record.host }),
    warnings: record.warnings,
    ...defined({ workspace: record.workspace, mergedInto: record.mergedInto, evidence: record.evidence }),
  };
}

function explanationOf(record: SessionRecord): Pick<SessionMeta, 'reason' | 'message' | 'next'> {
  if (record.state.status === 'failed') return record.state.failure;
  return record.state.status === 'paused' ? { reason: record.state.reason, message: record.state.message } : {};
}

/** The text of a meta.json, indented for readers. */
export function renderMeta(meta: GroupMeta | SessionMeta): string {
  return `${JSON.stringify(meta, null, 2)}\n`;
}

/** Reads a group's meta.json; fields missing in the specification's example get defaults. Fails with `corrupt-file`. */
export function parseGroupMeta(text: string): Result<GroupMeta> {
  const meta = parseOwn<GroupMeta & { readonly config?: Partial<GroupConfig> }>(text);
  if (!Array.isArray(meta?.sessions)) {
    const next = 'Run any command that changes the group: it is rebuilt from events.jsonl.';
    return fail('corrupt-file', 'This is not the meta.json of a group.', next);
  }
  return ok({
    ...meta,
    status: readStatus(meta.status),
    sessions: meta.sessions.map((session) => ({ ...session, status: readStatus(session.status) })),
    config: { ...defaultGroupConfig, ...meta.config },
    cost: meta.cost ?? 0,
    tokens: { ...noTokens, ...meta.tokens },
    durationMs: meta.durationMs ?? 0,
  });
}

/** The specification's example says `in_progress` where its state table says `running`; the latter is written. */
function readStatus<T extends string>(status: T): T {
  return (status as string) === 'in_progress' ? ('running' as T) : status;
}
