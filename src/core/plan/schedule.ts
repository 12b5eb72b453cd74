/**
 * core/plan/: what to do next, and why sessions do not start. This file: `decide`, which is total and deterministic and
 * gives a reason when nothing can run.
 */
import { advise } from '../advice.ts';
import type { AttemptKind, StopReason } from '../event.ts';
import { defaultRetries, type SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { formatMoney, momentText } from '../text.ts';
import { groupAdvice, resumeCommand } from './advice.ts';
import { attachWait, pendingAttachments } from './attachment.ts';
import {
  type BudgetGrant,
  deservesNewGrant,
  grantElsewhere,
  grantFor,
  isBudgetExhausted,
  judgeBudget,
  ownNotices,
} from './budget.ts';
import type { DayBudget, Decision, GroupHold, SchedulingContext, SlotWish, Start, WaitReason } from './decision.ts';
import { checkoutsInUse, isolationOf } from './isolation.ts';
import { isElsewhere, type LocalRoom, PlacementFinder, type SessionPlacement, slotRequestOf } from './placement.ts';
import { type Plan, planOf, readySessions } from './plan.ts';
import {
  blockerHold,
  budgetMessage,
  type SettlementBlocker,
  settle,
  settleForBudget,
  settleForLimit,
  startBlocker,
} from './settle.ts';
import { cacheWait, warmUps } from './warm-cache.ts';
import { waveStep } from './waves.ts';

/** The decisions in this state; only waits, or none, while the run waits for running sessions. */
export function decide(state: GroupState, context: SchedulingContext): Decision[] {
  return schedule(state, context).decisions;
}

export interface Judgement {
  readonly decisions: Decision[];
  /** What blocks the ready sessions that have no reason of their own; null = they start. */
  readonly hold: WaitReason | null;
  readonly goesOn?: boolean;
}

/** Receives the reason why one ready session does not start, unless all ready sessions have the same reason. */
type Refuse = (sessionId: SessionId, hold: GroupHold) => void;

/**
 * The decisions, and the reasons of ready sessions that do not start: computed once, for the runner and for all views.
 */
export function schedule(state: GroupState, context: SchedulingContext, refuse: Refuse = () => {}): Judgement {
  if (state.status !== 'running') return { decisions: [], hold: groupHold(state) };
  const halted = state.frozenUntil === undefined ? null : frozen(state, state.frozenUntil);
  // A draining group can also be frozen.
  const { pausing: reason } = state;
  if (reason !== undefined) return { decisions: decidePausing(state, reason, context), hold: halted ?? pausing };
  if (halted !== null) return { decisions: [{ do: 'wait', ...halted }], hold: halted };
  const plan = planOf(state);
  const blocker = startBlocker(state);
  // A failure such as an expired login is no result of a wave.
  const step = blocker === 'needs-person' ? null : waveStep(state);
  if (step !== null) return { decisions: [step], hold: null };
  const budget = judgeBudget(state, context.liveUsd);
  const notices = [...budget.notices, ...ownNotices(state, context.liveUsd)];
  const decisions = notices.map((event): Decision => ({ do: 'record', event }));
  if (budget.isOver) return { decisions: [...decisions, ...stopForBudget(state)], hold: settleForBudget(state) };
  // claude does not notice that its output is lost, including its result and cost; so it is stopped in time.
  if (context.isDiskLow === true) decisions.push(...stopWorking(state, 'disk'));
  else decisions.push(...topUps(state, context));
  const next = blocker === null ? nextStarts(state, context, refuse) : nothingNext;
  decisions.push(...next.starts, ...next.wishes);
  const hold = blocker === null ? next.rest : blockerHold(state, blocker);
  const { wait } = next;
  const goesOn = blocker === null && (wait?.reason !== 'limit' || isSelfEnding(state, 'limit'));
  if (next.starts.length > 0) return { decisions, hold, goesOn };
  // Other waits end when a running session ends, and that is reported anyway.
  if (wait !== null && isSelfEnding(state, wait.reason))
    return { decisions: [...decisions, { do: 'wait', ...wait }], hold, goesOn };
  if (state.running.size > 0 || next.wishes.length > 0) return { decisions, hold, goesOn };
  // Attached sessions resume when their user detaches; until then the run does not end.
  if (state.takenOver.size > 0) return { decisions: [...decisions, { do: 'wait', ...attachWait }], hold, goesOn };
  const ends = wait === null ? settle(state, plan, blocker) : endWaiting(state, plan, wait, context);
  return { decisions: [...decisions, ...ends], hold: blocker === null ? (ends.find(isUndone) ?? hold) : hold };
}

function endWaiting(state: GroupState, plan: Plan, wait: GroupHold, { gate }: SchedulingContext): Decision[] {
  if (wait.reason === 'limit') return [settleForLimit(gate?.untilMs)];
  if (wait.reason === 'no-host' || wait.reason === 'day-budget')
    return [{ do: 'settle', status: 'paused', reason: wait.reason, message: wait.message }];
  return settle(state, plan, null);
}

function isUndone(decision: Decision): decision is SettlementBlocker {
  return decision.do === 'settle' && decision.status !== 'completed';
}

const pausing: WaitReason = { reason: 'pausing', message: 'The group is being paused.' };

function frozen(state: GroupState, until: string): GroupHold {
  const time = momentText(Date.parse(until));
  const message = `All sessions are frozen until ${time} and then paused.`;
  return { reason: 'frozen', message, advice: advise('Continue with', resumeCommand(state)) };
}

function groupHold(state: GroupState): WaitReason {
  const { status, reason = status, message = '' } = state;
  switch (status) {
    case 'created':
      return { reason: 'not-started', message: 'The group has not been started.', advice: groupAdvice(state) };
    case 'paused':
    case 'failed':
      return { reason, message, advice: groupAdvice(state) };
    default:
      return { reason: status, message: `The group is ${status}.` };
  }
}

/** These waits end by themselves, so the run continues; for the others a session must end first. */
function isSelfEnding(state: GroupState, reason: GroupHold['reason']): boolean {
  if (reason === 'limit') return state.group.config.onLimit !== 'pause';
  return endsByItself.has(reason);
}

const endsByItself: ReadonlySet<GroupHold['reason']> = new Set([
  ...(['backoff', 'memory', 'disk', 'other-group', 'host'] as const),
]);

function decidePausing(state: GroupState, reason: StopReason, { isDiskLow }: SchedulingContext): Decision[] {
  const drained = isDiskLow === true ? stopWorking(state, 'disk') : [];
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

/** All except those whose work is being accepted. */
function stopWorking(state: GroupState, reason: StopReason): Decision[] {
  const isWorking = (sessionId: SessionId) => {
    const { state: now } = state.sessions.get(sessionId) as SessionRecord;
    return now.status === 'running' && now.attempt.accepting === undefined;
  };
  return stopAll(state, reason).filter((decision) => decision.do === 'stop' && isWorking(decision.sessionId));
}

function stopForBudget(state: GroupState): Decision[] {
  // Acceptance costs nothing.
  if (state.running.size > 0) return stopWorking(state, 'budget');
  if (state.counts.completed === state.sessions.size) return [{ do: 'settle', status: 'completed' }];
  return [settleForBudget(state)];
}

function pauseMessage(reason: StopReason): string {
  switch (reason) {
    case 'signal':
      return 'The runner was asked to stop; everything is paused.';
    case 'budget':
      return budgetMessage;
    case 'deleted':
      return 'Stopped because the group is being deleted.';
    default:
      return 'Paused on request.';
  }
}

/**
 * While budget is left, a session that has nearly spent its reservation is interrupted and resumed with a top-up. It is
 * not interrupted while a tool runs, because the tool's work would be lost. If the reservation is spent first, claude
 * itself ends between two messages.
 */
function topUps(state: GroupState, { liveUsd, busy, day }: SchedulingContext): Decision[] {
  if (liveUsd === undefined) return [];
  const sharers = readySessions(state).length + 1;
  const decisions: Decision[] = [];
  for (const sessionId of state.running) {
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (record.state.status !== 'running' || record.state.attempt.stopping !== undefined) continue;
    if (!record.state.attempt.identified || busy?.has(sessionId)) continue;
    const spent = liveUsd.get(sessionId) ?? 0;
    if (deservesNewGrant(state, record, spent, sharers, day)) {
      decisions.push({ do: 'stop', sessionId, reason: 'top-up' });
    }
  }
  return decisions;
}

export interface NextStarts {
  readonly starts: Start[];
  readonly wishes: SlotWish[];
  /** Why the first ready session does not start. */
  readonly wait: GroupHold | null;
  /** Why those that were not examined do not start; null = all were examined. */
  readonly rest: GroupHold | null;
}

const nothingNext: NextStarts = { starts: [], wishes: [], wait: null, rest: null };

const here: SessionPlacement = { at: 'here' };
/** Without a fleet, the room on this host is checked for all sessions together, not for each placement. */
const roomForAll: LocalRoom = { places: Number.POSITIVE_INFINITY, wait: null };

function spotsFor(state: GroupState, context: SchedulingContext): PlacementFinder | null {
  const { fleet } = context;
  if (fleet === undefined) return null;
  const room = fleet ? localSlots(state, context) : roomForAll;
  return new PlacementFinder(state, fleet, { room, wishesMax: slotRequestsMax(state, context) });
}

export function nextStarts(state: GroupState, context: SchedulingContext, refuse: Refuse = () => {}): NextStarts {
  const ready = readySessions(state);
  if (ready.length === 0) return nothingNext;
  const shut = closedGate(state, context);
  if (shut !== null) return { starts: [], wishes: [], wait: shut, rest: shut };
  const { places, wait } = freeSlotsByKind(state, context);
  const { isOut = false, fleet } = context;
  const spots = spotsFor(state, context);
  const known = isOut && hasBegun(state, ready);
  const { shareCheckouts } = state.group.config;
  const inUse = checkoutsInUse(state);
  const warming = warmUps(state, context);
  let held: GroupHold | null = null;
  const hold = (id: SessionId, why: GroupHold): void => {
    // A wait that may end keeps the run going, even if other sessions can never start.
    if (held === null || held.reason === 'no-host') held = why;
    refuse(id, why);
  };
  const starts: Start[] = [];
  const wishes: SlotWish[] = [];
  /** Slot requests for which a place is kept. */
  let kept = 0;
  let reserved = 0;
  let delayed = 0;
  let earliestMs = Number.POSITIVE_INFINITY;
  for (let index = ready.length - 1; index >= 0; index -= 1) {
    if (starts.length + kept >= places) return { starts, wishes, wait, rest: wait };
    const sessionId = ready[index] as SessionId;
    const record = state.sessions.get(sessionId) as SessionRecord;
    if (isDelayed(record, context)) {
      delayed += 1;
      earliestMs = Math.min(earliestMs, record.notBeforeMs as number);
      continue;
    }
    const isolated = isolationOf(state, sessionId) === 'worktree';
    const obstacle = obstacleTo(state, record, isolated, { known, warming, inUse, context });
    if (obstacle !== null) {
      hold(sessionId, obstacle);
      continue;
    }
    const spot = spots?.of(record, isolated) ?? here;
    if (spot.at === 'nowhere') {
      hold(sessionId, spot.hold);
      continue;
    }
    // Sessions that wait for their next try, or for the probing session in an outage, get their share later.
    const others = Math.min(isOut ? freeSlots(state) : places - starts.length, index + 1 + delayed);
    const sharers = others + pendingAttachments(state);
    const share = grantOf(state, record, spot, { reserved, sharers, day: context.day });
    if (share.kind === 'own-dry') continue;
    const short = shortOf(share, context);
    if (short !== null) return { starts, wishes, wait: short, rest: short };
    const reserveUsd = 'usd' in share ? { reserveUsd: share.usd } : {};
    reserved += reserveUsd.reserveUsd ?? 0;
    if (spot.at === 'wish') {
      hold(sessionId, spot.hold);
      wishes.push(slotRequestOf(record));
      if (!fleet?.staleSlotRequests.has(sessionId)) kept += 1;
      continue;
    }
    const where = { ...(isolated ? { isolated } : {}), ...(spot.at === 'elsewhere' ? { place: spot.place } : {}) };
    starts.push({ do: 'start', sessionId, kind: attemptKind(record), ...reserveUsd, ...where });
    spots?.take(spot);
    warming.noteStart(record);
    if (!isolated && !shareCheckouts) inUse.add(record.definition.repository ?? '');
  }
  if (earliestMs === Number.POSITIVE_INFINITY) return { starts, wishes, wait: held, rest: null };
  const message = 'Waiting before the next attempt.';
  return { starts, wishes, wait: { reason: 'backoff', message, until: earliestMs }, rest: null };
}

interface Surroundings {
  /** There is an outage, and at least one session that has started can retry. */
  readonly known: boolean;
  readonly warming: ReturnType<typeof warmUps>;
  readonly inUse: ReadonlySet<string>;
  readonly context: SchedulingContext;
}

function obstacleTo(
  state: GroupState,
  record: SessionRecord,
  isolated: boolean,
  { known, warming, inUse, context }: Surroundings,
): GroupHold | null {
  if (known && record.attempts === 0) return outageWait;
  const leader = warming.leaderFor(record);
  if (leader !== null) return cacheWait(state, leader);
  const { repository } = record.definition;
  return isolated || repository === undefined ? null : takenCheckout(state, repository, inUse, context);
}

function grantOf(
  state: GroupState,
  record: SessionRecord,
  spot: SessionPlacement,
  {
    reserved,
    sharers,
    day,
  }: { readonly reserved: number; readonly sharers: number; readonly day: DayBudget | undefined },
): BudgetGrant {
  if (record.finished) return nothingToPay;
  if (spot.at !== 'here') return grantElsewhere(state, record, reserved, day);
  return grantFor(state, record, reserved, sharers, day);
}

export function isDelayed(
  record: SessionRecord,
  { nowMs = 0, servedAtMs }: Pick<SchedulingContext, 'nowMs' | 'servedAtMs'>,
): boolean {
  const { notBeforeMs = 0 } = record;
  if (servedAtMs !== undefined && waitsForApi(record) && servedAtMs > Date.parse(record.endedAt ?? '')) return false;
  return notBeforeMs > nowMs;
}

/** Its retries are used up; it waits until the API is available again. */
function waitsForApi({ promptUnsent, transients, definition: { retries = defaultRetries } }: SessionRecord): boolean {
  return promptUnsent === true && transients > retries;
}

/** In an outage, started sessions retry: preparing a new one would be pointless. */
function hasBegun(state: GroupState, ready: readonly SessionId[]): boolean {
  return ready.some((id) => {
    const record = state.sessions.get(id) as SessionRecord;
    return record.attempts > 0 && !isBudgetExhausted(record);
  });
}

const nothingToPay: BudgetGrant = { kind: 'unlimited' };

function takenCheckout(
  state: GroupState,
  repository: string,
  inUse: ReadonlySet<string>,
  { others }: SchedulingContext,
): GroupHold | null {
  if (inUse.has(repository)) return checkoutWait;
  const group = state.group.config.shareCheckouts ? undefined : others?.workingIn(repository);
  if (group === undefined) return null;
  const message = `A session of group ${group} uses the same checkout. Without worktrees, groups take turns.`;
  return { reason: 'other-group', message, on: [group] };
}

const checkoutWait: GroupHold = {
  reason: 'checkout',
  message: 'Another session uses the same checkout. Sessions without worktrees take turns.',
};

/** Other groups' reservations may become free when their sessions end. */
function dayWait({ capUsd, spentUsd, othersReservedUsd }: DayBudget): GroupHold {
  if (othersReservedUsd > 0) {
    return { reason: 'other-group', message: 'Waiting for daily budget reserved by other groups.' };
  }
  const used = `${formatMoney(spentUsd)} of ${formatMoney(capUsd)}`;
  return { reason: 'day-budget', message: `Daily budget exhausted: all groups spent ${used}.` };
}

function shortOf({ kind }: BudgetGrant, { day }: SchedulingContext): GroupHold | null {
  if (kind === 'day-dry' && day !== undefined) return dayWait(day);
  return kind === 'dry' ? moneyWait : null;
}

const moneyWait: GroupHold = { reason: 'money', message: 'Waiting for budget reserved by running sessions.' };

/**
 * During a usage limit: wait for its reset, then let one session through and the others only after its first answer.
 */
function closedGate(state: GroupState, { gate, nowMs = 0 }: SchedulingContext): GroupHold | null {
  if (gate === undefined || (gate.mayProbe && state.running.size === 0)) return null;
  const { untilMs: until, isThrottled } = gate;
  if (state.group.config.onLimit === 'pause') {
    return { reason: 'limit', message: settleForLimit(until).message, advice: groupAdvice(state) };
  }
  const time = momentText(until);
  const message = isThrottled
    ? `The server is throttling requests. Resuming at ${time}.`
    : `Usage limit reached. Resuming at ${time}.`;
  return { reason: 'limit', message, ...(until > nowMs ? { until } : {}) };
}

function attemptKind(record: SessionRecord): AttemptKind {
  if (record.state.status === 'failed') return 'retry';
  return record.attempts === 0 ? 'start' : 'resume';
}

export const outageWait: GroupHold = {
  reason: 'backoff',
  message: 'The API is unavailable. Retrying with one session at a time.',
};

export function freeSlots(state: GroupState): number {
  return Math.max(1, state.group.config.maxConcurrentSessions - state.running.size);
}

const slotWait: GroupHold = { reason: 'slot', message: 'All slots are in use.' };

export function freeSlotsByKind(state: GroupState, context: SchedulingContext): LocalRoom {
  const slots = state.group.config.maxConcurrentSessions;
  if (state.running.size >= slots) return { places: 0, wait: slotWait };
  const limits: LocalRoom[] = [{ places: slots - state.running.size, wait: slotWait }];
  // With a fleet, local limits apply only to sessions that start here.
  if (!context.fleet) limits.push(...localLimits(state, context));
  const { gate, isOut = false } = context;
  const asking = isOut ? unanswered(state, context) : 0;
  if (gate) limits.push({ places: 1, wait: null });
  if (isOut) limits.push({ places: 1 - asking, wait: outageWait });
  return tightest(limits);
}

/**
 * A host keeps a granted slot for half a minute, and a session is prepared here first. With a higher number, granted
 * slots would expire unused.
 */
const wishesEach = 4;

export function slotRequestsMax({ running, sessions }: GroupState, context: SchedulingContext): number {
  let coming = context.fleet?.granted.size ?? 0;
  for (const id of running) if (context.inQueue?.has(id) && isElsewhere(sessions.get(id))) coming += 1;
  return Math.max(0, wishesEach * context.preparingMax - coming);
}

export function localSlots(state: GroupState, context: SchedulingContext): LocalRoom {
  return tightest(localLimits(state, context));
}

function tightest(limits: readonly LocalRoom[]): LocalRoom {
  const least = limits.reduce((one, other) => (other.places < one.places ? other : one));
  return { ...least, places: Math.max(0, least.places) };
}

function localLimits(state: GroupState, context: SchedulingContext): LocalRoom[] {
  let preparing = 0;
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    if (record.state.status !== 'running') continue;
    const { identified, accepting, place } = record.state.attempt;
    if (!identified && !accepting && place === undefined && !context.inQueue?.has(id)) preparing += 1;
  }
  const limits: LocalRoom[] = [
    {
      places: context.preparingMax - preparing,
      wait: { reason: 'starting', message: 'Other sessions are still starting up.' },
    },
  ];
  const { room } = context;
  if (room) limits.push({ places: room.starts, wait: { reason: room.reason, message: room.message } });
  return limits;
}

function unanswered(state: GroupState, { answered, inQueue }: SchedulingContext): number {
  let count = 0;
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    const isQuiet = answered?.has(id) || inQueue?.has(id);
    if (session?.status === 'running' && !session.attempt.accepting && !isQuiet) count += 1;
  }
  return count;
}
