/**
 * What the log says happened when: the attempts of every session, the time that runs took, and what happened to the
 * group. Times are ms since 1970 and never run backwards, whatever the machine's clock did.
 */
import { defined } from '../../core/defined.ts';
import type { AttemptKind, GroupEvent } from '../../core/event.ts';
import { noUsage, type SessionId, type Usage } from '../../core/group.ts';
import { reduce } from '../../core/reduce.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupState, initialState, isThrottled } from '../../core/state.ts';
import { formatMoney, formatUtc, plural } from '../format.ts';

export interface AttemptHistory {
  readonly id: string;
  readonly number: number;
  readonly kind: AttemptKind;
  readonly startedAt: number;
  workingAt?: number;
  acceptingAt?: number;
  endedAt?: number;
  outcome: 'running' | 'completed' | 'failed' | 'paused';
  reason?: string;
  message?: string;
  next?: string;
  model?: string;
  usage?: Usage;
}

export interface SessionHistory {
  readonly attempts: AttemptHistory[];
  branch?: string;
}

interface Note {
  readonly at: number;
  readonly event: GroupEvent;
}

interface History {
  readonly sessions: ReadonlyMap<SessionId, SessionHistory>;
  readonly notes: readonly Note[];
  readonly elapsedMs: number;
  readonly from?: number;
  readonly to: number;
}

/** `nowMs` counts only while the group runs, so that the report of a group that ended is always the same. */
export function groupHistory(events: readonly GroupEvent[], nowMs: number): History {
  const historian = new Historian();
  for (const event of events) historian.take(event);
  return historian.finish(nowMs);
}

class Historian {
  #state: GroupState | undefined;
  #at = 0;
  readonly #sessions = new Map<SessionId, SessionHistory>();
  readonly #notes: Note[] = [];
  #elapsedMs = 0;
  #from: number | undefined;
  #runStart = 0;
  #runEnd: number | undefined;
  /** When the last stretch without a runner began. */
  #silentFrom: number | undefined;

