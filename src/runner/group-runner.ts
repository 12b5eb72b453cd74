/**
 * runner/: one run of one group. The loop drains one inbox at its own pace: facts, events, log (fsync), reduce,
 * decide, act. Logged before reduced, reduced before shown (DESIGN §4).
 */
import type { EventBody, GroupEvent, RunInfo } from '../core/event.ts';
import { unreachable } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { groupProgress, type LiveSession } from '../core/progress.ts';
import { type Decision, decide } from '../core/schedule.ts';
import type { Attempt, SessionRecord } from '../core/state.ts';
import type { Reporter } from '../report/reporter.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { sessionPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';
import { endSilently, judgeUnfinished } from './adopt.ts';
import type { AttemptPreparer } from './attempt-setup.ts';
import { eventsOf } from './fact-events.ts';
import type { Fact } from './facts.ts';
import { liveSession } from './live.ts';
import { answerRequests } from './request-answers.ts';
import { Slots } from './slots.ts';
import { Worker } from './worker.ts';

/** How often what running sessions do is shown at most; a tenth of a second, longer for large groups. */
const showMs = 100;
/** Request files are looked for this often, besides the hints of the file system. */
const requestPollMs = 500;

export interface GroupRunnerOptions {
  readonly writer: GroupWriter;
  readonly run: RunInfo;
  readonly reporter: Reporter;
  readonly preparer: AttemptPreparer;
}

/** How a run ended for the process that carried it. */
export type RunEnd = 'settled' | 'left';

interface ActiveWorker {
  readonly worker: Worker;
  readonly startedAtMs: number;
  readonly release: () => void;
}

export class GroupRunner {
  readonly #world: World;
  readonly #writer: GroupWriter;
  readonly #run: RunInfo;
  readonly #reporter: Reporter;
  readonly #preparer: AttemptPreparer;
  readonly #slots = new Slots();
  readonly #workers = new Map<SessionId, ActiveWorker>();
  readonly #adopted = new Map<string, { readonly stopBegun: boolean }>();
  readonly #live = new Map<SessionId, LiveSession>();
  readonly #changed = new Set<SessionId>();
  #inbox: Fact[] = [];
  #wake: (() => void) | null = null;
  #unwatch = () => {};
  #cancelPoll = () => {};
  #cancelShow: (() => void) | null = null;
  #leaving = false;
  #settled = false;

  constructor(world: World, options: GroupRunnerOptions) {
    this.#world = world;
    this.#writer = options.writer;
    this.#run = options.run;
    this.#reporter = options.reporter;
    this.#preparer = options.preparer;
  }

  /** Puts a fact into the inbox. Never does anything else, so it may be called from anywhere. */
  readonly enqueue = (fact: Fact): void => {
    if (fact.kind === 'activity') {
      this.#noteActivity(fact.sessionId);
      return;
    }
    this.#inbox.push(fact);
    this.#wake?.();
  };

  /** Writes down what happened and lets reporters see it. */
  record(bodies: readonly EventBody[]): GroupEvent[] {
    if (bodies.length === 0) return [];
    const events = this.#writer.record(bodies);
    for (const event of events) this.#reporter.event(event, this.#writer.state, this.#live);
    this.#writer.snapshot();
    this.#show();
    return events;
  }

  /** Runs until the group is settled or the runner is told to leave. */
  async run(): Promise<RunEnd> {
    try {
      this.#watchRequests();
      await this.#takeOverUnfinished();
      for (;;) {
        const facts = this.#inbox;
        this.#inbox = [];
        this.#handleRequests();
        this.#handleFacts(facts);
        if (this.#leaving) return 'left';
        const idle = this.#decideAndAct() === 0;
        if (this.#settled) return 'settled';
        if (idle && this.#inbox.length === 0) await this.#nextFact();
      }
    } finally {
      this.#unwatch();
      this.#cancelPoll();
      this.#cancelShow?.();
      for (const { worker } of this.#workers.values()) worker.leave();
      this.#writer.progress(groupProgress(this.#writer.state, this.#live, this.#world.clock.now()));
    }
  }

  #nextFact(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null;
        resolve();
      };
    });
  }

