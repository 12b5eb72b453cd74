/**
 * What the log says happened when: the attempts of every session, when it could not run and why, what was spent at
 * which moment, and what happened to the group as a whole. Made by folding the log once more and looking at the state
 * after each event. Times are ms since 1970 and never run backwards, whatever the machine's clock did.
 */

import type { AttemptKind, GroupEvent } from '../../core/event.ts';
import { noUsage, type SessionId, type Usage } from '../../core/group.ts';
import { isBudgetExhausted } from '../../core/plan/budget.ts';
import { startBlocker } from '../../core/plan/settle.ts';
import { reduce } from '../../core/reduce.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupState, initialState } from '../../core/state.ts';
import { type Piece, type Span, Track } from './spans.ts';
import { Warmth } from './warmth.ts';

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
  usage?: Usage;
}

/** Why a session that does not run does not: all that can be said of it alone. */
type Rest = 'ready' | 'paused' | 'budget' | 'failed';

export interface Stretch extends Span {
  readonly rest: Rest;
  /** It may start, but not before. */
  readonly notBefore?: number;
  /** It waits for a usage limit until then, not for a delay. */
  readonly forLimit?: true;
}

export interface SessionHistory {
  readonly attempts: AttemptHistory[];
  readonly stretches: Stretch[];
  completedAt?: number;
  /** The branch of its worktree, also when that is gone meanwhile. */
  branch?: string;
}

/** What one attempt used, known from `at` on; it worked since `from`. */
export interface Spending {
  readonly from: number;
  readonly at: number;
  readonly sessionId: SessionId;
  readonly usage: Usage;
}

/** Something that happened to the group, or set one of its sessions back. */
export interface Note {
  readonly at: number;
  readonly event: GroupEvent;
}

/** Why nothing could run while no run was going on. */
export type GapReason = 'paused' | 'budget' | 'limit' | 'errors';

export interface History {
  readonly sessions: ReadonlyMap<SessionId, SessionHistory>;
  readonly runs: readonly Span[];
  readonly gaps: readonly Piece<GapReason>[];
  /** The group was halted or about to pause. */
  readonly held: readonly Span[];
  readonly frozen: readonly Span[];
  readonly limits: readonly Span[];
  readonly dry: readonly Span[];
  /** So many sessions had failed that nothing new started. */
  readonly errors: readonly Span[];
  /** Another of its kind was to fill the prompt cache first. */
  readonly warming: ReadonlyMap<SessionId, readonly Span[]>;
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

interface OpenStretch extends Omit<Stretch, 'to'> {
  readonly to?: undefined;
}

class Historian {
  private state: GroupState | undefined;
  private at = 0;
  private readonly sessions = new Map<SessionId, SessionHistory>();
  private readonly open = new Map<SessionId, OpenStretch>();
  private readonly running = new Track();
  private readonly held = new Track();
  private readonly frozen = new Track();
  private readonly limits = new Track();
  private readonly dry = new Track();
  private readonly errors = new Track();
  private readonly warmth = new Warmth();
  private readonly gaps: Piece<GapReason>[] = [];
  private readonly spendings: Spending[] = [];
  private readonly notes: Note[] = [];
  private from: number | undefined;
  /** Of the last run. */
  private endedAt: number | undefined;
  private isDry = false;

  take(event: GroupEvent): void {
    const before = this.at;
    const parsed = Date.parse(event.at);
    if (parsed > this.at) this.at = parsed;
    const { state: former } = this;
    const wasRunning = former?.status === 'running';
    this.state = this.state === undefined ? initialState(event) : reduce(this.state, event);
    if (event.type === 'group_started' || event.type === 'group_resumed') this.beginRun(wasRunning, before);
    if (wasRunning && this.state.status !== 'running') this.endedAt = this.at;
    if ('sessionId' in event && event.sessionId !== undefined) this.takeSession(event, event.sessionId);
    this.follow(event);
    if (isNoted(event, former)) this.notes.push({ at: this.at, event });
  }

  finish(nowMs: number): History {
    const isRunning = this.state?.status === 'running';
    const to = isRunning ? Math.max(this.at, Number.isFinite(nowMs) ? nowMs : 0) : (this.endedAt ?? this.at);
    for (const id of [...this.open.keys()]) this.close(id, to);
    return {
      sessions: this.sessions,
      runs: this.running.spans(to),
      gaps: this.gaps,
      held: this.held.spans(to),
      frozen: this.frozen.spans(to),
      limits: this.limits.spans(to),
      dry: this.dry.spans(to),
      errors: this.errors.spans(to),
      warming: this.state === undefined ? new Map() : this.warmth.spans(this.state, to),
      spendings: this.spendings,
      notes: this.notes,
      ...(this.from === undefined ? {} : { from: this.from }),
      to,
    };
  }