  take(event: GroupEvent): void {
    const before = this.#at;
    const parsed = Date.parse(event.at);
    if (parsed > this.#at) this.#at = parsed;
    const former = this.#state;
    const wasRunning = former?.status === 'running';
    const wasPausing = former?.pausing !== undefined;
    this.#state = former === undefined ? initialState(event) : reduce(former, event);
    if (event.type === 'group_started' || event.type === 'group_resumed') this.#beginRun(wasRunning, before);
    else if (wasRunning && this.#state.status !== 'running') this.#endRun(this.#at);
    if ('sessionId' in event && event.sessionId !== undefined) this.#takeSession(event, event.sessionId);
    if (isNoted(event, wasPausing)) this.#notes.push({ at: this.#at, event });
  }

  finish(nowMs: number): History {
    const isRunning = this.#state?.status === 'running';
    const to = isRunning ? Math.max(this.#at, Number.isFinite(nowMs) ? nowMs : 0) : (this.#runEnd ?? this.#at);
    const elapsedMs = this.#elapsedMs + (isRunning ? to - this.#runStart : 0);
    return { sessions: this.#sessions, notes: this.#notes, elapsedMs, ...defined({ from: this.#from }), to };
  }

  /** `before`: the time of the event before this one. A runner that was killed ended at that time at the latest. */
  #beginRun(wasRunning: boolean, before: number): void {
    this.#from ??= this.#at;
    if (wasRunning) this.#endRun(before);
    if (this.#runEnd !== undefined && this.#runEnd < this.#at) this.#silentFrom = this.#runEnd;
    this.#runStart = this.#at;
  }

  #endRun(at: number): void {
    this.#elapsedMs += Math.max(0, at - this.#runStart);
    this.#runEnd = at;
  }

  #takeSession(event: GroupEvent, id: SessionId): void {
    const record = this.#state?.sessions.get(id);
    if (record === undefined) {
      this.#sessions.delete(id);
      return;
    }
    const session = this.#sessions.get(id) ?? { attempts: [] };
    this.#sessions.set(id, session);
    const attempt = session.attempts.at(-1);
    if (event.type === 'session_starting') this.#beginAttempt(event.attempt, session, record);
    else if (event.type === 'session_isolated') session.branch = event.workspace.branch;
    else if (attempt !== undefined) this.#takeAttempt(event, attempt, session);
  }

  #takeAttempt(event: GroupEvent, attempt: AttemptHistory, { attempts }: SessionHistory): void {
    switch (event.type) {
      case 'session_identified':
        attempt.workingAt ??= this.#at;
        if (event.model !== undefined) attempt.model = event.model;
        return;
      case 'session_booked': {
        const lost = attempts.find(({ id }) => id === event.attemptId);
        if (lost !== undefined) lost.usage = event.usage;
        return;
      }
      case 'session_accepting':
        attempt.acceptingAt ??= this.#at;
        attempt.usage ??= event.usage;
        return;
      case 'session_completed':
        this.#endAttempt(attempt, { outcome: 'completed' }, event.usage);
        return;
      case 'session_failed': {
        const { reason, message, next, usage } = event;
        this.#endAttempt(attempt, { outcome: 'failed', reason, message, next }, usage);
        return;
      }
      case 'session_paused': {
        const { reason, message, usage } = event;
        this.#endAttempt(attempt, { outcome: 'paused', reason, message }, usage);
        return;
      }
      default:
    }
  }

  #beginAttempt(
    { id, number, kind }: { readonly id: string; readonly number: number; readonly kind: AttemptKind },
    session: SessionHistory,
    { state }: SessionRecord,
  ): void {
    // A crash before the spawn starts the same attempt again.
    if (session.attempts.at(-1)?.id === id) return;
    const attempt: AttemptHistory = { id, number, kind, startedAt: this.#at, outcome: 'running' };
    // Only acceptance is left to do: no model request, no cost.
    if (state.status === 'running' && state.attempt.accepting !== undefined) {
      attempt.acceptingAt = this.#at;
      attempt.usage = noUsage;
    }
    session.attempts.push(attempt);
  }

  #endAttempt(
    attempt: AttemptHistory,
    end: Pick<AttemptHistory, 'outcome' | 'reason' | 'message' | 'next'>,
    usage: Usage,
  ): void {
    // The usage that was recorded when acceptance began is not counted twice.
    attempt.usage ??= usage;
    Object.assign(attempt, end);
    attempt.endedAt = this.#at;
    // The attempt ended while no runner was alive. Its working time tells about when.
    const silentFrom = this.#silentFrom;
    if (end.reason !== 'interrupted' || silentFrom === undefined || silentFrom < attempt.startedAt) return;
    const worked = attempt.startedAt + Math.max(0, usage.durationMs);
    attempt.endedAt = Math.min(this.#at, Math.max(silentFrom, worked));
  }
}

/** Pauses that lose nothing and end at once. */
const unnoted: ReadonlySet<string> = new Set(['slice', 'disk']);

/** Events of a session are noted when they set it back; a pause of the group is noted once, not for each session. */
function isNoted(event: GroupEvent, wasPausing: boolean): boolean {
  if (event.type === 'session_paused') return !wasPausing && !unnoted.has(event.reason);
  if (event.type === 'session_starting') return event.attempt.kind === 'retry';
  return noteText(event, String) !== null;
}

export function noteText(event: GroupEvent, titleOf: (id: SessionId) => string): string | null {
  switch (event.type) {
    case 'session_failed':
      return `${titleOf(event.sessionId)} failed (${event.reason}). ${event.message}`.trim();
    case 'session_paused': {
      const isRejected = event.reason === 'not-accepted';
      const what = isRejected ? 'was sent back to correct its work' : `was paused (${event.reason})`;
      return `${titleOf(event.sessionId)} ${what}. ${event.message}`.trim();
    }
    case 'session_starting':
      return `${titleOf(event.sessionId)} was retried, attempt ${event.attempt.number}.`;
    case 'group_started':
      return 'The group was started.';
    case 'group_resumed': {
      const { length } = event.retry;
      return length > 0
        ? `The group was resumed; ${plural(length, 'failed session')} retried.`
        : 'The group was resumed.';
    }
    case 'group_pausing':
      return event.mode === 'drain'
        ? `A pause was requested (${event.reason}); running sessions were left to finish.`
        : `All sessions were stopped for a pause (${event.reason}).`;
    case 'group_paused':
      return `The group was paused (${event.reason}). ${event.message}`.trim();
    case 'group_failed':
      return `The group failed (${event.reason}). ${event.message}`.trim();
    case 'group_completed':
      return 'Every session was completed.';
    case 'group_frozen':
      return 'All sessions were frozen.';
    case 'group_thawed':
      return 'The frozen sessions continued.';
    case 'group_merged':
      return event.merged
        .map(({ into, sessionIds }) => `The work of ${plural(sessionIds.length, 'session')} was merged into ${into}.`)
        .join(' ');
    case 'group_archived':
      return 'The group was archived.';
    case 'limit_reached':
      return isThrottled(event)
        ? `The server throttled requests; nothing was to start before ${formatUtc(event.resetsAt)}.`
        : `A usage limit was reached; its reset was due at ${formatUtc(event.resetsAt)}.`;
    case 'limit_lifted':
      return 'The limit was lifted.';
    case 'budget_warning':
      return `${formatMoney(event.usage)} of ${formatMoney(event.limit)} were spent.`;
    case 'budget_exceeded':
      return `The budget of ${formatMoney(event.limit)} was exhausted (${event.action}).`;
    default:
      return null;
  }
}
