/** The waits that end by themselves at a known time: the backoff of a session, and the limit that holds its group. */

import type { SessionRecord } from '../session-state.ts';
import { type GroupState, isThrottled } from '../state.ts';
import { isBudgetExhausted, judgeBudget } from './budget.ts';
import type { Gate } from './decision.ts';
import { isReady, type Plan } from './plan.ts';
import { isDelayed } from './schedule.ts';
import { startBlocker } from './settle.ts';

export interface TimedWait {
  readonly reason: 'backoff' | 'limit';
  /** ms since 1970: the session goes on by itself, but not before. */
  readonly untilMs: number;
}

/**
 * Null for a session that waits for no time, or that would not go on then. To be asked only of a group with a live
 * runner: nobody else starts anything. `gate`: as seen by who can read its file; null = open.
 */
export function timedWait(
  state: GroupState,
  plan: Plan,
  record: SessionRecord,
  nowMs: number,
  gate: Gate | null = loggedGate(state),
): TimedWait | null {
  const backoffMs = isDelayed(record, { nowMs }) ? (record.notBeforeMs ?? 0) : 0;
  const limitMs = gate?.untilMs ?? 0;
  const untilMs = Math.max(backoffMs, limitMs);
  if (untilMs <= nowMs || !isReady(plan, state, record.definition.id, record) || isBudgetExhausted(record)) return null;
  if (isEnding(state) || (limitMs > nowMs && state.group.config.onLimit === 'pause')) return null;
  return { reason: limitMs >= backoffMs ? 'limit' : 'backoff', untilMs };
}

/** Nothing new starts in this run, or it is over. */
function isEnding(state: GroupState): boolean {
  const isHalted = state.pausing !== undefined || state.frozenUntil !== undefined;
  return state.status !== 'running' || isHalted || startBlocker(state) !== null || judgeBudget(state).isOver;
}

/** The gate as the log tells of it, for who cannot see it. */
export function loggedGate(state: GroupState): Gate | null {
  const { limitResetsAt } = state;
  if (limitResetsAt === undefined) return null;
  return { untilMs: Date.parse(limitResetsAt), mayProbe: false, isThrottled: isThrottled(state) };
}
