/**
 * The promises of supervision, checked against the log by separate tables and against the machine: limits, retries,
 * stalls, freezes, drains, and held-back sessions.
 */
import { dirname } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import {
  defaultRetries,
  defaultStallTimeoutMs,
  type GroupConfig,
  noUsage,
  type SessionDefinition,
} from '../../../src/core/group.ts';
import { openItems } from '../../../src/core/item.ts';
import { invariants } from './checks.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualProcess } from './virtual-processes.ts';

type Paused = Extract<GroupEvent, { type: 'session_paused' }>;
type Failed = Extract<GroupEvent, { type: 'session_failed' }>;

interface Standing {
  definition: SessionDefinition;
  /** The running attempt. */
  attemptId: string | null;
  /** When it started and when it was last paused, virtual milliseconds. */
  startedMs: number;
  pausedMs: number;
  hasFailed: boolean;
  /** Not to be started without a request. */
  rests: boolean;
  transients: number;
  /** Whatever progress was made in between. */
  transientsInAll: number;
  stalls: number;
  stallsInAll: number;
  /** By the wall clock, and its offset when the delay started. */
  retry: { readonly atMs: number } | null;
}

/** What has been in the transcript for this long must have been read. */
const readWithinMs = 4_000;
/** A runner notices within its tick, and timers may be late; a signal takes time too. */
const haltWithinMs = 6_000;
/** An adopting run first ends leftovers, one session after another. */
const goOnWithinMs = 25_000;
const freezeMsMax = 60_000;
/** A session with progress in between is retried this often in all, times its consecutive attempts. */
const mostRounds = 10;
/** A session with progress in between is resumed after a stall this often in all. */
const mostStalls = 10;
/** After these a session resumes by itself. */
const passing: ReadonlySet<string> = new Set([
  'interrupted',
  'top-up',
  'disk',
  'limit',
  'transient',
  'stall',
  'budget',
  'not-accepted',
  // Not before the answer, see below.
  'waits-for-answer',
]);

