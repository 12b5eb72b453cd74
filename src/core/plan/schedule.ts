/**
 * core/plan/: what is to be done next, and why not. This file: `decide`, total and deterministic; when nothing can run,
 * there is a reason.
 */

import type { AttemptKind, StopReason } from '../event.ts';
import { defaultRetries, type SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { type BudgetGrant, deservesNewGrant, grantFor, isBudgetExhausted, judgeBudget, ownNotices } from './budget.ts';
import type { Decision, SchedulingContext, Start, Wait, WaitReason } from './decision.ts';
import { checkoutsInUse, isolationOf } from './isolation.ts';
import { type Plan, planOf } from './plan.ts';
import { budgetMessage, settle, settleForBudget, settleForLimit, startBlocker } from './settle.ts';
import { cacheWait, warmUps } from './warm-cache.ts';

/**
 * What to do in this state; only waits, or nothing at all, while there is nothing to do but wait for running sessions.
 */
export function decide(state: GroupState, context: SchedulingContext): Decision[] {
  if (state.status !== 'running') return [];
  if (state.frozenUntil !== undefined && state.pausing === undefined) return [frozen(state.frozenUntil)];
  if (state.pausing !== undefined) return decidePausing(state, state.pausing, context);
  const plan = planOf(state);
  const budget = judgeBudget(state, context.liveUsd);
  const decisions: Decision[] = [...budget.notices, ...ownNotices(state, context.liveUsd)];
  if (budget.isOver) return [...decisions, ...stopForBudget(state)];
  if (context.isDiskLow === true) decisions.push(...stopForDisk(state));
  else decisions.push(...regrants(state, plan, context));
  const holding = startBlocker(state);
  const next = holding === null ? nextStarts(state, context) : nothingNext;
  decisions.push(...next.starts);
  if (next.starts.length > 0) return decisions;
  const { wait } = next;
  // Others end with a running session, of which we hear anyway.
  if (wait !== null && isSelfEnding(state, wait.reason)) return [...decisions, wait];
  if (state.running.size > 0) return decisions;
  return [...decisions, ...(wait?.reason === 'limit' ? [settleForLimit(wait.untilMs)] : settle(state, plan, holding))];
}

function frozen(until: string): Decision {
  return { do: 'wait', reason: 'frozen', message: 'Everything is halted where it stood.', untilMs: Date.parse(until) };
}

/** Waiting for these ends without anybody's help, so the run stays up; for the others a session must end first. */
function isSelfEnding(state: GroupState, reason: WaitReason): boolean {
  if (reason === 'limit') return state.group.config.onLimit !== 'pause';
  return (
    reason === 'backoff' || reason === 'memory' || reason === 'disk' || reason === 'files' || reason === 'other-group'
  );
}

function decidePausing(state: GroupState, reason: StopReason, { isDiskLow }: SchedulingContext): Decision[] {
  const drained = isDiskLow === true ? stopForDisk(state) : [];
  const stops = state.draining ? drained : stopAll(state, reason);
  if (state.running.size > 0) return stops;
  if (state.counts.completed === state.sessions.size) return [{ do: 'settle', status: 'completed' }];
  return [{ do: 'settle', status: 'paused', reason, message: pauseMessage(reason) }];
}

function stopAll(state: GroupState, reason: StopReason): Decision[] {
  const stops: Decision[] = [];
  for (const sessionId of state.running) {
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (record.state.status === 'running' && record.state.attempt.stopping === undefined) {
      stops.push({ do: 'stop', sessionId, reason });
    }
  }
  return stops;
}

/** claude does not notice when what it prints is lost, its result and its cost too; so it is stopped while it can. */
function stopForDisk(state: GroupState): Decision[] {
  const isWorking = (sessionId: SessionId) => {
    const { state: now } = state.sessions.get(sessionId) as SessionRecord;
    return now.status === 'running' && now.attempt.accepting === undefined;
  };
  return stopAll(state, 'disk').filter((decision) => decision.do === 'stop' && isWorking(decision.sessionId));
}

/** The cap is reached: stop what still runs, then the run ends as the settings say. */
function stopForBudget(state: GroupState): Decision[] {
  if (state.running.size > 0) return stopAll(state, 'budget');
  if (state.counts.completed === state.sessions.size) return [{ do: 'settle', status: 'completed' }];
  return [settleForBudget(state)];
}

function pauseMessage(reason: StopReason): string {
  switch (reason) {
    case 'signal':
      return 'The runner was asked to stop; everything is paused.';
    case 'budget':
      return budgetMessage;
    default:
      return 'Paused by request.';
  }
}

/**
 * Sessions that have nearly used up their share get a new one while money is left: interrupted, then resumed. Not while
 * a tool is at work, whose work would be lost; should the share run dry first, claude itself ends between two messages.
 */
function regrants(state: GroupState, plan: Plan, { liveUsd, busy }: SchedulingContext): Decision[] {
  if (liveUsd === undefined) return [];
  const decisions: Decision[] = [];
  for (const sessionId of state.running) {
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (record.state.status !== 'running' || record.state.attempt.stopping !== undefined) continue;
    if (!record.state.attempt.identified || busy?.has(sessionId)) continue;
    const spent = liveUsd.get(sessionId) ?? 0;
    if (deservesNewGrant(state, record, spent, plan.ready.length + 1)) {
      decisions.push({ do: 'stop', sessionId, reason: 'slice' });
    }
  }
  return decisions;
}

export interface NextStarts {
  readonly starts: Start[];
  /** What keeps the first session that could start, but does not, from starting. */
  readonly wait: Wait | null;
}

const nothingNext: NextStarts = { starts: [], wait: null };

/** Starts into free slots, longest remaining chain first. */
export function nextStarts(state: GroupState, context: SchedulingContext): NextStarts {
  const plan = planOf(state);
  if (plan.ready.length === 0) return nothingNext;
  const shut = closedGate(state, context);
  if (shut !== null) return { starts: [], wait: shut };
  const { places, wait } = freePlaces(state, context);
  const { isOut = false } = context;
  const known = isOut && hasBegun(state, plan);
  const { shareCheckouts } = state.group.config;
  const inUse = checkoutsInUse(state);
  const warming = warmUps(state, context);
  let held: Wait | null = null;
  const starts: Start[] = [];
  let reserved = 0;
  let delayed = 0;
  let earliestMs = Number.POSITIVE_INFINITY;
  for (let index = plan.ready.length - 1; index >= 0; index -= 1) {
    if (starts.length >= places) return { starts, wait };
    const sessionId = plan.ready[index] as SessionId;
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (isDelayed(record, context)) {
      delayed += 1;
      earliestMs = Math.min(earliestMs, record.notBeforeMs as number);
      continue;
    }
    if (known && record.attempts === 0) {
      held ??= outageWait;
      continue;
    }
    const leader = warming.leaderFor(record);
    if (leader !== null) {
      held ??= cacheWait(state, leader);
      continue;
    }
    const isolated = isolationOf(state, sessionId) === 'worktree';
    const { repository } = record.definition;
    const taken = isolated || repository === undefined ? null : takenCheckout(state, repository, inUse, context);
    if (taken !== null) {
      held ??= taken;
      continue;
    }
    // Those that wait for their next try, or for the one that asks in an outage, are to have their share later.
    const sharers = Math.min(isOut ? freeSlots(state) : places - starts.length, index + 1 + delayed);
    const slice = record.finished ? nothingToPay : grantFor(state, record, reserved, sharers);
    if (slice.kind === 'own-dry') continue;
    if (slice.kind === 'dry') return { starts, wait: moneyWait };
    const reserveUsd = slice.kind === 'slice' ? { reserveUsd: slice.usd } : {};
    const where = isolated ? { isolated } : {};
    starts.push({ do: 'start', sessionId, kind: attemptKind(record), ...reserveUsd, ...where });
    warming.noteStart(record);
    reserved += reserveUsd.reserveUsd ?? 0;
    if (!isolated && repository !== undefined && !shareCheckouts) inUse.add(repository);
  }
  if (earliestMs === Number.POSITIVE_INFINITY) return { starts, wait: held };
  const message = 'Waiting before the next attempt.';
  return { starts, wait: { do: 'wait', reason: 'backoff', message, untilMs: earliestMs } };
}

/** No backoff is longer; one that seems to be began before the clock was set back. */
const delayMsMax = 15 * 60_000;

/** Its next attempt is not to begin yet. */
export function isDelayed(
  record: SessionRecord,
  { nowMs = 0, servedAtMs }: Pick<SchedulingContext, 'nowMs' | 'servedAtMs'>,
): boolean {
  const { notBeforeMs = 0 } = record;
  if (servedAtMs !== undefined && waitsForApi(record) && servedAtMs > Date.parse(record.endedAt ?? '')) return false;
  return notBeforeMs > nowMs && notBeforeMs - nowMs <= delayMsMax;
}

/** Its retries are used up; it waits until the API is there again. */
function waitsForApi({ promptUnsent, transients, definition: { retries = defaultRetries } }: SessionRecord): boolean {
  return promptUnsent === true && transients > retries;
}

/** In an outage those that have begun ask again: one that has not would be prepared for nothing. */
function hasBegun(state: GroupState, plan: Plan): boolean {
  return plan.ready.some((id) => {
    const record = state.sessions.get(id) as SessionRecord;
    // Who has no money left asks nobody any more.
    return record.attempts > 0 && !isBudgetExhausted(record);
  });
}

const outageWait: Wait = {
  do: 'wait',
  reason: 'backoff',
  message: 'The API answers nobody; one session at a time asks it again.',
};

/** Acceptance asks nothing of the model. */
const nothingToPay: BudgetGrant = { kind: 'unlimited' };

/** Why nobody may begin in the repository's checkouts; null = they are free. */
function takenCheckout(
  state: GroupState,
  repository: string,
  inUse: ReadonlySet<string>,
  { others }: SchedulingContext,
): Wait | null {
  if (inUse.has(repository)) return checkoutWait;
  const group = state.group.config.shareCheckouts ? undefined : others?.workingIn(repository);
  if (group === undefined) return null;
  const message = `A session of group ${group} works in the same checkout; without worktrees groups take turns there.`;
  return { do: 'wait', reason: 'other-group', message };
}

const checkoutWait: Wait = {
  do: 'wait',
  reason: 'checkout',
  message: 'Another session works in the same checkout; sessions without a worktree of their own take turns there.',
};

const moneyWait: Wait = { do: 'wait', reason: 'money', message: 'Waiting for money that running sessions hold.' };

/** A usage limit holds: wait for its reset, then let one session through and the others only after its first answer. */
function closedGate(state: GroupState, { gate }: SchedulingContext): Wait | null {
  if (gate === undefined || (gate.mayProbe && state.running.size === 0)) return null;
  const message = gate.isThrottled
    ? 'The server throttles requests; nothing starts for a while.'
    : 'A usage limit of the login was reached; nothing starts before its reset.';
  return { do: 'wait', reason: 'limit', message, untilMs: gate.untilMs };
}

function freeSlots(state: GroupState): number {
  return Math.max(1, state.group.config.maxConcurrentSessions - state.running.size);
}

const slotWait: Wait = { do: 'wait', reason: 'slot', message: 'All slots are taken.' };

interface FreePlaces {
  readonly places: number;
  /** What is short, when it is not simply the work. */
  readonly wait: Wait | null;
}

function freePlaces(state: GroupState, context: SchedulingContext): FreePlaces {
  const slots = Math.min(state.group.config.maxConcurrentSessions, context.slotsMax ?? Number.POSITIVE_INFINITY);
  if (state.running.size >= slots) return { places: 0, wait: slotWait };
  let preparing = 0;
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    if (record.state.status !== 'running') continue;
    const { identified, accepting } = record.state.attempt;
    if (!identified && !accepting && !context.inQueue?.has(id)) preparing += 1;
  }
  const limits: FreePlaces[] = [
    { places: slots - state.running.size, wait: slotWait },
    {
      places: context.preparingMax - preparing,
      wait: { do: 'wait', reason: 'starting', message: 'Other sessions are still starting up.' },
    },
  ];
  const { room, gate, isOut = false } = context;
  const asking = isOut ? unanswered(state, context) : 0;
  if (room) limits.push({ places: room.starts, wait: { do: 'wait', reason: room.reason, message: room.message } });
  if (gate) limits.push({ places: 1, wait: null });
  if (isOut) limits.push({ places: 1 - asking, wait: outageWait });
  const tightest = limits.reduce((least, limit) => (limit.places < least.places ? limit : least));
  return { ...tightest, places: Math.max(0, tightest.places) };
}

/** Running sessions to which the model has said nothing in this attempt. */
function unanswered(state: GroupState, { answered, inQueue }: SchedulingContext): number {
  let count = 0;
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    const isQuiet = answered?.has(id) || inQueue?.has(id);
    if (session?.status === 'running' && !session.attempt.accepting && !isQuiet) count += 1;
  }
  return count;
}

function attemptKind(record: SessionRecord): AttemptKind {
  if (record.state.status === 'failed') return 'retry';
  return record.attempts === 0 ? 'start' : 'resume';
}
