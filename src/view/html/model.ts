/**
 * What a report tells, as plain data: made from the folded state and its log, printed as it is by `--json`, and shown
 * by the HTML page and the Markdown. Foreign text is whole and raw here; whoever shows it makes it harmless.
 */
import { adviceText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { AttemptKind, GroupEvent, Warning } from '../../core/event.ts';
import { addTokens, addUsage, noUsage, type SessionId, type Tokens, type Usage, type Work } from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import type { Verdicts } from '../../core/plan/decision.ts';
import { verdictsAtRest } from '../../core/plan/verdicts.ts';
import { phaseOf } from '../../core/progress.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { GroupStatus, SessionStatus } from '../../core/status.ts';
import { budgetReport, type ModelBudget } from '../budget.ts';
import { formatUtc } from '../format.ts';
import { nextSteps } from '../summary.ts';
import { conditionOf, machineName, sessionTitle, titleOf, troubleWith } from '../wording.ts';
import { type AttemptHistory, groupHistory, noteText, type SessionHistory } from './history.ts';

export interface ReportModel {
  readonly version: 1;
  readonly groupId: string;
  readonly name: string;
  readonly description: string;
  readonly status: GroupStatus;
  readonly reason?: string;
  readonly message?: string;
  readonly condition?: string;
  /** Its log says that it runs, and nobody runs it. */
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
  /** Absent while the group was never started. */
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
  readonly work?: Work;
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
  /** A live process runs the group. */
  readonly hasRunner?: boolean;
  readonly verdicts?: Verdicts;
}

/**
 * The report of a group. `state` is the fold of `events`. `nowMs` (ms since 1970) counts only while somebody runs the
 * group, so that the report of one that ended, or whose runner died, is always the same.
 */
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
      message: state.message,
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

/** The times of years that no clock shows would not make a date. */
const lastMs = 8.64e15;

function iso(atMs: number): string {
  return new Date(Math.min(atMs, lastMs)).toISOString();
}

function reportSessions(
  state: GroupState,
  history: ReadonlyMap<SessionId, SessionHistory>,
  live: ReadonlyMap<SessionId, Usage>,
  verdicts: Verdicts,
): ReportSession[] {
  return [...state.sessions.values()].map((record): ReportSession => {
    const { id } = record.definition;
    const told = history.get(id) ?? { attempts: [] };
    const now = live.get(id) ?? noUsage;
    const usage = addUsage(record.usage, now);
    const why = verdicts(record);
    const phase = record.state.status === 'running' ? phaseOf(record.state.attempt) : undefined;
    const culprits = why?.reason === 'blocked' ? why.on : undefined;
    const { message, advice } = troubleWith(state, record, why) ?? {};
    const next = advice === undefined ? undefined : adviceText(advice);
    return {
      ...definitionOf(record),
      status: record.state.status,
      ...defined({ phase, reason: why?.reason, message, next, blockedBy: culprits }),
      costUsd: usage.costUsd,
      ...defined({ estimated: usage.estimated, startedAt: record.startedAt, endedAt: record.endedAt }),
      tokens: usage.tokens,
      durationMs: usage.durationMs,
      turns: usage.turns,
      attempts: told.attempts.map((attempt) => reportAttempt(attempt, attempt.endedAt === undefined ? now : noUsage)),
      ...outcomeOf(record, told),
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

/** A group whose runner is gone is not running, whatever its log says. */
export function shownStatus({ interrupted, status }: ReportModel): string {
  return interrupted ? 'interrupted' : status;
}

export function isFine({ status, warnings }: ReportSession): boolean {
  return status === 'completed' && warnings.length === 0;
}

/** At most `max` sessions, in the order of their numbers: those with a problem, then the most expensive. */
export function notableSessions(sessions: readonly ReportSession[], max: number): readonly ReportSession[] {
  if (sessions.length <= max) return sessions;
  const weight = (session: ReportSession): number => (isFine(session) ? 1 : 0);
  const chosen = [...sessions].sort((a, b) => weight(a) - weight(b) || b.costUsd - a.costUsd).slice(0, max);
  const ids = new Set(chosen.map(({ id }) => id));
  return sessions.filter(({ id }) => ids.has(id));
}
