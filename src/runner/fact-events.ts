/** Pure: converts facts to log events. */

import { createHash } from 'node:crypto';
import { answersLeft } from '../claude/conversation.ts';
import { itemId } from '../claude/questions.ts';
import { defined } from '../core/defined.ts';
import { type EventBody, type PauseReason, thisMachine, type Warning } from '../core/event.ts';
import { needsPerson, type SessionFailureReason, unreachable } from '../core/failure.ts';
import {
  defaultAcceptRetries,
  defaultRetries,
  defaultStallTimeoutMs,
  type GroupConfig,
  noUsage,
  type SessionId,
  type Usage,
} from '../core/group.ts';
import { sessionNumber } from '../core/id.ts';
import { leftAnswers, openItems } from '../core/item.ts';
import { heldCost } from '../core/plan/attachment.ts';
import type { Decision, Start } from '../core/plan/decision.ts';
import { isAnswered } from '../core/plan/warm-cache.ts';
import { type Attempt, conversationId, type SessionRecord } from '../core/session-state.ts';
import { type GroupState, limitMsMax } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import { LogLost } from '../store/system-failure.ts';
import type { World } from '../system/world.ts';
import { needsAcceptance } from '../worker/attempt/acceptance.ts';
import type { Worker } from '../worker/attempt/worker.ts';
import { type BookedFact, isRefusedLogin, type WorkerFact } from '../worker/facts.ts';
import type { HostedAttempt } from '../worker/host.ts';
import { terminatePartialLine } from '../worker/local-attempt.ts';
import { askedEvents, type FactOf, unaskedEvents, withdrawals } from './item-events.ts';

/** Attempts of an earlier runner by id, and whether that runner had begun to stop them. */
export type Adopted = ReadonlyMap<string, { readonly stopBegun: boolean }>;

export interface FactContext {
  readonly adopted: Adopted;
  readonly nowMs: number;
  /** Random, 0..1: spreads the retries of sessions that failed together. */
  readonly jitter: number;
  /** The model has answered no session of this run since this attempt started. */
  readonly isUnserved: (sessionId: SessionId) => boolean;
}

/** Empty when the session no longer waits for the attempt's final usage. */
export function bookedEvents({ sessions }: GroupState, { sessionId, attemptId, usage }: BookedFact): EventBody[] {
  const isAwaited = sessions.get(sessionId)?.lost?.some(({ attempt }) => attempt.id === attemptId) === true;
  return isAwaited ? [{ type: 'session_booked', sessionId, attemptId, usage }] : [];
}

/** The events that follow from a fact about an attempt; none when the attempt is no longer the running one. */
export function eventsOf(state: GroupState, fact: WorkerFact, context: FactContext): EventBody[] {
  if (fact.kind === 'activity' || fact.kind === 'answered') return [];
  const record = state.sessions.get(fact.sessionId);
  if (fact.kind === 'booked') return bookedEvents(state, fact);
  if (record?.state.status !== 'running' || record.state.attempt.id !== fact.attemptId) return [];
  const { attempt } = record.state;
  switch (fact.kind) {
    case 'spawned':
      return [spawnedEvent(attempt, fact, context.adopted.has(fact.attemptId))];
    case 'identified':
      return identifiedEvents(record, attempt, fact);
    case 'isolated':
      return isolatedEvents(fact);
    case 'noticed':
      return fact.warnings.map((warning) => warn(fact.sessionId, warning));
    case 'asked':
      return askedEvents(state, record, attempt, fact, context.nowMs);
    case 'unasked':
      return unaskedEvents(record, attempt, fact);
    case 'host-lost': {
      const { sessionId, attemptId, host, knownUsd } = fact;
      const held = attempt.accepting === undefined ? heldCost(attempt, knownUsd) : 0;
      return [{ type: 'session_host_lost', sessionId, attemptId, host, held }];
    }
    case 'acceptance-ended':
      return acceptanceEvents(record, attempt, fact);
    case 'ended':
      return endedEvents(record, attempt, fact, {
        ...context,
        served: state.usage,
        onLimit: state.group.config.onLimit,
      });
  }
}

function spawnedEvent(attempt: Attempt, fact: FactOf<'spawned'>, isAdopted: boolean): EventBody {
  const { sessionId, attemptId, process } = fact;
  const named = { start: 'session_started', resume: 'session_resumed', retry: 'session_retrying' } as const;
  const type = isAdopted ? 'session_adopted' : named[attempt.kind];
  return { type, sessionId, attemptId, attempt: attempt.number, process };
}

