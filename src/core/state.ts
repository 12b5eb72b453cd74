/**
 * The state of a group: the fold of its events.
 *
 * `reduce` owns the state it is given: it changes it in place and returns the same object, because copying the
 * session table on every event would make an event dearer the larger the group is. It is total over legal events,
 * deterministic, and throws IllegalEvent for all others, when loading a log as well as when writing one.
 */
import type { AttemptIntent, GroupEvent, PauseReason, ProcessIdentity, RunInfo, StopReason, Warning } from './event.ts';
import { type Failure, needsPerson, unreachable } from './failure.ts';
import {
  addUsage,
  type GroupDefinition,
  noUsage,
  type SessionDefinition,
  type SessionId,
  type Usage,
} from './group.ts';
import { type GroupStatus, nextGroupStatus, nextSessionStatus, type SessionStatus } from './status.ts';

/** One process of a session, from intent to end. */
export interface Attempt extends AttemptIntent {
  readonly startedAt: string;
  /** Absent until the process exists. */
  process?: ProcessIdentity;
  /** True once claude printed who it is; before that it has cost nothing. */
  identified: boolean;
  /** The first cause for which it was asked to stop. */
  stopping?: StopReason;
}

/** What the runner knows of a session. Each member carries only what exists in that status. */
export type SessionState =
  | { readonly status: 'pending' }
  | { readonly status: 'running'; readonly attempt: Attempt }
  | { readonly status: 'paused'; readonly reason: PauseReason; readonly message: string }
  | { readonly status: 'completed'; readonly result: string }
  | { readonly status: 'failed'; readonly failure: Failure };

export interface SessionRecord {
  definition: SessionDefinition;
  state: SessionState;
  /** True when the session is to be started as soon as its dependencies and the slots allow. */
  queued: boolean;
  /** Attempts begun so far. */
  attempts: number;
  /** Sum over ended attempts. */
  usage: Usage;
  /** Every id claude used for this session, oldest first. */
  claudeSessionIds: string[];
  /** The model claude said it uses; passed again on every later attempt. */
  model?: string;
  warnings: Warning[];
  /** The sentence with which the last failed attempt ended; the next attempt's model is told. */
  lastFailure?: string;
  /** Begin of the first attempt and end of the last one, ISO 8601. */
  startedAt?: string;
  endedAt?: string;
}

export interface GroupState {
  group: GroupDefinition;
  status: GroupStatus;
  /** Why the group is paused or failed. */
  reason?: string;
  message?: string;
  /** In the order in which they were added. */
  readonly sessions: Map<SessionId, SessionRecord>;
  readonly running: Set<SessionId>;
  readonly counts: Record<SessionStatus, number>;
  lastSeq: number;
  updatedAt: string;
  run?: RunInfo;
  /** Begin of the current run; absent while none is going on. */
  runStartedAt?: string;
  /** Milliseconds of earlier runs. */
  elapsedBeforeMs: number;
  /** Set while everything is being stopped. */
  pausing?: StopReason;
  /** Failures since the last start or resume. */
  failures: number;
  /** True when a failure of this run needs a person before anything else is started. */
  needsPerson: boolean;
  /** Sum over ended attempts of all sessions, removed ones included: money stays spent. */
  usage: Usage;
  /** Sum of the caps of running attempts, US dollars. */
  reservedUsd: number;
  budgetWarned: boolean;
  budgetExceeded: boolean;
  /** Changes whenever sessions or dependencies do, so that plans made from them can be reused. */
  definitionsVersion: number;
  /** Sessions whose status or queueing changed since plan.ts last looked. */
  readonly touched: Set<SessionId>;
}

/** An event that may not happen in the present state: a defect of ours or a damaged log. */
export class IllegalEvent extends Error {}

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
    failures: 0,
    needsPerson: false,
    usage: noUsage,
    reservedUsd: 0,
    budgetWarned: false,
    budgetExceeded: false,
    definitionsVersion: 0,
    touched: new Set(),
  };
}