  /** `before`: when something was heard of the group last. */
  private beginRun(wasRunning: boolean, before: number): void {
    this.from ??= this.at;
    // A runner that died says nothing; the last word is the best that is known of its end.
    const since = wasRunning ? before : this.endedAt;
    if (wasRunning) this.running.set(false, before);
    const kind = wasRunning ? 'paused' : this.gapReason();
    if (since !== undefined && since < this.at) this.gaps.push({ from: since, to: this.at, kind });
    this.isDry = false;
    for (const [id, record] of this.state?.sessions ?? []) this.rest(id, record);
  }

  private gapReason(): GapReason {
    const ended = this.notes.findLast(({ event }) => event.type === 'group_paused' || event.type === 'group_failed');
    const isLast = ended !== undefined && ended.at === this.endedAt;
    const reason = isLast && 'reason' in ended.event ? ended.event.reason : '';
    if (reason === 'budget' || reason === 'limit') return reason;
    return reason === 'needs-person' || reason === 'error-threshold' ? 'errors' : 'paused';
  }

  private follow(event: GroupEvent): void {
    const { state, at } = this;
    if (state === undefined) return;
    const isRunning = state.status === 'running';
    if (event.type === 'budget_exceeded') this.isDry = event.action !== 'continued';
    if (event.type === 'group_changed' || !isRunning) this.isDry = false;
    this.running.set(isRunning, at);
    this.held.set(isRunning && (state.pausing !== undefined || state.frozenUntil !== undefined), at);
    this.frozen.set(isRunning && state.frozenUntil !== undefined, at);
    this.limits.set(state.limitResetsAt !== undefined, at);
    this.dry.set(this.isDry, at);
    this.warmth.take(state, at);
    this.errors.set(isRunning && startBlocker(state) !== null, at);
  }

  private takeSession(event: GroupEvent, id: SessionId): void {
    const record = this.state?.sessions.get(id);
    if (record === undefined) {
      // Removed: what it cost stays, the rest is nobody's concern any more.
      this.sessions.delete(id);
      this.open.delete(id);
      return;
    }
    const session = this.sessions.get(id) ?? { attempts: [], stretches: [] };
    this.sessions.set(id, session);
    this.takeAttempt(event, session, record);
    this.rest(id, record);
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
      attempt.usage = noUsage;
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
    if (attempt.usage !== undefined) return;
    attempt.usage = usage;
    this.spendings.push({ from: attempt.workingAt ?? attempt.startedAt, at: this.at, sessionId, usage });
  }

  /** Notes why the session rests from now on, when that is no longer what it was. */
  private rest(id: SessionId, record: SessionRecord): void {
    const rest = restOf(record, this.state?.only);
    const until = rest === 'ready' && (record.notBeforeMs ?? 0) > this.at ? record.notBeforeMs : undefined;
    const known = this.open.get(id);
    if (known?.rest === rest && known.notBefore === until) return;
    const attempt = this.sessions.get(id)?.attempts.at(-1);
    // The rest begins where the attempt ended, which may be earlier than when that was noticed.
    const from = known === undefined ? Math.min(this.at, attempt?.endedAt ?? this.at) : this.at;
    this.close(id, from);
    if (rest === null) return;
    const forLimit = record.state.status === 'paused' && record.state.reason === 'limit';
    this.open.set(id, {
      from,
      rest,
      ...(until === undefined ? {} : { notBefore: until }),
      ...(forLimit ? { forLimit: true as const } : {}),
    });
  }

  private close(id: SessionId, to: number): void {
    const stretch = this.open.get(id);
    if (stretch === undefined) return;
    this.open.delete(id);
    if (to > stretch.from) this.sessions.get(id)?.stretches.push({ ...stretch, to });
  }
}

/** Null while it runs or when it is done. */
function restOf({ definition, state, queued, ...rest }: SessionRecord, only?: ReadonlySet<SessionId>): Rest | null {
  if (state.status === 'running' || state.status === 'completed') return null;
  if (state.status === 'failed' && !queued) return 'failed';
  if (queued) return only === undefined || only.has(definition.id) ? 'ready' : 'paused';
  return state.status === 'paused' && isBudgetExhausted({ definition, state, queued, ...rest }) ? 'budget' : 'paused';
}
