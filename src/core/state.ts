/**
 * core/: what a group is, what happened to it and what is to be done next; no clock, files or processes. This file:
 * the state of a group, which is the fold of its events (reduce.ts).
 */
import type { GroupEvent, RunInfo, StopReason } from './event.ts';
import { type GroupDefinition, noUsage, type SessionId, type Usage, type Workspace } from './group.ts';
import { IllegalEvent, type SessionRecord } from './session-state.ts';
import type { GroupStatus, SessionStatus } from './status.ts';

/** A decision on a wave that a person is asked for. */
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
  /** What was logged last of the results. */
  finished?: { readonly wave: number; readonly accepted: number; readonly cost: number };
  /** A person does not want the next wave in this run. */
  stopped: boolean;
  /** Oldest first. */
  items: readonly WaveItem[];
  /** By wave, from 1: US dollars, null = no estimate; of the first run that has one. */
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
  /** Set while all processes are halted where they stand; ISO 8601, when it becomes a pause. */
  frozenUntil?: string;
  /** Set while a limit holds; ISO 8601 of its reset. */
  limitResetsAt?: string;
  /** Its kind in claude's words, or `throttled`; absent = not told. */
  limitType?: string;
  only?: ReadonlySet<SessionId>;
  /** Sessions that failed since the last start or resume, without those that are to be tried again. */
  readonly failed: Set<SessionId>;
  /** Sum over ended attempts of all sessions, removed ones included: money stays spent. */
  usage: Usage;
  reservedUsd: number;
  /** When a worker that the model had answered last ended, by kind of session (warm-cache.ts); ms since 1970. */
  readonly endedMs: Map<string, number>;
  readonly takenOver: Set<SessionId>;
  budgetWarned: boolean;
  budgetExceeded: boolean;
  /** Where worktrees begin, by the checkout of the user's that their projects are in: fixed by the first of each. */
  readonly bases: Map<string, Base>;
  readonly waves: WaveState;
  /** Changes whenever sessions or dependencies do, so that plans made from them can be reused. */
  definitionsVersion: number;
}

/** The kind of limit when it is none of the login's: the server has too much to do, or this login asks too fast. */
export const throttled = 'throttled';

/** No usage limit lasts longer, milliseconds. A reset beyond that would keep sessions waiting for nothing. */
export const limitMsMax = 32 * 24 * 3_600_000;

/** What holds is no usage limit: the server asks for fewer requests. */
export function isThrottled({ limitType }: Pick<GroupState, 'limitType'>): boolean {
  return limitType === throttled;
}

/** The group is a rehearsal: it was run as one, or is to be. */
export function isRehearsal({ run, rehearsal }: Pick<GroupState, 'run' | 'rehearsal'>): boolean {
  return run?.rehearsal === true || rehearsal !== undefined;
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