function identifiedEvents(record: SessionRecord, attempt: Attempt, fact: FactOf<'identified'>): EventBody[] {
  const { sessionId, attemptId, claudeSessionId, model, claudeVersion } = fact;
  const known = record.claudeSessionIds.at(-1) === claudeSessionId && record.model === (model ?? record.model);
  // The transcript of an adopted worker is read again from the start, so logged events are skipped.
  if (attempt.identified && known) return [];
  return [
    {
      type: 'session_identified',
      sessionId,
      attemptId,
      claudeSessionId,
      ...defined({ model, claudeVersion }),
    },
  ];
}

function isolatedEvents({ sessionId, attemptId, workspace, notes }: FactOf<'isolated'>): EventBody[] {
  return [
    { type: 'session_isolated', sessionId, attemptId, workspace },
    ...notes.map((message): EventBody => warn(sessionId, { code: 'workspace', message })),
  ];
}

function warn(sessionId: SessionId, warning: Warning): EventBody {
  return { type: 'session_warning', sessionId, warning };
}

/** The events that follow from an acceptance. The usage was counted when the worker ended. */
function acceptanceEvents(
  record: SessionRecord,
  attempt: Attempt,
  { sessionId, attemptId, verdict }: FactOf<'acceptance-ended'>,
): EventBody[] {
  const events = verdict.warnings.map((warning) => warn(sessionId, warning));
  const of = { sessionId, attemptId };
  const usage = attempt.accepting ?? noUsage;
  switch (verdict.status) {
    case 'accepted': {
      const work = defined({ work: verdict.work, evidence: verdict.evidence });
      const answer = record.finished ?? { result: '' };
      return [...events, { type: 'session_completed', ...of, ...answer, ...work, usage }];
    }
    case 'rejected': {
      const { status: _, warnings: __, isFinal = false, next, ...rejected } = verdict;
      const retries = record.definition.acceptRetries ?? defaultAcceptRetries;
      if (isFinal || (record.rejections ?? 0) >= retries)
        return [...events, { type: 'session_failed', ...of, ...rejected, next, usage }];
      return [...events, { type: 'session_paused', ...of, ...rejected, usage }];
    }
    case 'guard-changed': {
      const { request, evidence } = verdict;
      const paused = { type: 'session_paused', ...of, reason: 'guard-changed', usage, evidence } as const;
      const item = itemId(attemptId, request);
      return [...events, { type: 'item_opened', ...of, item, ...request }, { ...paused, message: `${request.text}.` }];
    }
    case 'failed': {
      const { reason, message, next } = verdict.failure;
      return [...events, { type: 'session_failed', ...of, reason, message, next, usage }];
    }
    case 'stopped': {
      const message = 'Its work is done, but acceptance was interrupted. Resuming runs the acceptance again.';
      return [...events, { type: 'session_paused', ...of, reason: verdict.reason, message, usage }];
    }
  }
}

type Ended = FactOf<'ended'>;

/** `served`: total usage of the group's earlier attempts. */
type OutageContext = Pick<FactContext, 'isUnserved'> & { readonly served: Usage };
type EndContext = FactContext & OutageContext & { readonly onLimit: GroupConfig['onLimit'] };

/**
 * When a session that reached its model's limit resumes, ms since 1970; null when all sessions of the login must wait,
 * or the group must pause.
 */
export function parkedUntilMs({ outcome }: Ended, onLimit: GroupConfig['onLimit'], nowMs: number): number | null {
  if (outcome.status !== 'paused' || outcome.limitedModel === undefined || onLimit === 'pause') return null;
  const { resetsAtMs = 0 } = outcome;
  return resetsAtMs > nowMs && resetsAtMs < nowMs + limitMsMax ? resetsAtMs : null;
}

