/** GroupProgress of the seed (§11), made from the state and from what running workers said last. */

import { type Advice, adviceText, advise } from './advice.ts';
import { addUsage, noUsage, type SessionId, type Tokens, type Usage } from './group.ts';
import { sessionLabel } from './id.ts';
import { failureAdvice, retryFailedCommand } from './plan/advice.ts';
import { type SlotWait, slotReason, slotSentence } from './plan/command-slot.ts';
import { allBlockers, isHeldBack, type Plan, planOf, willNotRun } from './plan/plan.ts';
import { timedWait } from './plan/timed-wait.ts';
import type { Attempt, SessionRecord } from './session-state.ts';
import type { GroupState } from './state.ts';
import type { SessionStatus } from './status.ts';

/** claude asked the API in vain, and asks again after a while. */
export interface ApiRetry {
  /** From 1. */
  readonly attempt: number;
  /** After so many it gives up; absent = it did not say. */
  readonly attemptsMax?: number;
  /** claude's code for the trouble, such as `overloaded`. */
  readonly error: string;
  /** The status of the answer; null when there was none at all. */
  readonly errorStatus: number | null;
}

/** Tool calls of an attempt that its permissions did not allow. */
export interface Denied {
  readonly calls: number;
  /** Their names, each once, the first of them. */
  readonly tools: readonly string[];
}

/** `2 tool calls were denied: Bash, Write.` */
export function deniedSentence({ calls, tools }: Denied): string {
  const names = tools.length === 0 ? '' : `: ${tools.join(', ')}`;
  return `${calls === 1 ? '1 tool call was' : `${calls} tool calls were`} denied${names}.`;
}

/** What a running attempt looks like right now; never logged, may be dropped. */
export interface LiveSession {
  readonly currentTool?: string;
  /** Tool calls begun since this was shown last, oldest first; short ones are over before anybody looks. */
  readonly recentTools?: readonly string[];
  readonly lastText?: string;
  /** The last try, as long as the model has not answered since. */
  readonly retry?: ApiRetry;
  readonly denied?: Denied;
  /** A command of it that cannot begin yet. */
  readonly slot?: SlotWait;
  readonly usage: Usage;
}

/** Of all attempts of a session. */
export interface SessionFigures {
  /** US dollars. */
  readonly cost: number;
  readonly estimated?: true;
  readonly tokens: Tokens;
  readonly attempts: number;
}

