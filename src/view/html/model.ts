/** The data of a report, from the state and the log. Foreign text is complete and unescaped. */
import { adviceText } from '../../core/advice.ts';

import { defined } from '../../core/defined.ts';
import type { AttemptKind, GroupEvent, Warning } from '../../core/event.ts';
import {
  addTokens,
  addUsage,
  type Changes,
  noUsage,
  type SessionId,
  type Tokens,
  type Usage,
} from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import type { Verdicts } from '../../core/plan/decision.ts';
import { verdictsAtRest } from '../../core/plan/verdicts.ts';
import { phaseOf } from '../../core/progress.ts';
import { reduce } from '../../core/reduce.ts';
import { type SessionRecord, workedMs } from '../../core/session-state.ts';
import { type GroupState, initialState, isThrottled } from '../../core/state.ts';
import type { GroupStatus, SessionStatus } from '../../core/status.ts';
import { budgetReport, type ModelBudget } from '../budget.ts';
import { formatMoney, formatUtc, plural } from '../format.ts';
import { nextSteps } from '../summary.ts';
import {
  conditionOf,
  machineName,
  messageAtRest,
  problemText,
  projectName,
  sessionTitle,
  titleOf,
} from '../wording.ts';

export interface ReportModel {
  readonly version: 1;
  readonly groupId: string;
  readonly name: string;
  readonly description: string;
  readonly status: GroupStatus;
  readonly reason?: string;
  readonly message?: string;
  readonly condition?: string;
  /** The group is running according to its log, but has no runner. */
  readonly interrupted?: true;
  readonly rehearsal?: true;
  readonly createdAt: string;
  readonly asOf: string;
  readonly elapsedMs: number;
  readonly counts: Readonly<Record<SessionStatus, number>>;
  readonly blocked: number;
  readonly cost: ReportCost;
  readonly tokens: Tokens;
  readonly attempts: number;
  readonly next: readonly string[];
  readonly sessions: readonly ReportSession[];
  readonly models: readonly ModelBudget[];
  /** Absent if the group was never started. */
  readonly timeline?: ReportTimeline;
  readonly notes: readonly ReportNote[];
}

export interface ReportCost {
  readonly spentUsd: number;
  readonly estimated?: true;
  readonly limitUsd?: number;
  readonly reservedUsd: number;
  readonly leftUsd?: number;
  readonly onBudgetExceeded: string;
  readonly removedUsd: number;
}

export interface ReportSession {
  readonly id: SessionId;
  readonly title: string;
  readonly name?: string;
  readonly description: string;
  readonly projectPath: string;
  readonly host?: string;
  readonly status: SessionStatus;
  readonly reason?: string;
  readonly message?: string;
  readonly next?: string;
  readonly phase?: 'preparing' | 'working' | 'accepting';
  readonly dependsOn: readonly SessionId[];
  readonly blockedBy?: readonly SessionId[];
  readonly model?: string;
  readonly costUsd: number;
  readonly estimated?: true;
  readonly limitUsd?: number;
  readonly tokens: Tokens;
  readonly durationMs: number;
  readonly turns: number;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly attempts: readonly ReportAttempt[];
  readonly prompt: string;
  readonly result?: string;
  readonly structured?: unknown;
  readonly work?: Changes;
  readonly branch?: string;
  readonly branchRemoved?: true;
  readonly mergedInto?: string;
  readonly rejection?: { readonly message: string; readonly output: string };
  readonly warnings: readonly Warning[];
}

export interface ReportAttempt {
  readonly number: number;
  readonly kind: AttemptKind;
  readonly startedAt: string;
  readonly workingAt?: string;
  readonly acceptingAt?: string;
  readonly endedAt?: string;
  readonly outcome: 'running' | 'completed' | 'failed' | 'paused';
  readonly reason?: string;
  readonly message?: string;
  readonly next?: string;
  readonly model?: string;
  readonly costUsd: number;
  readonly estimated?: true;
  readonly tokens: Tokens;
  readonly turns: number;
}

export interface ReportTimeline {
  readonly from: string;
  readonly to: string;
}

export interface ReportNote {
  readonly at: string;
  readonly type: string;
  readonly text: string;
}