function endedEvents(record: SessionRecord, attempt: Attempt, fact: Ended, context: EndContext): EventBody[] {
  const { sessionId, attemptId, outcome, usage } = fact;
  const events: EventBody[] = outcome.warnings.map((warning) => ({ type: 'session_warning', sessionId, warning }));
  const lost = unreadTexts(record, fact);
  const unread = lost.length > 0 ? { unread: lost } : {};
  const failed = (reason: SessionFailureReason, message: string, next: string): EventBody[] => [
    ...events,
    { type: 'session_failed', sessionId, attemptId, reason, message, next, usage, ...unread },
  ];
  const asks = openItems(record).length > 0;
  const paused = (reason: PauseReason, message: string, retryAt?: string): EventBody[] => [
    ...events,
    { ...pausedEvent(fact, asks ? pauseReasonWithItem(reason) : reason), message, ...defined({ retryAt }), ...unread },
  ];
  // A stop begun by an earlier runner is obsolete in this run, which was started to continue the session.
  const stopBegun = context.adopted.get(attemptId)?.stopBegun === true;
  const stopped = attempt.stopping === 'user' && !stopBegun ? 'user' : 'interrupted';
  switch (outcome.status) {
    case 'completed': {
      // claude exited before it read the last message, so the work does not reflect that message.
      if (lost.length > 0)
        return paused(stopped, 'It finished before it read your last message, and continues with that message.');
      return [...events, completedEvent(record, { sessionId, attemptId }, outcome, usage)];
    }
    case 'failed': {
      const { place } = attempt;
      if (isRefusedLogin(outcome) && place !== undefined) {
        const rest = `The host ${place.host} starts no more sessions until its login changes.`;
        return paused(stopped, `${outcome.message} ${rest}`);
      }
      if (!outcome.transient) return [...withdrawals(record), ...failed(outcome.reason, outcome.message, outcome.next)];
      if (asks) return paused('transient', outcome.message);
      const isOutage = isInOutage(fact, context);
      // The cause, such as a lack of memory, may recur at the same point.
      const isKilled = outcome.reason === 'signalled';
      // Every other session would be refused too, and the user must act.
      const triesMax = needsPerson(outcome.reason) ? 1 : Number.POSITIVE_INFINITY;
      const tries = { progressed: fact.progressed && !isKilled, isOutage, triesMax };
      const retryAt = retryTime(record, tries, context);
      if (retryAt !== null) return paused(isKilled ? 'interrupted' : 'transient', outcome.message, retryAt);
      return failed(outcome.reason, outcome.message, outcome.next);
    }
    case 'paused':
      if (stopBegun || attempt.stopping === 'user') return paused(stopped, outcome.message);
      if (outcome.reason === 'timeout') {
        const next =
          'Retry the session to continue with the same timeout, or remove it and add it again with a longer --timeout.';
        return failed('timeout', outcome.message, next);
      }
      if (outcome.reason === 'stall' && isStuck(record, fact.progressed)) {
        const message = 'The session made no progress, even after it was interrupted and resumed.';
        return failed('stalled', message, 'Check its log for the cause, then retry it.');
      }
      if (outcome.reason === 'limit') {
        const untilMs = parkedUntilMs(fact, context.onLimit, context.nowMs);
        return paused('limit', outcome.message, untilMs === null ? undefined : new Date(untilMs).toISOString());
      }
      if (outcome.reason === 'disk') return paused('disk', outcome.message, retryTimeAfterFullDisk(record, context));
      return paused(outcome.reason, outcome.message);
  }
}

type Paused = Omit<Extract<EventBody, { type: 'session_paused' }>, 'message'>;

function pausedEvent({ sessionId, attemptId, usage, progressed }: Ended, reason: PauseReason): Paused {
  const counted = progressed && (reason === 'transient' || reason === 'stall') ? { progressed: true as const } : {};
  return { type: 'session_paused', sessionId, attemptId, reason, usage, ...counted };
}

/** A session with an open item resumes only after the answer. */
function pauseReasonWithItem(reason: PauseReason): PauseReason {
  return reason === 'transient' || reason === 'interrupted' ? 'waits-for-answer' : reason;
}

/** Unread messages that are not yet recorded for the next attempt. */
function unreadTexts({ messages }: SessionRecord, { unread }: Ended): string[] {
  return unread.filter((text) => !messages.includes(text));
}

function completedEvent(
  record: SessionRecord,
  of: { readonly sessionId: SessionId; readonly attemptId: string },
  outcome: Extract<Ended['outcome'], { status: 'completed' }>,
  usage: Usage,
): EventBody {
  const { result, structured } = outcome;
  const type = needsAcceptance(record) ? 'session_accepting' : 'session_completed';
  return { type, ...of, result, ...defined({ structured }), usage };
}

/** The end of an attempt that cost nothing and is not restarted now. */
export function notStarted(sessionId: SessionId, attempt: Attempt, why: string): EventBody {
  const message = `Its runner exited while it was starting, and ${why}.`;
  return { type: 'session_paused', sessionId, attemptId: attempt.id, reason: 'interrupted', message, usage: noUsage };
}