/** Applies one event. See the file's comment for ownership and errors. */
export function reduce(state: GroupState, event: GroupEvent): GroupState {
  if (event.seq !== state.lastSeq + 1) {
    throw new IllegalEvent(`event ${event.seq} follows event ${state.lastSeq}`);
  }
  const status = nextGroupStatus(state.status, event.type);
  if (status === null) throw new IllegalEvent(`${event.type} in a group that is ${state.status}`);
  if ('sessionId' in event && event.sessionId !== undefined && event.type !== 'request_answered') {
    reduceSession(state, event as SessionEvent);
  } else {
    reduceGroup(state, event);
  }
  state.status = status;
  state.lastSeq = event.seq;
  state.updatedAt = event.at;
  return state;
}

/** Folds a whole log. Throws IllegalEvent at the first event that does not fit. */
export function foldEvents(events: Iterable<GroupEvent>): GroupState | null {
  let state: GroupState | null = null;
  for (const event of events) state = state === null ? initialState(event) : reduce(state, event);
  return state;
}

type SessionEvent = Extract<GroupEvent, { sessionId: SessionId }>;

function reduceGroup(state: GroupState, event: GroupEvent): void {
  switch (event.type) {
    case 'group_changed':
      state.group = { ...state.group, config: event.config };
      state.budgetExceeded = false;
      state.definitionsVersion += 1;
      return;
    case 'group_started':
    case 'group_resumed':
      beginRun(state, event);
      return;
    case 'group_pausing':
      state.pausing ??= event.reason;
      return;
    case 'group_paused':
    case 'group_failed':
      endRun(state, event.at);
      state.reason = event.reason;
      state.message = event.message;
      return;
    case 'group_completed':
      endRun(state, event.at);
      return;
    case 'group_archived':
    case 'request_answered':
      return;
    default:
      throw new IllegalEvent(`${event.type} in the middle of a log`);
  }
}

function beginRun(state: GroupState, event: Extract<GroupEvent, { type: 'group_started' | 'group_resumed' }>): void {
  // An interrupted run has no end of its own; its last event is the best we know.
  if (state.runStartedAt !== undefined) endRun(state, state.updatedAt);
  delete state.reason;
  delete state.message;
  state.run = event.run;
  state.runStartedAt = event.at;
  state.failures = 0;
  state.needsPerson = false;
  state.budgetExceeded = false;
  const retry = new Set(event.type === 'group_resumed' ? event.retry : []);
  for (const [id, record] of state.sessions) {
    if (record.state.status === 'paused' || (record.state.status === 'failed' && retry.has(id))) {
      record.queued = true;
      state.touched.add(id);
    }
  }
}

function endRun(state: GroupState, at: string): void {
  if (state.runStartedAt !== undefined) {
    state.elapsedBeforeMs += Math.max(0, Date.parse(at) - Date.parse(state.runStartedAt));
  }
  delete state.runStartedAt;
  delete state.pausing;
}

function reduceSession(state: GroupState, event: SessionEvent): void {
  if (event.type === 'session_added') {
    addSession(state, event.session);
    return;
  }
  const record = state.sessions.get(event.sessionId);
  if (!record) throw new IllegalEvent(`${event.type} for the unknown session ${event.sessionId}`);
  if (event.type === 'session_removed') {
    removeSession(state, event.sessionId, record);
    return;
  }
  const before = record.state.status;
  const next = nextSessionStatus(before, event.type);
  if (next === null) throw new IllegalEvent(`${event.type} for the ${before} session ${event.sessionId}`);
  applySessionEvent(state, record, event);
  const after = record.state.status;
  if (after !== next) throw new IllegalEvent(`${event.type} led to ${after} instead of ${next}`);
  if (before !== after) {
    state.counts[before] -= 1;
    state.counts[after] += 1;
    if (after === 'running') state.running.add(event.sessionId);
    else state.running.delete(event.sessionId);
    state.touched.add(event.sessionId);
  }
}

function addSession(state: GroupState, definition: SessionDefinition): void {
  if (state.sessions.has(definition.id)) throw new IllegalEvent(`session_added twice for ${definition.id}`);
  state.sessions.set(definition.id, {
    definition,
    state: { status: 'pending' },
    queued: true,
    attempts: 0,
    usage: noUsage,
    claudeSessionIds: [],
    warnings: [],
  });
  state.counts.pending += 1;
  state.definitionsVersion += 1;
  if (state.status === 'completed' || state.status === 'failed') {
    state.reason = 'session-added';
    state.message = 'A session was added after the run had ended. Go on with: group run.';
  }
}

