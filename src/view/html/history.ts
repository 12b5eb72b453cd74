/**
 * What the log says happened when: the attempts of every session, when it could not run and why, what was spent at
 * which moment, and what happened to the group as a whole. Made by folding the log once more and looking at the state
 * after each event. Times are ms since 1970 and never run backwards, whatever the machine's clock did.
 */

import { defined } from '../../core/defined.ts';
import type { AttemptKind, GroupEvent } from '../../core/event.ts';
import { noUsage, type SessionId, type Usage } from '../../core/group.ts';
import { reduce } from '../../core/reduce.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { type Piece, type Span, Track } from './spans.ts';
import { type Spending, Spendings } from './spendings.ts';
import { type WaitReason, Waits } from './waits.ts';

export interface AttemptHistory {
  readonly id: string;
  readonly number: number;
  readonly kind: AttemptKind;
  readonly startedAt: number;
  /** claude said who it is. */
  workingAt?: number;
  /** Its worker was done and its work was judged from here on. */
  acceptingAt?: number;
  endedAt?: number;
  outcome: 'running' | 'completed' | 'failed' | 'paused';
  reason?: string;
  message?: string;
  next?: string;
  model?: string;
  /** What it used, once that is told. */
  spending?: Pick<Spending, 'usage'>;
}

export interface SessionHistory {
  readonly attempts: AttemptHistory[];
  completedAt?: number;
  /** The branch of its worktree, also when that is gone meanwhile. */
  branch?: string;
}

/** Something that happened to the group, or set one of its sessions back. */
export interface Note {
  readonly at: number;
  readonly event: GroupEvent;
}

export interface History {
  readonly sessions: ReadonlyMap<SessionId, SessionHistory>;
  readonly runs: readonly Span[];
  /** No run was going on. */
  readonly gaps: readonly Span[];
  readonly frozen: readonly Span[];
  readonly waits: ReadonlyMap<SessionId, readonly Piece<WaitReason>[]>;
  readonly spendings: readonly Spending[];
  readonly notes: readonly Note[];
  /** Begin of the first run; absent while there was none. */
  readonly from?: number;
  /** The last moment that is told of. */
  readonly to: number;
}

/** `nowMs` counts only while the group runs: what has ended looks the same whenever it is looked at. */
export function historyOf(events: readonly GroupEvent[], nowMs: number): History {
  const historian = new Historian();
  for (const event of events) historian.take(event);
  return historian.finish(nowMs);
}

const noted: ReadonlySet<string> = new Set([
  ...['group_started', 'group_resumed', 'group_pausing', 'group_paused', 'group_completed', 'group_failed'],
  ...['group_frozen', 'group_thawed', 'group_merged', 'group_archived', 'limit_reached', 'limit_lifted'],
  ...['budget_warning', 'budget_exceeded'],
]);

/** Interruptions that are no news: nothing was lost by them, and they pass at once. */
const unnoted: ReadonlySet<string> = new Set(['slice', 'disk']);

/** What happened to one session is told when it is not the way of all of them: a pause of the group is told as one. */
function isNoted(event: GroupEvent, before: GroupState | undefined): boolean {
  switch (event.type) {
    case 'session_failed':
      return true;
    case 'session_paused':
      return before?.pausing === undefined && !unnoted.has(event.reason);
    case 'session_starting':
      return event.attempt.kind === 'retry';
    default:
      return noted.has(event.type);
  }
}

class Historian {
  private state: GroupState | undefined;
  private at = 0;
  private readonly sessions = new Map<SessionId, SessionHistory>();
  private readonly waits = new Waits();
  private readonly running = new Track();
  private readonly frozen = new Track();
  private readonly gaps: Span[] = [];
  private readonly spendings = new Spendings();
  /** When claude opened for the person that speaks with a session. */
  private readonly attached = new Map<SessionId, number>();
  private readonly notes: Note[] = [];
  private from: number | undefined;
  /** Of the last run. */
  private endedAt: number | undefined;

  take(event: GroupEvent): void {
    const before = this.at;
    const parsed = Date.parse(event.at);
    if (parsed > this.at) this.at = parsed;
    const { state: former } = this;
    const wasRunning = former?.status === 'running';
    const id = 'sessionId' in event ? event.sessionId : undefined;
    const stood = standOf(former?.sessions.get(id ?? ''));
    const begins = event.type === 'group_started' || event.type === 'group_resumed';
    if (former !== undefined && begins && wasRunning) this.waits.rest(former, before);
    else if (former !== undefined) this.waits.pass(former, this.at);
    this.state = former === undefined ? initialState(event) : reduce(former, event);
    const { state } = this;
    if (begins) this.beginRun(wasRunning, before);
    if (wasRunning && state.status !== 'running') this.endedAt = this.at;
    if (id !== undefined) this.takeSession(event, id);
    if (event.type === 'usage_corrected') {
      for (const { sessionId, usage } of event.sessions) this.spendings.correct(sessionId, usage.costUsd);
    }
    const record = state.sessions.get(id ?? '');
    const endedAt = Math.min(this.at, this.sessions.get(id ?? '')?.attempts.at(-1)?.endedAt ?? this.at);
    const isAlone = id !== undefined && record !== undefined && wasRunning && state.status === 'running';
    this.waits.take(state, this.at, isAlone ? { id, endedAt, isTurn: standOf(record) !== stood } : null);
    const isRunning = state.status === 'running';
    this.running.set(isRunning, this.at);
    this.frozen.set(isRunning && state.frozenUntil !== undefined, this.at);
    if (isNoted(event, former)) this.notes.push({ at: this.at, event });
  }