/** The end of an attempt that its host never received. */
export function neverStarted(sessionId: SessionId, { id: attemptId }: Attempt): WorkerFact {
  const message = 'Its runner exited before the host had started it.';
  const outcome = { status: 'paused', reason: 'interrupted', message, warnings: [] } as const;
  return { kind: 'ended', sessionId, attemptId, outcome, usage: noUsage, progressed: false, unread: [] };
}

/** Delay before the second attempt in milliseconds; multiplied by four for each further one. */
const backoffMs = 5_000;
const backoffMsMax = 10 * 60_000;
/** Delay after the first interruption for a full disk. */
const fullDiskDelayMs = 2_000;

/** Maximum number of resumes after stalls, regardless of progress. */
const stallsMax = 10;

/** Maximum number of transient retries in total, as a multiple of the permitted consecutive attempts. */
const transientRounds = 10;

function isStuck({ stalls, stallsInAll = 0 }: SessionRecord, progressed: boolean): boolean {
  return (stalls > 0 && !progressed) || stallsInAll >= stallsMax;
}

/** The delay grows each time: the session itself may fill the disk and free it when it is interrupted. */
function retryTimeAfterFullDisk({ diskPauses = 0 }: SessionRecord, { nowMs }: FactContext): string {
  return new Date(nowMs + Math.min(backoffMsMax, fullDiskDelayMs * 4 ** diskPauses)).toISOString();
}

/**
 * An API that has served this group before will probably recover; one that never answered is probably misconfigured.
 * Only attempts without cost count, because a paid response proves that the API is up.
 */
export function isInOutage({ sessionId, outcome, usage }: Ended, { served, isUnserved }: OutageContext): boolean {
  const isFree = usage.costUsd === 0 && !isAnswered(usage);
  return (
    outcome.status === 'failed' && outcome.outage === true && isFree && isAnswered(served) && isUnserved(sessionId)
  );
}

/**
 * When a session is retried after a transient failure, ISO 8601; null when no retries are left. During an outage only
 * the total maximum applies.
 */
function retryTime(
  record: SessionRecord,
  { progressed, isOutage, triesMax }: { readonly progressed: boolean; readonly isOutage: boolean; triesMax: number },
  { nowMs, jitter }: FactContext,
): string | null {
  const retries = Math.min(record.definition.retries ?? defaultRetries, triesMax);
  const before = progressed ? 0 : record.transients;
  const isPatient = isOutage && retries > 0;
  if (before >= retries && !isPatient) return null;
  if ((record.transientsInAll ?? 0) >= transientRounds * (retries + 1)) return null;
  const delayMs = Math.min(backoffMsMax, backoffMs * 4 ** before) * (0.5 + jitter);
  return new Date(nowMs + Math.round(delayMs)).toISOString();
}

// Timeouts and stalls.

export interface WorkerTimes {
  readonly ageMs: number;
  readonly silentMs: number;
}

/** The interrupt comes a quarter of the stall timeout after the notice. */
const interruptShare = 1.25;

/** The events due for a running attempt. `noticed`: attempts whose silence was reported; updated here. */
export function overdueEvents(record: SessionRecord, times: WorkerTimes, noticed: Set<string>): EventBody[] {
  if (record.state.status !== 'running') return [];
  const { attempt } = record.state;
  const { id: sessionId, timeoutMs, stallTimeoutMs = defaultStallTimeoutMs } = record.definition;
  if (attempt.stopping !== undefined) return [];
  if (timeoutMs !== undefined && times.ageMs >= timeoutMs) {
    return [{ type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'timeout' }];
  }
  const { silentMs } = times;
  if (silentMs < stallTimeoutMs) {
    noticed.delete(attempt.id);
    return [];
  }
  if (silentMs >= stallTimeoutMs * interruptShare) {
    return [
      { type: 'session_stalled', sessionId, attemptId: attempt.id, step: 'interrupt', silentMs },
      { type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'stall' },
    ];
  }
  if (noticed.has(attempt.id)) return [];
  noticed.add(attempt.id);
  return [{ type: 'session_stalled', sessionId, attemptId: attempt.id, step: 'notice', silentMs }];
}

// Converts decisions to log events, before they are executed.

