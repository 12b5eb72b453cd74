/**
 * `decide`: what to do next in a running group. Total and deterministic; when nothing can run there is always a
 * reason. Rules: DESIGN §4 (starting, errors, settling) and §6 (reservations).
 */

import { isOwnDry, judgeBudget, sliceFor } from './budget.ts';
import type { AttemptKind, StopReason } from './event.ts';
import { assert, needsPerson } from './failure.ts';
import type { SessionId } from './group.ts';
import { allBlockers, type Plan, planOf } from './plan.ts';
import type { GroupState, SessionRecord } from './state.ts';

export type Decision =
  /** Start the session's next attempt in a free slot. `reserveUsd` becomes its `--max-budget-usd`. */
  | { readonly do: 'start'; readonly sessionId: SessionId; readonly kind: AttemptKind; readonly reserveUsd?: number }
  /** Ask the session's worker to stop. */
  | { readonly do: 'stop'; readonly sessionId: SessionId; readonly reason: StopReason }
  /** Say once that a share of the budget is used. */
  | { readonly do: 'warn-budget'; readonly usage: number; readonly limit: number }
  /** Say once that the budget does not allow to go on, or that it was passed and the group goes on all the same. */
  | {
      readonly do: 'exceed-budget';
      readonly action: 'stopped' | 'paused' | 'continued';
      readonly usage: number;
      readonly limit: number;
    }
  /** End the run. */
  | { readonly do: 'settle'; readonly status: 'completed' }
  | {
      readonly do: 'settle';
      readonly status: 'failed' | 'paused';
      readonly reason: string;
      readonly message: string;
    };

/** Limits of the machine that are not settings of the group. */
export interface Capacity {
  /** Workers that may be starting up (nothing printed yet) at once. */
  readonly preparingMax: number;
}

/** What to do in this state; empty while there is nothing to do but wait for running sessions. */
export function decide(state: GroupState, capacity: Capacity): Decision[] {
  if (state.status !== 'running') return [];
  if (state.pausing !== undefined) return decidePausing(state, state.pausing);
  const plan = planOf(state);
  const budget = judgeBudget(state);
  const decisions: Decision[] = [...budget.notices];
  const holding = holdReason(state);
  if (holding === null) decisions.push(...starts(state, plan, capacity));
  if (state.running.size > 0 || decisions.some((decision) => decision.do === 'start')) return decisions;
  decisions.push(...settle(state, plan, holding));
  return decisions;
}

function decidePausing(state: GroupState, reason: StopReason): Decision[] {
  const decisions: Decision[] = [];
  for (const sessionId of state.running) {
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (record.state.status === 'running' && record.state.attempt.stopping === undefined) {
      decisions.push({ do: 'stop', sessionId, reason });
    }
  }
  if (state.running.size > 0) return decisions;
  if (state.counts.completed === state.sessions.size) return [{ do: 'settle', status: 'completed' }];
  return [{ do: 'settle', status: 'paused', reason, message: pauseMessage(reason) }];
}

function pauseMessage(reason: StopReason): string {
  switch (reason) {
    case 'signal':
      return 'The runner was asked to stop; everything is paused. Go on with: group resume.';
    case 'budget':
      return 'The budget is used up. Raise it and go on with: group resume --max-budget-usd.';
    default:
      return 'Paused by request. Go on with: group resume.';
  }
}

/** Why nothing new may start although there are slots; null when starting is allowed. */
function holdReason(state: GroupState): string | null {
  if (state.needsPerson) return 'needs-person';
  return state.failures >= state.group.config.errorThreshold ? 'error-threshold' : null;
}