  finish(nowMs: number): History {
    const isRunning = this.state?.status === 'running';
    const to = isRunning ? Math.max(this.at, Number.isFinite(nowMs) ? nowMs : 0) : (this.endedAt ?? this.at);
    if (this.state !== undefined && isRunning) this.waits.pass(this.state, to);
    return {
      sessions: this.sessions,
      runs: this.running.spans(to),
      gaps: this.gaps,
      frozen: this.frozen.spans(to),
      waits: this.waits.finish(to),
      spendings: this.spendings.all,
      notes: this.notes,
      ...defined({ from: this.from }),
      to,
    };
  }

  /** `before`: when something was heard of the group last. */
  private beginRun(wasRunning: boolean, before: number): void {
    this.from ??= this.at;
    // A runner that died says nothing; the last word is the best that is known of its end.
    const since = wasRunning ? before : this.endedAt;
    if (wasRunning) this.running.set(false, before);
    if (since !== undefined && since < this.at) this.gaps.push({ from: since, to: this.at });
  }

  private takeSession(event: GroupEvent, id: SessionId): void {
    const record = this.state?.sessions.get(id);
    if (record === undefined) {
      // Removed: what it cost stays, the rest is nobody's concern any more.
      this.sessions.delete(id);
      this.waits.forget(id);
      return;
    }
    const session = this.sessions.get(id) ?? { attempts: [] };
    this.sessions.set(id, session);
    this.takeAttempt(event, session, record);
  }

  private takeAttempt(event: GroupEvent, session: SessionHistory, record: SessionRecord): void {
    const attempt = session.attempts.at(-1);
    switch (event.type) {
      case 'session_starting':
        this.beginAttempt(event.attempt, session, record);
        return;
      case 'session_identified':
        if (attempt === undefined) return;
        attempt.workingAt ??= this.at;
        if (event.model !== undefined) attempt.model = event.model;
        return;
      case 'session_isolated':
        session.branch = event.workspace.branch;
        return;
      case 'session_booked': {
        const lost = session.attempts.find(({ id }) => id === event.attemptId)?.spending;
        if (lost !== undefined) lost.usage = event.usage;
        return;
      }
      case 'session_cost_settled':
        this.spendings.settle(event.sessionId, event.usage.costUsd);
        return;
      case 'session_attached':
        this.attached.set(event.sessionId, this.at);
        return;
      case 'session_detached': {
        const { sessionId, usage } = event;
        const from = this.attached.get(sessionId) ?? this.at;
        if (usage.costUsd > 0) this.spendings.all.push({ from, at: this.at, sessionId, usage });
        return;
      }
      case 'session_accepting':
        if (attempt === undefined) return;
        attempt.acceptingAt ??= this.at;
        this.spend(attempt, event.sessionId, event.usage);
        return;
      case 'session_completed':
        session.completedAt = this.at;
        if (attempt !== undefined) this.endAttempt(attempt, event.sessionId, { outcome: 'completed' }, event.usage);
        return;
      case 'session_failed': {
        const { reason, message, next, usage } = event;
        if (attempt === undefined) return;
        this.endAttempt(attempt, event.sessionId, { outcome: 'failed', reason, message, next }, usage);
        return;
      }
      case 'session_paused': {
        const { reason, message, usage } = event;
        if (attempt === undefined) return;
        this.endAttempt(attempt, event.sessionId, { outcome: 'paused', reason, message }, usage);
        return;
      }
      default:
    }
  }

  private beginAttempt(
    { id, number, kind }: { readonly id: string; readonly number: number; readonly kind: AttemptKind },
    session: SessionHistory,
    { state }: SessionRecord,
  ): void {
    // The same one may begin again after a crash that cost nothing.
    if (session.attempts.at(-1)?.id === id) return;
    const attempt: AttemptHistory = { id, number, kind, startedAt: this.at, outcome: 'running' };
    // Nothing is asked of the model: only acceptance is left to do.
    if (state.status === 'running' && state.attempt.accepting !== undefined) {
      attempt.acceptingAt = this.at;
      attempt.spending = { usage: noUsage };
    }
    session.attempts.push(attempt);
  }

  private endAttempt(
    attempt: AttemptHistory,
    id: SessionId,
    end: Pick<AttemptHistory, 'outcome' | 'reason' | 'message' | 'next'>,
    usage: Usage,
  ): void {
    this.spend(attempt, id, usage);
    Object.assign(attempt, end);
    attempt.endedAt = this.at;
    // It was found dead long after: what it did ended about when it had used up the time it says it used.
    const gap = this.gaps.findLast(({ from }) => from >= attempt.startedAt);
    if (end.reason !== 'interrupted' || gap === undefined) return;
    const worked = attempt.startedAt + Math.max(0, usage.durationMs);
    attempt.endedAt = Math.min(this.at, Math.max(gap.from, worked));
  }

  /** What was counted when its work began to be judged is not counted again. */
  private spend(attempt: AttemptHistory, sessionId: SessionId, usage: Usage): void {
    if (attempt.spending !== undefined) return;
    const spending = { from: attempt.workingAt ?? attempt.startedAt, at: this.at, sessionId, usage };
    attempt.spending = spending;
    this.spendings.all.push(spending);
  }
}

/** What others wait for: that it completes, or is given up. */
function standOf(record: SessionRecord | undefined): string {
  const status = record?.state.status;
  return status === 'completed' || (status === 'failed' && !record?.queued) ? status : 'open';
}
