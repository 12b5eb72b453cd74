/**
 * Money: reservations, slices and notices (DESIGN §6). A reservation is an attempt's own `--max-budget-usd`, so the
 * cap holds even when no runner is alive: spent + sum of reservations never exceeds it. Amounts are US dollars.
 */
import type { Decision } from './schedule.ts';
import { type GroupState, ownBudgetLeft, type SessionRecord } from './state.ts';

/** Smaller slices would be used up by a single message. */
const sliceUsdMin = 0.05;
/** claude crashes on `--max-budget-usd 0`, so nothing below this is ever handed out. */
const reservationUsdMin = 0.001;

export type Slice =
  /** No cap anywhere: no flag is passed. */
  | { readonly kind: 'unlimited' }
  | { readonly kind: 'slice'; readonly usd: number }
  /** The session's own cap is used up. */
  | { readonly kind: 'own-dry' }
  /** Not enough of the group's money is left for another start. */
  | { readonly kind: 'dry' };

/** True when the session's own cap leaves nothing for another attempt. */
export function isOwnDry(record: SessionRecord): boolean {
  return ownBudgetLeft(record) < reservationUsdMin;
}

/**
 * What the session's next attempt may spend. `alreadyReserved` are reservations decided on but not yet logged,
 * `sharers` the number of sessions among which the free money is to be split.
 */
export function sliceFor(state: GroupState, record: SessionRecord, alreadyReserved: number, sharers: number): Slice {
  if (isOwnDry(record)) return { kind: 'own-dry' };
  const own = ownBudgetLeft(record);
  const cap = state.group.config.maxBudgetUsd;
  if (cap === undefined || state.group.config.onBudgetExceeded === 'warn') {
    return Number.isFinite(own) ? { kind: 'slice', usd: own } : { kind: 'unlimited' };
  }
  const free = cap - state.usage.costUsd - state.reservedUsd - alreadyReserved;
  const smallest = Math.max(reservationUsdMin, Math.min(sliceUsdMin, cap, own));
  if (free < smallest) return { kind: 'dry' };
  if (Number.isFinite(own)) return { kind: 'slice', usd: Math.min(own, free) };
  return { kind: 'slice', usd: Math.min(free, Math.max(smallest, free / Math.max(1, sharers))) };
}

/** The notices that are due now and were not given yet. */
export function judgeBudget(state: GroupState): { readonly notices: Decision[] } {
  const { maxBudgetUsd: limit, warningThreshold, onBudgetExceeded } = state.group.config;
  const usage = state.usage.costUsd;
  const notices: Decision[] = [];
  if (limit === undefined) return { notices };
  if (!state.budgetWarned && usage >= limit * warningThreshold) notices.push({ do: 'warn-budget', usage, limit });
  if (!state.budgetExceeded && usage >= limit && onBudgetExceeded === 'warn') {
    notices.push({ do: 'exceed-budget', action: 'continued', usage, limit });
  }
  return { notices };
}