export interface ReportContext {
  readonly live?: ReadonlyMap<SessionId, Usage>;
  /** The group has a live runner. */
  readonly hasRunner?: boolean;
  readonly verdicts?: Verdicts;
}

/** `state` is the fold of `events`. `nowMs` (ms since 1970) counts only while the group has a runner. */
export function reportModel(
  state: GroupState,
  events: readonly GroupEvent[],
  nowMs: number,
  { live = new Map(), hasRunner = false, verdicts = verdictsAtRest(state) }: ReportContext = {},
): ReportModel {
  const interrupted = state.status === 'running' && !hasRunner;
  const history = groupHistory(events, interrupted ? Date.parse(state.updatedAt) : nowMs);
  const { group } = state;
  const { spentUsd, estimated, limitUsd, reservedUsd, leftUsd, onBudgetExceeded, removedUsd, models } = budgetReport(
    state,
    live,
  );
  const sessions = reportSessions(state, history.sessions, live, verdicts);
  let tokens = state.usage.tokens;
  for (const usage of live.values()) tokens = addTokens(tokens, usage.tokens);
  return {
    version: 1,
    groupId: group.id,
    name: group.name,
    description: group.description,
    status: state.status,
    ...defined({
      reason: state.reason,
      message: messageAtRest(state),
      condition: conditionOf(state, nowMs, formatUtc) ?? undefined,
    }),
    ...(interrupted ? { interrupted } : {}),
    ...(state.run?.rehearsal ? { rehearsal: true as const } : {}),
    createdAt: group.createdAt,
    asOf: iso(history.to),
    elapsedMs: history.elapsedMs,
    counts: { ...state.counts },
    blocked: sessions.filter(({ status, blockedBy }) => status === 'pending' && blockedBy !== undefined).length,
    cost: { spentUsd, reservedUsd, onBudgetExceeded, removedUsd, ...defined({ estimated, limitUsd, leftUsd }) },
    tokens,
    attempts: sessions.reduce((sum, { attempts }) => sum + attempts.length, 0),
    next: nextSteps(state, hasRunner),
    sessions,
    models,
    ...(history.from === undefined ? {} : { timeline: { from: iso(history.from), to: iso(history.to) } }),
    notes: history.notes.map(({ at, event }) => {
      return { at: iso(at), type: event.type, text: noteText(event, (id) => titleOf(state, id)) ?? event.type };
    }),
  };
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}

function reportSessions(
  state: GroupState,
  history: ReadonlyMap<SessionId, SessionHistory>,
  live: ReadonlyMap<SessionId, Usage>,
  verdicts: Verdicts,
): ReportSession[] {
  return [...state.sessions.values()].map((record): ReportSession => {
    const { id } = record.definition;
    const past = history.get(id) ?? { attempts: [] };
    const now = live.get(id) ?? noUsage;
    const usage = addUsage(record.usage, now);
    const why = verdicts(record);
    const phase = record.state.status === 'running' ? phaseOf(record.state.attempt) : undefined;
    const culprits = why?.reason === 'blocked' ? why.on : undefined;
    const { message, advice } = problemText(state, record, why) ?? {};
    const next = advice === undefined ? undefined : adviceText(advice);
    return {
      ...definitionOf(record),
      status: record.state.status,
      ...defined({ phase, reason: why?.reason, message, next, blockedBy: culprits }),
      costUsd: usage.costUsd,
      ...defined({ estimated: usage.estimated, startedAt: record.startedAt, endedAt: record.endedAt }),
      tokens: usage.tokens,
      durationMs: Math.max(workedMs(record), usage.durationMs),
      turns: usage.turns,
      attempts: past.attempts.map((attempt) => reportAttempt(attempt, attempt.endedAt === undefined ? now : noUsage)),
      ...outcomeOf(record, past),
      warnings: [...record.warnings],
    };
  });
}

function definitionOf({ definition, model, host }: SessionRecord) {
  const { id, name, description, projectPath, dependsOn, maxBudgetUsd, prompt } = definition;
  return {
    id,
    title: sessionTitle(id, name),
    ...defined({ name, model: model ?? definition.model, limitUsd: maxBudgetUsd }),
    description,
    projectPath,
    ...(host === undefined ? {} : { host: machineName({ host }) }),
    dependsOn,
    prompt,
  };
}

