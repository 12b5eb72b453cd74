/** The data of a report, from the state and the log. Foreign text is complete and unescaped. */
import { adviceText } from '../../core/advice.ts';

import { defined } from '../../core/defined.ts';
import type { AttemptKind, GroupEvent } from '../../core/event.ts';
import { addTokens, addUsage, noUsage, type SessionId, type Tokens, type Usage } from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import type { Verdicts, WaitReason } from '../../core/plan/decision.ts';
import { verdictsAtRest } from '../../core/plan/verdicts.ts';
import { phaseOf } from '../../core/progress.ts';
import { type SessionRecord, workedMs } from '../../core/session-state.ts';
import { elapsedMs, type GroupState } from '../../core/state.ts';
import { budgetReport } from '../budget.ts';
import { formatUtc } from '../format.ts';
import { nextSteps } from '../summary.ts';
import { conditionOf, machineName, messageAtRest, problemText, sessionTitle } from '../wording.ts';

export type ReportModel = ReturnType<typeof reportModel>;
export type ReportSession = ReturnType<typeof reportSession>;

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
) {
  const interrupted = state.status === 'running' && !hasRunner;
  const history = groupHistory(state, events, interrupted ? Date.parse(state.updatedAt) : nowMs);
  const { group } = state;
  const { spentUsd, estimated, limitUsd, reservedUsd, leftUsd, onBudgetExceeded, removedUsd, models } = budgetReport(
    state,
    live,
  );
  const sessions = [...state.sessions.values()].map((record) => {
    const { id } = record.definition;
    const past = history.sessions.get(id) ?? { attempts: [] };
    return reportSession(state, record, past, live.get(id) ?? noUsage, verdicts(record));
  });
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
    asOf: history.to,
    elapsedMs: elapsedMs(state, Date.parse(history.to)),
    counts: { ...state.counts },
    blocked: sessions.filter(({ status, blockedBy }) => status === 'pending' && blockedBy !== undefined).length,
    cost: { spentUsd, reservedUsd, onBudgetExceeded, removedUsd, ...defined({ estimated, limitUsd, leftUsd }) },
    tokens,
    attempts: sessions.reduce((sum, { attempts }) => sum + attempts.length, 0),
    next: nextSteps(state, hasRunner),
    sessions,
    models,
    ...(history.from === undefined ? {} : { timeline: { from: history.from, to: history.to } }),
  };
}

function iso(atMs: number): string {
  return new Date(atMs).toISOString();
}

function reportSession(
  state: GroupState,
  record: SessionRecord,
  past: SessionHistory,
  now: Usage,
  why: WaitReason | null,
) {
  const usage = addUsage(record.usage, now);
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
    attempts: past.attempts.map(({ id: _, ...attempt }) =>
      (attempt.endedAt ?? attempt.acceptingAt) ? attempt : { ...attempt, ...figuresOf(now) },
    ),
    ...outcomeOf(record, past),
    warnings: record.warnings,
  };
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

type AttemptHistory = { -readonly [Key in keyof ReportAttempt]: ReportAttempt[Key] } & { readonly id: string };

interface SessionHistory {
  readonly attempts: AttemptHistory[];
  branch?: string;
}

interface History {
  readonly sessions: ReadonlyMap<SessionId, SessionHistory>;
  readonly from?: string;
  readonly to: string;
}

const runEnds: ReadonlySet<string> = new Set(['group_paused', 'group_completed', 'group_failed']);

/** `nowMs` is used only while the group runs, so that the report of a finished group never changes. */
function groupHistory({ status, updatedAt }: GroupState, events: readonly GroupEvent[], nowMs: number): History {
  const sessions = new Map<SessionId, SessionHistory>();
  let from: string | undefined;
  let end = updatedAt;
  for (const event of events) {
    const { type, at } = event;
    if (type === 'group_started' || type === 'group_resumed') from ??= at;
    if (runEnds.has(type)) end = at;
    if (!('sessionId' in event) || event.sessionId === undefined) continue;
    const session = sessions.get(event.sessionId) ?? { attempts: [] };
    sessions.set(event.sessionId, session);
    takeEvent(session, event);
  }
  const to = status === 'running' ? iso(Math.max(Date.parse(updatedAt), nowMs)) : end;
  return { sessions, ...defined({ from }), to };
}

function takeEvent(session: SessionHistory, event: GroupEvent): void {
  const { attempts } = session;
  const last = attempts.at(-1);
  if (event.type === 'session_isolated') session.branch = event.workspace.branch;
  // After a crash before the spawn, the same attempt starts again.
  if (event.type === 'session_starting' && last?.id !== event.attempt.id) attempts.push(newAttempt(event, last));
  if (last === undefined) return;
  switch (event.type) {
    case 'session_identified':
      last.workingAt ??= event.at;
      if (event.model !== undefined) last.model = event.model;
      return;
    case 'session_booked':
      Object.assign(attempts.find(({ id }) => id === event.attemptId) ?? {}, figuresOf(event.usage));
      return;
    case 'session_accepting':
      if (last.acceptingAt === undefined) Object.assign(last, figuresOf(event.usage));
      last.acceptingAt ??= event.at;
      return;
    case 'session_completed':
      endAttempt(last, event, { outcome: 'completed' });
      return;
    case 'session_failed': {
      const { reason, message, next } = event;
      endAttempt(last, event, { outcome: 'failed', reason, message, next });
      return;
    }
    case 'session_paused': {
      const { reason, message } = event;
      endAttempt(last, event, { outcome: 'paused', reason, message });
      return;
    }
    default:
  }
}

const rejections: ReadonlySet<string> = new Set(['not-accepted', 'not-proven']);

function newAttempt(
  { at, attempt: { id, number, kind } }: Extract<GroupEvent, { type: 'session_starting' }>,
  last: AttemptHistory | undefined,
): AttemptHistory {
  // If its acceptance was interrupted, only acceptance is repeated, without a model request.
  const isRepeated = last?.acceptingAt && last.outcome === 'paused' && !rejections.has(last.reason ?? '');
  const accepting = isRepeated ? { acceptingAt: at } : {};
  return { id, number, kind, startedAt: at, outcome: 'running', ...figuresOf(noUsage), ...accepting };
}

function endAttempt(
  attempt: AttemptHistory,
  { at, usage }: { readonly at: string; readonly usage: Usage },
  end: Pick<ReportAttempt, 'outcome' | 'reason' | 'message' | 'next'>,
): void {
  // Do not count the usage that was logged before acceptance twice.
  if (attempt.acceptingAt === undefined) Object.assign(attempt, figuresOf(usage));
  // If no runner was alive at the end, estimate it from the working time.
  const workedTo = iso(Date.parse(attempt.startedAt) + usage.durationMs);
  Object.assign(attempt, end, { endedAt: end.reason === 'interrupted' && workedTo < at ? workedTo : at });
}

function figuresOf({ costUsd, tokens, turns, estimated }: Usage) {
  return { costUsd, tokens, turns, ...defined({ estimated }) };
}
