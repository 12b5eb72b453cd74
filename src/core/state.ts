/**
 * core/: the definition of a group, its history and its next steps; no clock, files or processes. This file: the state
 * of a group, reduced from its events (reduce.ts).
 */
import type { GroupEvent, RunInfo, StopReason } from './event.ts';
import { type GroupDefinition, noUsage, type SessionId, type Usage, type Workspace } from './group.ts';
import { IllegalEvent, type SessionRecord } from './session-state.ts';
import type { GroupStatus, SessionStatus } from './status.ts';

/** A wave decision that waits for the user. */
export interface WaveItem {
  readonly id: string;
  readonly kind: 'wave';
  readonly wave: number;
  readonly text: string;
  readonly options: readonly string[];
  /** ISO 8601. */
  readonly since: string;
  readonly state: 'open' | 'answered' | 'withdrawn';
  readonly answer?: { readonly text: string };
}

export interface WaveState {
  /** Sessions of later waves do not start. */
  allowed: number;
  /** The results logged last. */
  finished?: { readonly wave: number; readonly accepted: number; readonly cost: number };
  /** The user does not want the next wave in this run. */
  stopped: boolean;
  /** Oldest first. */
  items: readonly WaveItem[];
  /** By wave, from 1: US dollars, null = no estimate; from the first run that has one. */
  quotes?: readonly (number | null)[];
}

/** The commit and the branch that were checked out there when the first session was isolated. */
export type Base = Pick<Workspace, 'base' | 'target' | 'repository'>;

export interface GroupState {
  group: GroupDefinition;
  status: GroupStatus;
  reason?: string;
  message?: string;
  readonly sessions: Map<SessionId, SessionRecord>;
  readonly running: Set<SessionId>;
  readonly counts: Record<SessionStatus, number>;
  lastSeq: number;
  updatedAt: string;
  run?: RunInfo;
  /** It is to be rehearsed, whatever ran before. */
  rehearsal?: { readonly script?: string };
  runStartedAt?: string;
  /** Milliseconds of earlier runs. */
  elapsedBeforeMs: number;
  /** Set while nothing new starts because the group is to pause. */
  pausing?: StopReason;
  draining: boolean;
  /** Set while all processes are halted; ISO 8601, when it becomes a pause. */
  frozenUntil?: string;
  /** Set during a usage limit; ISO 8601 of its reset. */
  limitResetsAt?: string;
  /** Its type in claude's words, or `throttled`; absent = unknown. */
  limitType?: string;
  only?: ReadonlySet<SessionId>;
  /** Sessions that failed since the last start or resume, without those that are to be retried. */
  readonly failed: Set<SessionId>;
  /** Sum over ended attempts of all sessions, including removed ones: money stays spent. */
  usage: Usage;
  reservedUsd: number;
  /** When a worker with an answer last ended, by kind of session (warm-cache.ts); ms since 1970. */
  readonly endedMs: Map<string, number>;
  readonly takenOver: Set<SessionId>;
  budgetWarned: boolean;
  budgetExceeded: boolean;
  /** The base of new worktrees, by the user's checkout of their projects: fixed by the first of each. */
  readonly bases: Map<string, Base>;
  readonly waves: WaveState;
  /** Changes with the sessions or dependencies, so that plans made from them can be reused. */
  definitionsVersion: number;
}

/** The limit type when the login has none: the server is overloaded, or this login sends too fast. */
export const throttled = 'throttled';

/** No usage limit lasts longer, milliseconds. A later reset would keep sessions waiting for nothing. */
export const limitMsMax = 32 * 24 * 3_600_000;

/** This is no usage limit: the server asks for fewer requests. */
export function isThrottled({ limitType }: Pick<GroupState, 'limitType'>): boolean {
  return limitType === throttled;
}

/** The group is a rehearsal: it was run as one, or is to be. */
export function isRehearsal({ run, rehearsal }: Pick<GroupState, 'run' | 'rehearsal'>): boolean {
  return run?.rehearsal === true || rehearsal !== undefined;
}

/** The time in which the group ran, up to `atMs` if it is running. */
export function elapsedMs({ elapsedBeforeMs, runStartedAt }: GroupState, atMs: number): number {
  return elapsedBeforeMs + (runStartedAt === undefined ? 0 : Math.max(0, atMs - Date.parse(runStartedAt)));
}

/** The state after `group_created`. Throws IllegalEvent when the first event is another one. */
export function initialState(event: GroupEvent): GroupState {
  if (event.type !== 'group_created') throw new IllegalEvent(`the log begins with ${event.type}, not group_created`);
  return {
    group: event.group,
    status: 'created',
    sessions: new Map(),
    running: new Set(),
    counts: { pending: 0, running: 0, paused: 0, completed: 0, failed: 0 },
    lastSeq: event.seq,
    updatedAt: event.at,
    elapsedBeforeMs: 0,
    draining: false,
    failed: new Set(),
    usage: noUsage,
    reservedUsd: 0,
    endedMs: new Map(),
    takenOver: new Set(),
    budgetWarned: false,
    budgetExceeded: false,
    bases: new Map(),
    waves: { allowed: 1, stopped: false, items: [] },
    definitionsVersion: 0,
  };
}