function starts(state: GroupState, plan: Plan, capacity: Capacity): Decision[] {
  const decisions: Decision[] = [];
  let slots = state.group.config.maxConcurrentSessions - state.running.size;
  let preparing = 0;
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    if (record.state.status === 'running' && !record.state.attempt.identified) preparing += 1;
  }
  let reserved = 0;
  for (let index = plan.ready.length - 1; index >= 0; index -= 1) {
    if (slots <= 0 || preparing >= capacity.preparingMax) break;
    const sessionId = plan.ready[index] as SessionId;
    const record = state.sessions.get(sessionId) as SessionRecord;
    const slice = sliceFor(state, record, reserved, Math.min(slots, index + 1));
    if (slice.kind === 'own-dry') continue;
    if (slice.kind === 'dry') break;
    const reserveUsd = slice.kind === 'slice' ? { reserveUsd: slice.usd } : {};
    decisions.push({ do: 'start', sessionId, kind: attemptKind(record), ...reserveUsd });
    reserved += reserveUsd.reserveUsd ?? 0;
    slots -= 1;
    preparing += 1;
  }
  return decisions;
}

function attemptKind(record: SessionRecord): AttemptKind {
  if (record.state.status === 'failed') return 'retry';
  return record.attempts === 0 ? 'start' : 'resume';
}

/** Nothing runs and nothing was started: end the run and say why. */
function settle(state: GroupState, plan: Plan, holding: string | null): Decision[] {
  const { counts, sessions, group } = state;
  if (counts.completed === sessions.size) return [{ do: 'settle', status: 'completed' }];
  const left = plan.ready.length > 0;
  if (holding !== null && left) {
    const message =
      holding === 'needs-person'
        ? `${personMessage(state)} Nothing else was started.`
        : `${state.failures} sessions failed, so nothing else was started. See: group show. Then: group resume.`;
    const paused = group.config.pauseOnError || holding === 'needs-person';
    return [{ do: 'settle', status: paused ? 'paused' : 'failed', reason: holding, message }];
  }
  if (left) return settleDry(state, plan);
  if (counts.failed > 0) {
    const blocked = [...allBlockers(state, plan).keys()].filter(
      (id) => sessions.get(id)?.state.status === 'pending',
    ).length;
    const rest = blocked > 0 ? ` and ${blocked} blocked by ${counts.failed === 1 ? 'it' : 'them'}` : '';
    const noun = counts.failed === 1 ? 'session' : 'sessions';
    const message = `${counts.failed} ${noun} failed${rest}. See: group show. Then: group run --retry-failed.`;
    return [{ do: 'settle', status: 'failed', reason: 'sessions-failed', message }];
  }
  if (counts.paused > 0) {
    const noun = counts.paused === 1 ? 'session is' : 'sessions are';
    const message = `${counts.paused} ${noun} paused. Go on with: group resume.`;
    return [{ do: 'settle', status: 'paused', reason: 'sessions-paused', message }];
  }
  throw new Error('Internal error: stuck [this is a bug]: nothing runs, nothing can start, nothing failed');
}

/** Sessions are ready, slots are free, and still nothing starts: only the budget can be the reason. */
function settleDry(state: GroupState, plan: Plan): Decision[] {
  const stopped = state.group.config.onBudgetExceeded === 'stop';
  const status = stopped ? 'failed' : 'paused';
  if (plan.ready.every((id) => isOwnDry(state.sessions.get(id) as SessionRecord))) {
    const message = 'What is left has used up its own budget. Add it again with a larger --max-budget-usd.';
    return [{ do: 'settle', status, reason: 'budget', message }];
  }
  const limit = state.group.config.maxBudgetUsd;
  assert(limit !== undefined || state.group.config.maxConcurrentSessions > 0, 'stuck [this is a bug]: no slots');
  const usage = state.usage.costUsd;
  const notice: Decision[] = state.budgetExceeded
    ? []
    : [{ do: 'exceed-budget', action: stopped ? 'stopped' : 'paused', usage, limit: limit ?? usage }];
  const message = 'The budget is used up. Raise it and go on with: group resume --max-budget-usd.';
  return [...notice, { do: 'settle', status, reason: 'budget', message }];
}

/** The failure that a person has to cure; others may have come after it, and their cure would not help. */
function personMessage(state: GroupState): string {
  for (const { state: session } of [...state.sessions.values()].reverse()) {
    if (session.status !== 'failed' || !needsPerson(session.failure.reason)) continue;
    return `${session.failure.message} ${session.failure.next}`;
  }
  return 'A failure needs you before anything else is started. See: group show.';
}