function removeSession(state: GroupState, id: SessionId, record: SessionRecord): void {
  if (record.state.status === 'running') throw new IllegalEvent(`session_removed for the running session ${id}`);
  state.sessions.delete(id);
  state.counts[record.state.status] -= 1;
  state.definitionsVersion += 1;
}

function applySessionEvent(
  state: GroupState,
  record: SessionRecord,
  event: Exclude<SessionEvent, { type: 'session_added' | 'session_removed' }>,
): void {
  switch (event.type) {
    case 'session_changed':
      record.definition = event.session;
      state.definitionsVersion += 1;
      return;
    case 'session_starting':
      beginAttempt(state, record, event.attempt, event.at);
      return;
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      attemptOf(record, event.attemptId).process = event.process;
      return;
    case 'session_identified': {
      attemptOf(record, event.attemptId).identified = true;
      if (record.claudeSessionIds.at(-1) !== event.claudeSessionId) record.claudeSessionIds.push(event.claudeSessionId);
      if (event.model !== undefined) record.model = event.model;
      return;
    }
    case 'session_stopping':
      attemptOf(record, event.attemptId).stopping ??= event.reason;
      return;
    case 'session_warning':
      record.warnings.push(event.warning);
      return;
    case 'session_completed':
      endAttempt(state, record, event);
      record.state = { status: 'completed', result: event.result };
      return;
    case 'session_failed': {
      endAttempt(state, record, event);
      const { reason, message, next } = event;
      record.state = { status: 'failed', failure: { reason, message, next } };
      record.lastFailure = message;
      state.failures += 1;
      state.needsPerson ||= needsPerson(reason);
      return;
    }
    case 'session_paused':
      endAttempt(state, record, event);
      record.state = { status: 'paused', reason: event.reason, message: event.message };
      // An interrupted session goes on by itself, one that ran dry when its own cap leaves room; others wait.
      record.queued = event.reason === 'interrupted' || (event.reason === 'budget' && ownBudgetLeft(record) > 0);
      return;
    case 'budget_warning':
      state.budgetWarned = true;
      return;
    case 'budget_exceeded':
      state.budgetExceeded = true;
      return;
    default:
      unreachable(event);
  }
}

function beginAttempt(state: GroupState, record: SessionRecord, intent: AttemptIntent, at: string): void {
  // Only the same attempt may begin again, and only while it has cost nothing.
  const same = record.state.status === 'running' ? attemptOf(record, intent.id) : undefined;
  if (same?.identified) throw new IllegalEvent(`attempt ${intent.id} begins again although it has begun to work`);
  const number = same === undefined ? record.attempts + 1 : record.attempts;
  if (intent.number !== number) throw new IllegalEvent(`attempt ${intent.number} instead of attempt ${number}`);
  record.attempts = number;
  record.state = { status: 'running', attempt: { ...intent, startedAt: at, identified: false } };
  record.queued = false;
  record.startedAt ??= at;
  delete record.endedAt;
  state.reservedUsd += (intent.reservedUsd ?? 0) - (same?.reservedUsd ?? 0);
}

function endAttempt(
  state: GroupState,
  record: SessionRecord,
  event: { readonly attemptId: string; readonly usage: Usage; readonly at: string },
): void {
  const attempt = attemptOf(record, event.attemptId);
  state.reservedUsd = Math.max(0, state.reservedUsd - (attempt.reservedUsd ?? 0));
  record.usage = addUsage(record.usage, event.usage);
  state.usage = addUsage(state.usage, event.usage);
  record.endedAt = event.at;
}

function attemptOf(record: SessionRecord, attemptId: string): Attempt {
  if (record.state.status === 'running' && record.state.attempt.id === attemptId) return record.state.attempt;
  throw new IllegalEvent(`session ${record.definition.id} has no running attempt ${attemptId}`);
}

/** US dollars left of the session's own cap; infinite without one. */
export function ownBudgetLeft(record: SessionRecord): number {
  const cap = record.definition.maxBudgetUsd;
  return cap === undefined ? Number.POSITIVE_INFINITY : Math.max(0, cap - record.usage.costUsd);
}