export function decisionEvents(
  world: World,
  paths: GroupPaths,
  state: GroupState,
  decisions: readonly Decision[],
): EventBody[] {
  let newPorts: ReturnType<typeof portRanges> | undefined;
  return decisions.flatMap((decision): EventBody[] => {
    switch (decision.do) {
      case 'start':
        newPorts ??= portRanges(world, state);
        return [...movedEvents(state, decision), startingEvent(world, paths, state, decision, newPorts)];
      case 'stop': {
        const { sessionId, reason } = decision;
        return [{ type: 'session_stopping', sessionId, attemptId: runningAttempt(state, sessionId).id, reason }];
      }
      case 'wait':
      case 'wish':
        return [];
      case 'record':
        return [decision.event];
      case 'ask-wave': {
        const { wave, text } = decision;
        const item = world.random.uuid().slice(0, 8);
        return [{ type: 'item_opened', item, kind: 'wave', wave, text, options: ['continue', 'stop'] }];
      }
      case 'settle': {
        if (decision.status === 'completed') return [{ type: 'group_completed' }];
        const { reason, message } = decision;
        return [{ type: decision.status === 'failed' ? 'group_failed' : 'group_paused', reason, message }];
      }
      default:
        return unreachable(decision);
    }
  });
}

function movedEvents(state: GroupState, { sessionId, place }: Start): EventBody[] {
  const record = state.sessions.get(sessionId) as SessionRecord;
  const from = record.host ?? (record.attempts > 0 ? thisMachine : undefined);
  const to = place?.host ?? thisMachine;
  if (to === (from ?? thisMachine)) return [];
  return [{ type: 'session_moved', sessionId, ...defined({ from }), to }];
}

function startingEvent(
  world: World,
  paths: GroupPaths,
  state: GroupState,
  decision: Start,
  newPorts: ReturnType<typeof portRanges>,
): EventBody {
  const { sessionId, kind, reserveUsd, isolated, place } = decision;
  const record = state.sessions.get(sessionId) as SessionRecord;
  const { config } = sessionPaths(paths, sessionId);
  const left = answersLeft(world, config, conversationId(record), leftAnswers(record));
  const attempt = {
    id: world.random.uuid(),
    number: record.attempts + 1,
    kind,
    offset: terminatePartialLine(world, sessionPaths(paths, sessionId)),
    ...defined({ reservedUsd: reserveUsd, isolated, place, portBase: newPorts(record) }),
    ...(left.length > 0 ? { answers: left } : {}),
  };
  return { type: 'session_starting', sessionId, attempt };
}

const [firstPort, rangeSize, rangesMax] = [20_000, 10, 1_000];

/** Reserves free port ranges. The first range depends on the group, so that groups rarely collide. */
function portRanges(world: World, { group, sessions }: GroupState): (record: SessionRecord) => number | undefined {
  const taken = new Set([...sessions.values()].flatMap(({ portBase }) => portBase ?? []));
  const first = createHash('sha256').update(group.id).digest().readUInt32BE(0);
  return ({ definition, portBase }) => {
    if (portBase !== undefined) return undefined;
    for (let tried = sessionNumber(definition.id); tried < rangesMax + sessionNumber(definition.id); tried += 1) {
      const base = firstPort + ((first + tried) % rangesMax) * rangeSize;
      const ports = Array.from({ length: rangeSize }, (_, index) => base + index);
      if (taken.has(base) || !ports.every((port) => world.machine.isPortFree(port))) continue;
      taken.add(base);
      return base;
    }
    return undefined;
  };
}

export function runningAttempt(state: GroupState, sessionId: SessionId): Attempt {
  const session = state.sessions.get(sessionId)?.state;
  if (session?.status !== 'running') throw new Error(`Internal error: session ${sessionId} is not running`);
  return session.attempt;
}

/** Throws LogLost when the log can no longer be written. */
export function assertLog({ lost }: GroupWriter): void {
  if (lost !== null) throw lost;
}

/** Ends all running attempts and resolves to the error for the user. The workers emit no facts afterwards. */
export async function endWorkers(
  state: GroupState,
  workers: ReadonlyMap<SessionId, { readonly worker: Worker }>,
  hosted: (sessionId: SessionId, attemptId: string) => HostedAttempt,
  { failure }: LogLost,
): Promise<LogLost> {
  const endings = [...state.running].map((sessionId) => {
    const ended = workers.get(sessionId)?.worker ?? hosted(sessionId, runningAttempt(state, sessionId).id);
    return ended.endNow();
  });
  const isAllGone = (await Promise.all(endings)).every(Boolean);
  const rest = isAllGone ? 'Its workers were stopped.' : 'Some of its workers could not be stopped.';
  return new LogLost({ ...failure, message: `${failure.message} ${rest}` });
}