function outcomeOf(record: SessionRecord, { branch }: SessionHistory) {
  const { state, mergedInto, rejection } = record;
  const { result, structured, work } = state.status === 'completed' ? state : { ...record.finished, work: undefined };
  const branchRemoved = record.workspace === undefined && branch !== undefined ? (true as const) : undefined;
  const left = { work, branch: record.workspace?.branch ?? branch, branchRemoved, mergedInto };
  return defined({ result, structured, ...left, rejection });
}

function reportAttempt(attempt: AttemptHistory, now: Usage): ReportAttempt {
  const { number, kind, startedAt, workingAt, acceptingAt, endedAt, outcome, reason, message, next, model } = attempt;
  const usage = attempt.usage ?? now;
  const time = (at: number | undefined): string | undefined => (at === undefined ? undefined : iso(at));
  return {
    number,
    kind,
    startedAt: iso(startedAt),
    ...defined({ workingAt: time(workingAt), acceptingAt: time(acceptingAt), endedAt: time(endedAt) }),
    outcome,
    ...defined({ reason, message, next, model, estimated: usage.estimated }),
    costUsd: usage.costUsd,
    tokens: usage.tokens,
    turns: usage.turns,
  };
}

export function anchorOf(id: SessionId): string {
  return `session-${sessionNumber(id)}`;
}

/** A group without a runner is shown as interrupted, even if its log says running. */
export function shownStatus({ interrupted, status }: ReportModel): string {
  return interrupted ? 'interrupted' : status;
}

export function isFine({ status, warnings }: ReportSession): boolean {
  return status === 'completed' && warnings.length === 0;
}

/** At most `max` sessions, by number: those with a problem, then the most expensive. */
export function notableSessions(sessions: readonly ReportSession[], max: number): readonly ReportSession[] {
  if (sessions.length <= max) return sessions;
  const weight = (session: ReportSession): number => (isFine(session) ? 1 : 0);
  const chosen = [...sessions].sort((a, b) => weight(a) - weight(b) || b.costUsd - a.costUsd).slice(0, max);
  const ids = new Set(chosen.map(({ id }) => id));
  return sessions.filter(({ id }) => ids.has(id));
}

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

/** `nowMs` is used only while the group runs, so that the report of a finished group never changes. */
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

  /** `before`: the time of the previous event, which is the last sign of a killed runner. */
  #beginRun(wasRunning: boolean, before: number): void {
    this.#from ??= this.#at;
    if (wasRunning) this.#endRun(before);
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
    // After a crash before the spawn, the same attempt starts again.
    if (session.attempts.at(-1)?.id === id) return;
    const attempt: AttemptHistory = { id, number, kind, startedAt: this.#at, outcome: 'running' };
    // Only acceptance is repeated, without a model request.
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
    // Do not count the usage that was logged before acceptance twice.
    attempt.usage ??= usage;
    Object.assign(attempt, end);
    // If no runner was alive at the end, estimate it from the working time.
    const workedTo = attempt.startedAt + usage.durationMs;
    attempt.endedAt = end.reason === 'interrupted' ? Math.min(this.#at, workedTo) : this.#at;
  }
}

/** Pauses that end at once without a loss. */
const unnoted: ReadonlySet<string> = new Set(['top-up', 'disk']);

/** Notes setbacks of sessions. A pause of the group is noted once, not for each session. */
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
        ? `A pause was requested (${event.reason}) after the running sessions finish.`
        : `All sessions were stopped for a pause (${event.reason}).`;
    case 'group_paused':
      return `The group was paused (${event.reason}). ${event.message}`.trim();
    case 'group_failed':
      return `The group failed (${event.reason}). ${event.message}`.trim();
    case 'group_completed':
      return 'All sessions completed.';
    case 'group_frozen':
      return 'All sessions were frozen.';
    case 'group_thawed':
      return 'The frozen sessions continued.';
    case 'group_merged':
      return event.merged
        .map(({ repository, into, sessionIds }) => {
          const work = `The work of ${plural(sessionIds.length, 'session')}`;
          return `${work} was merged into ${into} of ${projectName(repository)}.`;
        })
        .join(' ');
    case 'group_archived':
      return 'The group was archived.';
    case 'limit_reached':
      return isThrottled(event)
        ? `The server throttled requests. Nothing started before ${formatUtc(event.resetsAt)}.`
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
