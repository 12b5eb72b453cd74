/**
 * Money: reservations, top-ups and notices. A reservation is an attempt's own `--max-budget-usd`, so the cap holds even
 * without a live runner: spent + sum of reservations never exceeds it. Amounts are US dollars.
 */

import type { EventBody } from '../event.ts';
import { roundUsd } from '../group.ts';
import { ownBudgetLeft, type SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { DayBudget } from './decision.ts';

/** A single message would exhaust a smaller share. */
const shareUsdMin = 0.05;
/** claude crashes on `--max-budget-usd 0`, so nothing below this is ever reserved. */
const reservationUsdMin = 0.001;

export type BudgetGrant =
  /** No cap anywhere: no option is passed. */
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'share'; readonly usd: number }
  | { readonly kind: 'own-dry' }
  /** Not enough of the group's budget is left for another start. */
  | { readonly kind: 'dry' }
  /** Not enough of the daily cap of all groups is left. */
  | { readonly kind: 'day-dry' };

function freeOfDay(state: GroupState, day: DayBudget | undefined): number {
  if (day === undefined) return Number.POSITIVE_INFINITY;
  return roundUsd(day.capUsd - day.spentUsd - day.othersReservedUsd - state.reservedUsd);
}

export function isBudgetExhausted(record: SessionRecord): boolean {
  return ownBudgetLeft(record) < reservationUsdMin;
}

/**
 * What the session's next attempt may spend. `alreadyReserved`: reservations decided but not yet logged; `sharers`: the
 * number of sessions that share the free budget.
 */
export function grantFor(
  state: GroupState,
  record: SessionRecord,
  alreadyReserved: number,
  sharers: number,
  day?: DayBudget,
): BudgetGrant {
  if (isBudgetExhausted(record)) return { kind: 'own-dry' };
  const own = ownBudgetLeft(record);
  const cap = capOf(state);
  const ofDay = freeOfDay(state, day) - alreadyReserved;
  const free = Math.min(cap - state.usage.costUsd - state.reservedUsd - alreadyReserved, ofDay);
  if (free === Number.POSITIVE_INFINITY) {
    return Number.isFinite(own) ? { kind: 'share', usd: own } : { kind: 'unlimited' };
  }
  const smallest = Math.max(reservationUsdMin, Math.min(shareUsdMin, cap, own, day?.capUsd ?? cap));
  if (roundUsd(free) < smallest) return { kind: free === ofDay ? 'day-dry' : 'dry' };
  if (Number.isFinite(own)) return { kind: 'share', usd: Math.min(own, free) };
  return { kind: 'share', usd: Math.min(free, Math.max(smallest, roundUsd(free / Math.max(1, sharers)))) };
}

function capOf({ group: { config } }: GroupState): number {
  const { maxBudgetUsd = Number.POSITIVE_INFINITY, onBudgetExceeded } = config;
  return onBudgetExceeded === 'warn' ? Number.POSITIVE_INFINITY : maxBudgetUsd;
}

/** The largest share of the free budget for one attempt on another host: if its host is lost, all of it is held. */
const shareElsewhere = 0.1;
const elsewhereUsdMin = 0.5;

function elsewhereMost(leftUsd: number): number {
  return Math.min(leftUsd, Math.max(elsewhereUsdMin, roundUsd(leftUsd * shareElsewhere)));
}

export function grantElsewhere(
  state: GroupState,
  record: SessionRecord,
  alreadyReserved: number,
  day?: DayBudget,
): BudgetGrant {
  const all = grantFor(state, record, alreadyReserved, 1, day);
  return all.kind === 'share' ? { kind: 'share', usd: elsewhereMost(all.usd) } : all;
}

/** Share of a reservation after which a session gets a top-up. */
const regrantShare = 0.8;

/**
 * True when a running session has nearly spent its reservation and could get more. `spentUsd`: the cost of its attempt
 * so far; `sharers`: the number of sessions that would share the free budget.
 */
export function deservesNewGrant(
  state: GroupState,
  record: SessionRecord,
  spentUsd: number,
  sharers: number,
  day?: DayBudget,
): boolean {
  const { reservedUsd: reserved, place } = record.state.status === 'running' ? record.state.attempt : {};
  const free = Math.min(capOf(state) - state.usage.costUsd - state.reservedUsd, freeOfDay(state, day));
  if (free === Number.POSITIVE_INFINITY || reserved === undefined) return false;
  if (spentUsd < reserved * regrantShare || spentUsd >= reserved) return false;
  if (ownBudgetLeft(record) <= reserved) return false;
  const freeAfterwards = free + reserved - spentUsd;
  const left = Math.min(ownBudgetLeft(record) - spentUsd, freeAfterwards);
  const share = place === undefined ? Math.min(left, freeAfterwards / Math.max(1, sharers)) : elsewhereMost(left);
  return share >= Math.max(shareUsdMin, (reserved - spentUsd) * 2);
}

export interface BudgetVerdict {
  /** Not logged yet. */
  readonly notices: EventBody[];
  readonly isOver: boolean;
}

/** `liveUsd`: the cost of running attempts so far, US dollars. */
export function judgeBudget(state: GroupState, liveUsd: ReadonlyMap<string, number> = new Map()): BudgetVerdict {
  const { maxBudgetUsd: limit, warningThreshold, onBudgetExceeded } = state.group.config;
  if (limit === undefined) return { notices: [], isOver: false };
  let usage = state.usage.costUsd;
  for (const cost of liveUsd.values()) usage = roundUsd(usage + cost);
  const notices: EventBody[] = [];
  if (!state.budgetWarned && state.sessions.size > 0 && usage >= limit * warningThreshold) {
    notices.push({ type: 'budget_warning', usage, limit });
  }
  const isReached = usage >= limit;
  const isDone = state.counts.completed === state.sessions.size;
  if (isReached && !state.budgetExceeded && !isDone) {
    const action = { warn: 'continued', stop: 'stopped', pause: 'paused' } as const;
    notices.push({ type: 'budget_exceeded', action: action[onBudgetExceeded], usage, limit });
  }
  return { notices, isOver: isReached && onBudgetExceeded !== 'warn' };
}

/** Due notices about sessions' own caps that were not logged yet. `liveUsd` as in judgeBudget. */
export function ownNotices(state: GroupState, liveUsd: ReadonlyMap<string, number> = new Map()): EventBody[] {
  const { warningThreshold, onBudgetExceeded } = state.group.config;
  const notices: EventBody[] = [];
  for (const [sessionId, record] of state.sessions) {
    const limit = record.definition.maxBudgetUsd;
    if (limit === undefined || record.state.status === 'completed') continue;
    const usage = roundUsd(record.usage.costUsd + (liveUsd.get(sessionId) ?? 0));
    if (record.budgetSaid === undefined && usage >= limit * warningThreshold) {
      notices.push({ type: 'session_budget_warning', sessionId, usage, limit });
    }
    // claude enforces the cap of a running session; it may still complete with its last message.
    if (record.budgetSaid === 'exceeded' || record.state.status !== 'paused' || !isBudgetExhausted(record)) continue;
    const action = onBudgetExceeded === 'stop' ? 'stopped' : 'paused';
    notices.push({ type: 'session_budget_exceeded', sessionId, action, usage, limit });
  }
  return notices;
}