export class SupervisionChecks {
  readonly #machine: VirtualMachine;
  readonly #lockPath: string;
  readonly #sessions = new Map<string, Standing>();
  #config: GroupConfig | null = null;
  #isPausing = false;
  /** Sessions that failed in the present run and were not retried. */
  readonly #failed = new Set<string>();
  /** Its start, virtual milliseconds. */
  #ranMs = 0;
  #isQuiet = false;
  #frozen: { readonly sinceMs: number } | null = null;
  /** The limit that ended a session: its reset by the wall clock, and when it was reported. */
  #limit: { readonly untilMs: number; readonly heardMs: number } | null = null;
  #haltedSinceMs: number | null = null;
  #owner: VirtualProcess | null = null;
  #leftAtMs: number | null = null;

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
    this.#lockPath = `${dirname(machine.log.path)}/runner.lock`;
  }

  /** `isReplay`: the log's content was checked when it happened. */
  take(events: readonly GroupEvent[], isReplay: boolean): void {
    this.#isQuiet = isReplay;
    if (isReplay) {
      this.#sessions.clear();
      this.#frozen = null;
      this.#isPausing = false;
      this.#limit = null;
    }
    for (const event of events) this.#takeOne(event);
    this.#isQuiet = false;
  }

  /** A runner detached while its workers continue. */
  left(): void {
    this.#leftAtMs = this.#machine.timeline.nowMs;
  }

  /** `args` of a claude that is being started for the session. */
  spawned(sessionId: string, args: readonly string[]): void {
    const own = this.#sessions.get(sessionId)?.definition.maxBudgetUsd;
    if (this.#config?.onBudgetExceeded !== 'warn' || own !== undefined || !args.includes('--max-budget-usd')) return;
    this.#violate(invariants.warnOnly, `${sessionId} is started with a cap, and the group is only to warn`);
  }

  #takeOne(event: GroupEvent): void {
    switch (event.type) {
      case 'group_created':
        this.#config = event.group.config;
        return;
      case 'group_changed':
        this.#config = event.config;
        return;
      case 'session_added':
        this.#sessions.set(event.sessionId, newStanding(event.session));
        return;
      case 'session_removed':
        this.#failed.delete(event.sessionId);
        this.#sessions.delete(event.sessionId);
        return;
      case 'group_started':
      case 'group_resumed':
        this.#beginsRun(event.type === 'group_resumed' ? event : {});
        return;
      case 'group_pausing':
        this.#isPausing = true;
        this.#frozen = null;
        return;
      case 'group_frozen':
        this.#frozen = { sinceMs: this.#nowMs };
        return;
      case 'group_thawed':
      case 'group_paused':
      case 'group_failed':
      case 'group_completed':
        this.#frozen = null;
        return;
      default:
        if ('sessionId' in event && event.sessionId !== undefined) this.#takeSession(event, event.sessionId);
    }
  }

  #takeSession(event: GroupEvent, sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    switch (event.type) {
      case 'session_queued':
        if (event.queued) this.#failed.delete(sessionId);
        if (event.queued) ask(session);
        else session.rests = true;
        return;
      case 'session_detached':
        // A user's message resumes it; an interrupted message too.
        this.#failed.delete(sessionId);
        ask(session);
        return;
      case 'session_starting':
        this.#begins(sessionId, session, event.attempt.id, Date.parse(event.at));
        return;
      case 'session_paused':
        this.#pauses(sessionId, session, event);
        return;
      case 'session_failed':
        if (event.reason === 'stalled' && session.stalls === 0)
          this.#violate(invariants.stalledOnce, `${sessionId} is given up although it was never resumed`);
        if (event.reason === 'api-error') this.#givesUp(sessionId, session, event);
        this.#failed.add(sessionId);
        session.attemptId = null;
        session.hasFailed = true;
        session.rests = true;
        return;
      case 'session_completed':
        session.attemptId = null;
        return;
      case 'session_stalled':
        this.#stalls(sessionId, session, event.attemptId);
        return;
    }
  }

  #beginsRun({ only, retry = [] }: { readonly only?: readonly string[]; readonly retry?: readonly string[] }): void {
    this.#isPausing = false;
    this.#failed.clear();
    this.#ranMs = this.#nowMs;
    this.#frozen = null;
    for (const [id, session] of this.#sessions) {
      const isMeant = only === undefined || only.includes(id);
      if (session.attemptId === null && isMeant && (!session.hasFailed || retry.includes(id))) ask(session);
    }
  }

  #begins(sessionId: string, session: Standing, attemptId: string, atMs: number): void {
    const isAgain = session.attemptId === attemptId;
    session.attemptId = attemptId;
    session.hasFailed = false;
    if (this.#isPausing) this.#violate(invariants.drain, `${sessionId} starts although the group is being paused`);
    this.#checkLimit(sessionId, atMs);
    if (isAgain) return;
    session.startedMs = this.#nowMs;
    this.#failed.delete(sessionId);
    if (this.#failed.size >= (this.#config?.errorThreshold ?? Number.POSITIVE_INFINITY))
      this.#violate(invariants.threshold, `${sessionId} starts after ${this.#failed.size} failures`);
    if (session.rests) this.#violate(invariants.rests, `${sessionId} starts without a request`);
    const [open] = openItems(this.#machine.log.state?.sessions.get(sessionId) ?? {});
    if (open !== undefined) this.#violate(invariants.rests, `${sessionId} starts while it waits for an answer`);
    const { retry } = session;
    if (retry !== null && atMs < retry.atMs && !this.#isRelieved(session))
      this.#violate(invariants.tries, `${sessionId} is tried again ${retry.atMs - atMs} ms too early`);
  }

  /** Beyond its retries it waited for an answer to any session, and there was one. */
  #isRelieved({ transients, definition, pausedMs }: Standing): boolean {
    const isPatient = transients > (definition.retries ?? defaultRetries);
    return isPatient && this.#machine.claudes.some(({ answeredMs }) => answeredMs > pausedMs - readWithinMs);
  }

  #checkLimit(sessionId: string, atMs: number): void {
    const limit = this.#limit;
    if (limit === null || this.#hasAnswered(limit)) return;
    if (atMs < limit.untilMs) {
      this.#violate(invariants.gate, `${sessionId} starts ${limit.untilMs - atMs} ms before the limit is lifted`);
      return;
    }
    const others = [...this.#sessions].filter(([id, { attemptId }]) => id !== sessionId && attemptId !== null);
    if (others.length > 0)
      this.#violate(invariants.firstAlone, `${sessionId} starts beside ${others[0]?.[0]}, and no answer came yet`);
  }

  #hasAnswered({ untilMs }: { readonly untilMs: number }): boolean {
    return this.#machine.claudes.some(({ answeredWallMs }) => answeredWallMs >= untilMs);
  }

  #pauses(sessionId: string, session: Standing, event: Paused): void {
    const { reason, attemptId, retryAt, progressed } = event;
    session.attemptId = null;
    session.pausedMs = this.#nowMs;
    session.rests = !passing.has(reason);
    session.retry = retryAt === undefined ? null : { atMs: Date.parse(retryAt) };
    if (reason === 'stall') {
      session.stalls = progressed === true ? 1 : session.stalls + 1;
      session.stallsInAll += 1;
      if (session.stallsInAll > mostStalls)
        this.#violate(invariants.ceiling, `${sessionId} is resumed after its ${session.stallsInAll}th stall`);
      if (session.stalls > 1) this.#violate(invariants.stalledOnce, `${sessionId} is resumed after its second stall`);
    }
    if (reason === 'transient') {
      session.transients = progressed === true ? 1 : session.transients + 1;
      const most = session.definition.retries ?? defaultRetries;
      if (session.transients > most && (most === 0 || !this.#mayBeOutage(session, event)))
        this.#violate(invariants.tries, `${sessionId} is tried again for the ${session.transients}th time of ${most}`);
      session.transientsInAll += 1;
      if (session.transientsInAll > mostRounds * (most + 1))
        this.#violate(
          invariants.ceiling,
          `${sessionId} is tried again for the ${session.transientsInAll}th time in all`,
        );
    }
    if (reason !== 'limit') return;
    const told = this.#machine.claudes.find(
      (book) => book.attemptId === attemptId && book.resetsAtWallMs !== undefined,
    );
    if (told?.resetsAtWallMs !== undefined) this.#limit = { untilMs: told.resetsAtWallMs, heardMs: this.#nowMs };
  }

  /** It got no answer and cost nothing, others had got one before, and certainly none has since it started. */
  #mayBeOutage({ startedMs }: Standing, { usage }: Paused | Failed): boolean {
    const sinceMs = Math.max(startedMs, this.#ranMs) + readWithinMs;
    const isServed = this.#machine.claudes.some(
      ({ answeredMs }) => answeredMs > sinceMs && answeredMs < this.#nowMs - readWithinMs,
    );
    return usage.costUsd === 0 && this.#wasServed && !isServed;
  }

  /** Not while the API, which had served others, certainly serves no session. */
  #givesUp(sessionId: string, session: Standing, event: Failed): void {
    const { definition, startedMs, transientsInAll } = session;
    const most = definition.retries ?? defaultRetries;
    if (most === 0 || transientsInAll >= mostRounds * (most + 1) || event.usage.costUsd > 0) return;
    const isServed = this.#machine.claudes.some(({ answeredMs }) => answeredMs > startedMs - readWithinMs);
    if (this.#wasServed && !isServed)
      this.#violate(invariants.tries, `${sessionId} fails although the API serves no session`);
  }

  get #wasServed(): boolean {
    const { tokens } = this.#machine.log.state?.usage ?? noUsage;
    return tokens.input + tokens.output > 0;
  }

  #stalls(sessionId: string, { definition }: Standing, attemptId: string): void {
    const book = this.#machine.claudes.findLast((other) => other.attemptId === attemptId);
    if (book === undefined) return;
    const now = this.#nowMs;
    if (book.toolSinceMs !== null && now - book.toolSinceMs > readWithinMs)
      this.#violate(invariants.busy, `${sessionId} counts as stalled while its tool runs`);
    const silentMs = now - book.spokeMs;
    if (silentMs > readWithinMs && silentMs < (definition.stallTimeoutMs ?? defaultStallTimeoutMs) - readWithinMs)
      this.#violate(invariants.busy, `${sessionId} counts as stalled after ${silentMs} ms of silence`);
  }

  /** Everything that must hold whenever the machine is idle. */
  step(): void {
    const { table, locks } = this.#machine;
    const owner = locks.get(this.#lockPath)?.owner ?? null;
    if (owner !== this.#owner) {
      this.#owner = owner;
      this.#haltedSinceMs = null;
      if (owner !== null) this.#leftAtMs = null;
    }
    if (this.#frozen !== null && owner !== null) {
      this.#checkFrozen(this.#frozen);
      return;
    }
    if (owner === null && this.#leftAtMs === null) return;
    const halted = table.firstHalted();
    if (halted === null) this.#haltedSinceMs = null;
    else this.#haltedSinceMs ??= this.#nowMs;
    if (halted !== null && this.#nowMs - (this.#haltedSinceMs ?? 0) > goOnWithinMs)
      this.#violate(invariants.thaw, `${halted.name} is still halted, and the group is not frozen`);
  }

  #checkFrozen({ sinceMs }: { readonly sinceMs: number }): void {
    const now = this.#nowMs;
    if (now - sinceMs > freezeMsMax + haltWithinMs)
      this.#violate(invariants.thaw, `the group is frozen for ${now - sinceMs} ms`);
    if (now - sinceMs <= haltWithinMs) return;
    for (const process of this.#machine.table.living.values()) {
      if (process.kind === 'runner' || process.halted || now - process.bornMs <= haltWithinMs) continue;
      if (this.#isStopping(process)) continue;
      // Without a mark and out of the tree it is a stranger.
      if (process.mark === undefined && process.parent === null) continue;
      this.#violate(invariants.frozen, `${process.name} goes on although the group is frozen`);
    }
  }

  /** A process that is asked to stop must be able to receive that. */
  #isStopping({ mark, origin }: VirtualProcess): boolean {
    const attemptId = mark ?? origin?.mark;
    for (const { state } of this.#machine.log.state?.sessions.values() ?? []) {
      if (state.status === 'running' && state.attempt.id === attemptId) return state.attempt.stopping !== undefined;
    }
    return true;
  }

  get #nowMs(): number {
    return this.#machine.timeline.nowMs;
  }

  #violate(invariant: string, message: string): void {
    if (!this.#isQuiet) this.#machine.violate(invariant, message);
  }
}

function newStanding(definition: SessionDefinition): Standing {
  return {
    definition,
    attemptId: null,
    startedMs: 0,
    pausedMs: 0,
    hasFailed: false,
    rests: false,
    transients: 0,
    transientsInAll: 0,
    stalls: 0,
    stallsInAll: 0,
    retry: null,
  };
}

/** The user requests a start: delays and earlier failures no longer count. */
function ask(session: Standing): void {
  session.rests = false;
  session.transients = 0;
  session.transientsInAll = 0;
  session.stalls = 0;
  session.stallsInAll = 0;
  session.retry = null;
}