  #watchRequests(): void {
    const { requests } = this.#writer.paths;
    this.#world.files.makeFolder(requests);
    this.#unwatch = this.#world.files.watch(requests, () => this.enqueue({ kind: 'wake' }));
    const poll = () => {
      this.enqueue({ kind: 'wake' });
      this.#cancelPoll = this.#world.clock.after(requestPollMs, poll);
    };
    poll();
  }

  #handleRequests(): void {
    answerRequests(this.#world, this.#writer, this.#run.id, (bodies) => this.record(bodies));
  }

  #handleFacts(facts: readonly Fact[]): void {
    const bodies: EventBody[] = [];
    const after: (() => void)[] = [];
    for (const fact of facts) {
      if (fact.kind === 'wake') continue;
      if (fact.kind === 'signal') {
        this.#onSignal(fact.signal, bodies);
        continue;
      }
      const events = eventsOf(this.#writer.state, fact, this.#adopted);
      bodies.push(...events);
      after.push(() => this.#afterFact(fact));
    }
    // What a session did last is shown before its end is.
    if (facts.some((fact) => fact.kind === 'ended')) this.#showNow();
    // Events of one drained inbox are on disk, by one fsync, before any of them is acted on.
    this.record(bodies);
    for (const action of after) action();
  }

  #afterFact(fact: Exclude<Fact, { kind: 'wake' | 'signal' }>): void {
    const active = this.#workers.get(fact.sessionId);
    if (!active) return;
    if (fact.kind === 'spawned') active.worker.sendPrompt();
    if (fact.kind === 'ended') {
      this.#workers.delete(fact.sessionId);
      this.#live.delete(fact.sessionId);
      active.release();
    }
  }

  /** First Ctrl-C or SIGTERM: pause all. Second: leave, workers go on. SIGHUP: leave at once. */
  #onSignal(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP', bodies: EventBody[]): void {
    const pausing = this.#writer.state.pausing !== undefined || bodies.some((body) => body.type === 'group_pausing');
    if (signal === 'SIGHUP' || pausing) this.#leaving = true;
    else bodies.push({ type: 'group_pausing', reason: 'signal' });
  }

  #decideAndAct(): number {
    const decisions = decide(this.#writer.state, { preparingMax: 2 * this.#world.machine.cores });
    const bodies: EventBody[] = [];
    const acts: (() => void)[] = [];
    for (const decision of decisions) this.#take(decision, bodies, acts);
    this.record(bodies);
    for (const act of acts) act();
    return decisions.length;
  }

  #take(decision: Decision, bodies: EventBody[], acts: (() => void)[]): void {
    switch (decision.do) {
      case 'start': {
        const { sessionId, kind, reserveUsd } = decision;
        const record = this.#writer.state.sessions.get(sessionId) as SessionRecord;
        const attempt = {
          id: this.#world.random.uuid(),
          number: record.attempts + 1,
          kind,
          offset: this.#transcriptEnd(sessionId),
          ...(reserveUsd === undefined ? {} : { reservedUsd: reserveUsd }),
        };
        bodies.push({ type: 'session_starting', sessionId, attempt });
        acts.push(() => this.#startWorker(sessionId));
        return;
      }
      case 'stop': {
        const { sessionId, reason } = decision;
        bodies.push({ type: 'session_stopping', sessionId, attemptId: this.#attemptOf(sessionId).id, reason });
        acts.push(() => this.#workers.get(sessionId)?.worker.stop(reason));
        return;
      }
      case 'warn-budget':
      case 'exceed-budget': {
        const { usage, limit } = decision;
        const sessionId = this.#lastSpender();
        if (decision.do === 'warn-budget') bodies.push({ type: 'budget_warning', sessionId, usage, limit });
        else bodies.push({ type: 'budget_exceeded', sessionId, action: decision.action, usage, limit });
        return;
      }
      case 'settle':
        this.#settled = true;
        if (decision.status === 'completed') bodies.push({ type: 'group_completed' });
        else {
          const { reason, message } = decision;
          bodies.push({ type: decision.status === 'failed' ? 'group_failed' : 'group_paused', reason, message });
        }
        return;
      default:
        unreachable(decision);
    }
  }

  /** The session whose end changed the spending last; budget events name it (seed §7.2). */
  #lastSpender(): SessionId {
    let last: SessionRecord | undefined;
    for (const record of this.#writer.state.sessions.values()) {
      if (record.endedAt !== undefined && (last?.endedAt === undefined || record.endedAt >= last.endedAt))
        last = record;
    }
    return (last ?? [...this.#writer.state.sessions.values()][0])?.definition.id ?? '';
  }

  #attemptOf(sessionId: SessionId): Attempt {
    const state = this.#writer.state.sessions.get(sessionId)?.state;
    if (state?.status !== 'running') throw new Error(`Internal error: session ${sessionId} is not running`);
    return state.attempt;
  }

  /** The transcript's size, after closing a half last line of a killed worker so that no two lines run together. */
  #transcriptEnd(sessionId: SessionId): number {
    const { transcript, folder } = sessionPaths(this.#writer.paths, sessionId);
    const size = this.#world.files.info(transcript)?.size ?? 0;
    if (size === 0 || this.#world.files.readBytes(transcript, size - 1, 1)[0] === 10) return size;
    this.#world.files.makeFolder(folder);
    const file = this.#world.files.openAppend(transcript);
    file.append('\n');
    file.close();
    return size + 1;
  }

  /** The worker of the session's running attempt; occupies a slot until its end was handled. */
  #newWorker(sessionId: SessionId): Worker {
    const attempt = this.#attemptOf(sessionId);
    const startedAtMs = Date.parse(attempt.startedAt);
    const worker = new Worker(this.#world, {
      sessionId,
      attemptId: attempt.id,
      paths: sessionPaths(this.#writer.paths, sessionId),
      offset: attempt.offset,
      startedAtMs,
      expectHook: true,
      emit: this.enqueue,
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#workers.set(sessionId, { worker, startedAtMs, release: resolve });
    this.#slots.occupy(this.#writer.state.group.config.maxConcurrentSessions, () => promise);
    return worker;
  }

  #startWorker(sessionId: SessionId): void {
    const record = this.#writer.state.sessions.get(sessionId) as SessionRecord;
    const attempt = this.#attemptOf(sessionId);
    const worker = this.#newWorker(sessionId);
    void worker.begin(() => this.#preparer.prepare(this.#writer.state, record, attempt));
  }

  /** Attempts that an earlier runner logged as running: follow, start again, or read what they left. */
  async #takeOverUnfinished(): Promise<void> {
    for (const sessionId of [...this.#writer.state.running]) {
      const attempt = this.#attemptOf(sessionId);
      const { transcript } = sessionPaths(this.#writer.paths, sessionId);
      const adoption = judgeUnfinished(this.#world, attempt, this.#world.files.info(transcript)?.size ?? 0);
      if (adoption.do === 'restart' && (await endSilently(this.#world, attempt, transcript))) {
        this.#startAgain(sessionId, attempt);
        continue;
      }
      // It spoke only while it was being ended: whatever it said, it was interrupted.
      const isEnded = adoption.do === 'restart';
      this.#adopted.set(attempt.id, { stopBegun: isEnded || attempt.stopping !== undefined });
      const worker = this.#newWorker(sessionId);
      if (adoption.do === 'adopt') worker.adopt(adoption.process, attempt.stopping);
      else void worker.bury(isEnded ? (attempt.stopping ?? 'signal') : attempt.stopping, isEnded);
    }
  }

  /** Begins the same attempt once more: so far it has cost nothing. */
  #startAgain(sessionId: SessionId, { id, number, kind, reservedUsd }: Attempt): void {
    const offset = this.#transcriptEnd(sessionId);
    const attempt = { id, number, kind, offset, ...(reservedUsd === undefined ? {} : { reservedUsd }) };
    this.record([{ type: 'session_starting', sessionId, attempt }]);
    this.#startWorker(sessionId);
  }

  #noteActivity(sessionId: SessionId): void {
    this.#changed.add(sessionId);
    this.#show();
  }

  /** Shows what running sessions do, coalesced: however much they print, at most every `showMs`. */
  #show(): void {
    if (this.#cancelShow) return;
    const delay = Math.min(2_000, showMs * Math.max(1, this.#writer.state.sessions.size / 200));
    this.#cancelShow = this.#world.clock.after(delay, () => {
      this.#cancelShow = null;
      this.#showNow();
    });
  }

  #showNow(): void {
    const now = this.#world.clock.now();
    for (const sessionId of this.#changed) {
      const active = this.#workers.get(sessionId);
      if (!active) continue;
      this.#live.set(sessionId, liveSession(active.worker, Math.max(0, now - active.startedAtMs)));
      this.#reporter.progress(sessionId, this.#writer.state, this.#live);
    }
    this.#changed.clear();
    this.#writer.progress(groupProgress(this.#writer.state, this.#live, now));
  }

  /** What running sessions are doing, for the final summary. */
  get live(): ReadonlyMap<SessionId, LiveSession> {
    return this.#live;
  }
}