export interface SessionProgress extends SessionFigures {
  readonly id: SessionId;
  readonly name?: string;
  readonly projectPath: string;
  readonly status: SessionStatus;
  /** A code where the status alone does not say why: blocked, waiting, or the pause or failure reason. */
  readonly reason?: string;
  readonly message?: string;
  /** What can be done about it, with whole commands. */
  readonly next?: string;
  readonly phase?: 'preparing' | 'working' | 'accepting';
  readonly dependsOn?: readonly SessionId[];
  /** Sessions that must complete first. */
  readonly waitsFor?: readonly SessionId[];
  /** ISO 8601: it goes on by itself, but not before. */
  readonly retryAt?: string;
  readonly currentTool?: string;
  readonly lastText?: string;
  readonly retry?: ApiRetry;
  /** Of the running attempt; a warning of the session tells it of those that ended. */
  readonly denied?: Denied;
  /** With the reason `command-slot`. */
  readonly slot?: SlotWait;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

export interface GroupProgress {
  readonly groupId: string;
  readonly status: string;
  readonly totalSessions: number;
  readonly completed: number;
  readonly running: number;
  readonly pending: number;
  readonly failed: number;
  readonly paused: number;
  readonly sessions: readonly SessionProgress[];
  /** US dollars over all sessions and attempts. */
  readonly totalCost: number;
  readonly totalTokens: Tokens;
  /** Milliseconds in which the group was running. */
  readonly elapsedTime: number;
}

/** The progress at `atMs` (ms since 1970). `isInterrupted`: nobody runs the group, whatever its status. */
export function groupProgress(
  state: GroupState,
  live: ReadonlyMap<SessionId, LiveSession>,
  atMs: number,
  isInterrupted = false,
): GroupProgress {
  const plan = planOf(state);
  let usage = state.usage;
  for (const id of state.running) {
    const now = live.get(id);
    if (now) usage = addUsage(usage, now.usage);
  }
  const blocked = allBlockers(state, plan);
  const view: View = { live, blocked, ...(isInterrupted ? {} : { nowMs: atMs }) };
  const current = state.runStartedAt === undefined ? 0 : Math.max(0, atMs - Date.parse(state.runStartedAt));
  return {
    groupId: state.group.id,
    status: state.status,
    totalSessions: state.sessions.size,
    completed: state.counts.completed,
    running: state.counts.running,
    pending: state.counts.pending,
    failed: state.counts.failed,
    paused: state.counts.paused,
    sessions: [...state.sessions.values()].map((record) => sessionProgress(state, plan, record, view)),
    totalCost: usage.costUsd,
    totalTokens: usage.tokens,
    elapsedTime: state.elapsedBeforeMs + current,
  };
}

interface View {
  readonly live: ReadonlyMap<SessionId, LiveSession>;
  readonly blocked: ReadonlyMap<SessionId, readonly SessionId[]>;
  /** ms since 1970; absent = nothing goes on by itself. */
  readonly nowMs?: number;
}

/** What all attempts of a session used together, with `now` of the one that runs and is not counted yet. */
export function sessionFigures(record: SessionRecord, now: Usage = noUsage): SessionFigures {
  const { costUsd, tokens, estimated } = addUsage(record.usage, now);
  return { cost: costUsd, ...(estimated ? { estimated } : {}), tokens, attempts: record.attempts };
}

function sessionProgress(state: GroupState, plan: Plan, record: SessionRecord, view: View): SessionProgress {
  const { definition } = record;
  const { live, blocked, nowMs } = view;
  const now = record.state.status === 'running' ? live.get(definition.id) : undefined;
  const wait = nowMs === undefined ? null : timedWait(state, plan, record, nowMs);
  return {
    id: definition.id,
    ...(definition.name === undefined ? {} : { name: definition.name }),
    projectPath: definition.projectPath,
    status: record.state.status,
    ...publicExplanation(record, explanation(state, plan, record, blocked)),
    ...(now?.slot === undefined ? {} : slotExplanation(state, now.slot)),
    ...(definition.dependsOn.length > 0 ? { dependsOn: definition.dependsOn } : {}),
    ...(wait === null ? {} : { retryAt: new Date(wait.untilMs).toISOString() }),
    ...(now?.currentTool === undefined ? {} : { currentTool: now.currentTool }),
    ...(now?.lastText === undefined ? {} : { lastText: now.lastText }),
    ...(now?.retry === undefined ? {} : { retry: now.retry }),
    ...(now?.denied === undefined ? {} : { denied: now.denied }),
    ...sessionFigures(record, now?.usage),
    ...(record.startedAt === undefined ? {} : { startedAt: record.startedAt }),
    ...(record.endedAt === undefined ? {} : { endedAt: record.endedAt }),
  };
}

function slotExplanation(state: GroupState, slot: SlotWait) {
  return { reason: slotReason, message: slotSentence(state, slot), slot };
}

type Explanation = Pick<SessionProgress, 'reason' | 'message' | 'phase' | 'waitsFor'> & { readonly advice?: Advice };

/** `message` goes on with the words that scripts have always found there; `next` is what can be typed. */
function publicExplanation({ state }: SessionRecord, { advice, ...rest }: Explanation): Partial<SessionProgress> {
  if (advice === undefined) return rest;
  const words = state.status === 'failed' ? state.failure.next : 'Try again with: group run --retry-failed.';
  return { ...rest, message: `${rest.message} ${words}`.trim(), next: adviceText(advice) };
}

/**
 * Why the session is where it is; for pending ones derived, never stored. `blocked` (see allBlockers) saves work when
 * many are asked for.
 */
export function explanation(
  state: GroupState,
  plan: Plan,
  record: SessionRecord,
  blocked?: View['blocked'],
): Explanation {
  switch (record.state.status) {
    case 'completed':
      return {};
    case 'running':
      return { phase: phaseOf(record.state.attempt) };
    case 'failed':
      return {
        reason: record.state.failure.reason,
        message: record.state.failure.message,
        advice: failureAdvice(state, record, record.state.failure),
      };
    case 'paused':
      return { reason: record.state.reason, message: record.state.message };
    case 'pending':
      return pendingExplanation(state, plan, record, blocked);
  }
}

function phaseOf({ accepting, identified }: Attempt): 'preparing' | 'working' | 'accepting' {
  if (accepting) return 'accepting';
  return identified ? 'working' : 'preparing';
}

function pendingExplanation(
  state: GroupState,
  plan: Plan,
  record: SessionRecord,
  blocked: View['blocked'] | undefined,
): Explanation {
  const unmet = state.group.config.respectDependencies
    ? record.definition.dependsOn.filter((id) => !plan.completed.has(id))
    : [];
  const waits = unmet.length === 0 ? {} : { waitsFor: unmet };
  const culprits =
    unmet.length === 0 ? [] : blocked ? (blocked.get(record.definition.id) ?? []) : blockers(state, plan, record);
  if (culprits.length > 0) {
    const labels = culprits.map((id) => sessionLabel(id, state.sessions.get(id)?.definition.name));
    const message = `Blocked by ${labels.join(', ')}, which failed.`;
    return { reason: 'blocked', message, ...waits, advice: advise('Try again with', retryFailedCommand(state)) };
  }
  // The first run of a group starts all of it.
  if (isHeldBack(record) && state.status !== 'created')
    return { reason: 'held', message: 'It is held back.', ...waits };
  return unmet.length === 0 ? {} : { reason: 'waiting', ...waits };
}

/** Failed sessions, direct or indirect dependencies, that will not be retried in this run. */
export function blockers(state: GroupState, plan: Plan, record: SessionRecord): SessionId[] {
  const found: SessionId[] = [];
  const seen = new Set<SessionId>();
  const open = [...record.definition.dependsOn];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (seen.has(id) || plan.completed.has(id)) continue;
    seen.add(id);
    const dependency = state.sessions.get(id);
    if (dependency === undefined) continue;
    if (willNotRun(state, id)) found.push(id);
    else open.push(...dependency.definition.dependsOn);
  }
  return found.sort();
}
