/**
 * runner/: one run of one group. The loop drains an inbox of facts: it turns them into events, decides and acts. Events
 * are logged (fsync) before they are reduced, and reduced before they are shown.
 */

import { itemId } from '../claude/questions.ts';
import { defined } from '../core/defined.ts';
import type { EventBody, GroupEvent, RunInfo, Warning } from '../core/event.ts';
import type { SessionId, Workspace } from '../core/group.ts';
import { openItems } from '../core/item.ts';
import type { Decision } from '../core/plan/decision.ts';
import type { LiveSession } from '../core/progress.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { sessionPaths } from '../store/paths.ts';
import { LogLost } from '../store/system-failure.ts';
import { isNoRoom } from '../system/system-error.ts';
import type { World } from '../system/world.ts';
import type { Reporter } from '../view/reporter.ts';
import { Acceptances } from '../worker/attempt/acceptance.ts';
import type { AttemptPreparer } from '../worker/attempt/attempt-setup.ts';
import type { CommandSlots } from '../worker/attempt/command-slots.ts';
import { type ActiveWorker, Worker } from '../worker/attempt/worker.ts';
import { workerOptions } from '../worker/attempt/worker-options.ts';
import type { Fact, RunnerSignal, WorkerFact } from '../worker/facts.ts';
import type { HostedAttempt } from '../worker/host.ts';
import { LocalAttempt, terminatePartialLine } from '../worker/local-attempt.ts';
import { branchWarnings } from '../worker/prepare/workspace-preparer.ts';
import { attachmentEndEvents, watchAttachments } from './attach.ts';
import {
  assertLog,
  decisionEvents,
  endWorkers,
  eventsOf,
  neverStarted,
  notStarted,
  overdueEvents,
  runningAttempt,
} from './fact-events.ts';
import { deadlineEvents, parkingEvents } from './item-events.ts';
import { LiveBoard } from './live-board.ts';
import { type OpenFleet, RemoteAttempts } from './remote-attempts.ts';
import { answerRequests } from './request-answers.ts';
import { SchedulerInputs, type SchedulerInputsOptions } from './scheduler-inputs.ts';

/** How often requests, timeouts and the machine are checked. */
const tickMs = 500;

export interface GroupRunnerOptions extends SchedulerInputsOptions {
  readonly writer: GroupWriter;
  readonly run: RunInfo;
  readonly reporter: Reporter;
  readonly preparer: AttemptPreparer;
  readonly openFleet?: OpenFleet | null;
}

export type RunEnd = 'settled' | 'left';

export class GroupRunner {
  readonly #world: World;
  readonly #writer: GroupWriter;
  readonly #run: RunInfo;
  readonly #reporter: Reporter;
  readonly #preparer: AttemptPreparer;
  readonly #workers = new Map<SessionId, ActiveWorker>();
  readonly #slots: CommandSlots;
  readonly #acceptances: Acceptances;
  readonly #endAttachments: () => void;
  readonly #adopted = new Map<string, { readonly stopBegun: boolean }>();
  readonly #board: LiveBoard;
  readonly #inputs: SchedulerInputs;
  readonly #remote: RemoteAttempts;
  readonly #noticed = new Set<string>();
  #inbox: Fact[] = [];
  #wake: (() => void) | null = null;
  #unwatch = () => {};
  #cancelTick = () => {};
  #reportedWait: string | undefined;
  #leaving = false;
  #settled = false;
  #isDiskFull = false;
  /** The scheduler has decided to settle the group. */
  #isOver = false;

  constructor(world: World, options: GroupRunnerOptions) {
    this.#world = world;
    this.#writer = options.writer;
    this.#run = options.run;
    this.#reporter = options.reporter;
    this.#preparer = options.preparer;
    const { writer, reporter, slots } = options;
    this.#slots = slots;
    const verdicts = (record: SessionRecord) => this.#inputs.verdictOn(writer.state, record);
    const fleetStatus = () => this.#remote.fleetStatus;
    this.#board = new LiveBoard(world, { writer, reporter, workers: this.#workers, slots, verdicts, fleetStatus });
    const needs = { ...options.preparer.forCommands, slots };
    const { paths } = writer;
    const elsewhere = (id: SessionId) => this.#remote.runnerOf(id);
    this.#acceptances = new Acceptances(world, { paths, needs, elsewhere, enqueue: this.enqueue });
    this.#remote = new RemoteAttempts(world, {
      ...defined({ openFleet: options.openFleet }),
      ...{ paths, workers: this.#workers, enqueue: this.enqueue, state: () => writer.state },
    });
    this.#endAttachments = watchAttachments(world, options.writer, this.enqueue);
    this.#inputs = new SchedulerInputs(world, options, this.#workers, this.#remote.sight);
  }

  /** Only queues the fact, so it may be called from any callback. */
  readonly enqueue = (fact: Fact): void => {
    if (fact.kind === 'activity') {
      this.#board.note(fact.sessionId);
      return;
    }
    this.#inbox.push(fact);
    this.#wake?.();
  };

  record(bodies: readonly EventBody[]): GroupEvent[] {
    return this.#publish(this.#writer.record(bodies));
  }

  #publish(events: GroupEvent[]): GroupEvent[] {
    if (events.length === 0) return events;
    for (const event of events) {
      this.#reporter.event(event, this.#writer.state, this.#board.live);
      this.#remote.tell(event);
      if ('sessionId' in event && event.sessionId !== undefined) this.#board.forget(event.sessionId);
    }
    this.#board.show();
    return events;
  }

  async run(): Promise<RunEnd> {
    try {
      this.#watchRequests();
      this.#remote.begin();
      await this.#adoptUnfinished();
      for (;;) {
        const next = this.#turnWithDiskCheck();
        if (next === 'rest') await this.#nextFact();
        else if (next !== 'again') return next;
      }
    } catch (error) {
      if (!(error instanceof LogLost)) throw error;
      this.#acceptances.leave();
      throw await endWorkers(this.#writer.state, this.#workers, this.#hosted, error);
    } finally {
      this.#unwatch();
      this.#cancelTick();
      if (this.#isDiskFull) this.#resumeWorkers();
      for (const { worker } of this.#workers.values()) worker.leave();
      this.#acceptances.leave();
      this.#board.close();
      await this.#remote.close();
    }
  }

  #turnWithDiskCheck(): RunEnd | 'again' | 'rest' {
    try {
      return this.#turn();
    } catch (error) {
      if (!isNoRoom(error)) throw error;
      this.#haltOnFullDisk();
      return this.#leaving ? 'left' : 'rest';
    }
  }

  #turn(): RunEnd | 'again' | 'rest' {
    const facts = this.#inbox;
    this.#inbox = [];
    // Facts first: a request about a session that has ended applies to its next attempt.
    this.#handleFacts(facts);
    // Requests that arrive now are left to the next runner.
    if (this.#leaving) return 'left';
    if (facts.some(({ kind }) => kind === 'wake' || kind === 'tick')) this.#handleRequests();
    const acted = this.#decideAndAct();
    if (facts.some(({ kind }) => kind === 'tick')) this.#board.look();
    if (this.#settled) {
      assertLog(this.#writer);
      return 'settled';
    }
    if (acted || this.#inbox.length > 0) return 'again';
    return 'rest';
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
    this.enqueue({ kind: 'wake' });
    const tick = () => {
      this.enqueue({ kind: 'tick' });
      this.#cancelTick = this.#world.clock.after(tickMs, tick);
    };
    this.#cancelTick = this.#world.clock.after(tickMs, tick);
  }

  /** True when a request was answered. A pause request after the run's end is ignored. */
  #handleRequests(): boolean {
    const { lastSeq } = this.#writer.state;
    const record = (bodies: readonly EventBody[]) => this.#recordAndAct(bodies);
    const isDone = (id: SessionId) => this.#acceptances.has(id) || this.#workers.get(id)?.worker.isDone === true;
    const takes = (kind: string) => !this.#isOver || kind !== 'pause';
    const used = () => [...this.#board.live.values()].map(({ usage }) => usage);
    answerRequests(this.#world, this.#writer, this.#run.id, record, { isDone, takes, used });
    return this.#writer.state.lastSeq > lastSeq;
  }

  #handleFacts(facts: readonly Fact[]): void {
    const workerFacts = facts.filter((fact) => 'sessionId' in fact);
    let events: GroupEvent[];
    try {
      // One fsync puts all events of a drained inbox on disk before any of them is acted on.
      events = this.#writer.record(this.#eventsFrom(facts, workerFacts));
    } catch (error) {
      this.#inbox.unshift(...facts.filter(({ kind }) => kind !== 'tick'));
      throw error;
    }
    for (const event of this.#publish(events)) this.#act(event);
    for (const fact of workerFacts) this.#afterFact(fact);
    this.#recordAndAct(this.#inputs.gateEvents(this.#writer.state));
  }

  #eventsFrom(facts: readonly Fact[], workerFacts: readonly WorkerFact[]): EventBody[] {
    // Show a session's last activity, and count it for the gate, before the session ends.
    if (facts.some((fact) => fact.kind === 'ended')) this.#board.showNow();
    this.#inputs.noteLimits(this.#writer.state, facts);
    this.#remote.recordRefusedLogins(facts);
    this.#inputs.trackOutage(this.#writer.state, facts);
    const bodies: EventBody[] = this.#inputs.gateEvents(this.#writer.state);
    const { clock, random } = this.#world;
    const { isUnserved } = this.#inputs;
    const [nowMs, jitter] = [clock.now(), random.fraction()];
    const context = { adopted: this.#adopted, nowMs, jitter, isUnserved };
    for (const fact of facts) {
      if (fact.kind === 'signal') this.#onSignal(fact.signal, bodies);
      else if (fact.kind === 'tick') this.#onTick();
      else if (fact.kind === 'attachment-ended') bodies.push(...attachmentEndEvents(this.#writer.state, fact.event));
    }
    return [...bodies, ...workerFacts.flatMap((fact) => eventsOf(this.#writer.state, fact, context))];
  }

  #afterFact(fact: WorkerFact): void {
    const active = this.#workers.get(fact.sessionId);
    if (!active) return;
    if (fact.kind === 'asked') this.#answerItem(fact.sessionId, itemId(fact.attemptId, fact.request));
    if (fact.kind === 'spawned') {
      // The process was starting when the group was frozen.
      if (this.#writer.state.frozenUntil !== undefined) this.#halt();
      active.worker.sendPrompt();
    }
    if (fact.kind !== 'ended') return;
    this.#workers.delete(fact.sessionId);
    this.#board.live.delete(fact.sessionId);
    this.#acceptances.begin(this.#writer.state, fact.sessionId);
  }

  /** Also for items that were answered before this runner adopted the worker. */
  #answerItem(sessionId: SessionId, itemId: string): void {
    const item = this.#writer.state.sessions.get(sessionId)?.items?.find(({ id }) => id === itemId);
    if (item !== undefined) this.#workers.get(sessionId)?.worker.answer(item);
  }

  /** First Ctrl-C or SIGTERM: pause. Second one, or SIGHUP: exit and leave the workers running. */
  #onSignal(signal: RunnerSignal, bodies: EventBody[]): void {
    const { pausing, draining, frozenUntil } = this.#writer.state;
    // Suspended processes could neither receive the pause nor continue without a runner.
    if (frozenUntil !== undefined) bodies.push({ type: 'group_thawed' });
    const isPausing = (pausing !== undefined && !draining) || bodies.some((body) => body.type === 'group_pausing');
    if (signal === 'SIGHUP' || isPausing) this.#leaving = true;
    else bodies.push({ type: 'group_pausing', reason: 'signal' });
  }

  #onTick(): void {
    assertLog(this.#writer);
    this.#endAttachments();
    const { state } = this.#writer;
    for (const message of this.#remote.newUnsatisfiable()) this.#reporter.warning?.(message, state);
    const bodies: EventBody[] = [];
    if (state.frozenUntil !== undefined) {
      if (this.#world.clock.now() >= Date.parse(state.frozenUntil)) {
        bodies.push({ type: 'group_thawed' }, { type: 'group_pausing', reason: 'user' });
      } else this.#halt();
    } else if (!this.#isHaltedByDisk()) {
      bodies.push(...deadlineEvents(state, this.#world.clock.now()));
      this.#inputs.tick(tickMs);
      for (const [sessionId, { worker }] of this.#workers) {
        const record = state.sessions.get(sessionId) as SessionRecord;
        // Waiting for a slot or an answer does not count against the timeout.
        const waits = this.#slots.isWaiting(sessionId) || openItems(record).length > 0;
        if (!waits) worker.notes.tick(tickMs, worker.stream);
        bodies.push(...parkingEvents(state, record, worker.stream, this.#world.clock.now()));
        bodies.push(...overdueEvents(record, worker.notes, this.#noticed));
      }
    }
    this.#recordAndAct(bodies);
  }

  /** Sessions are suspended while the disk is full, because their output would be lost. */
  #isHaltedByDisk(): boolean {
    const isFull = this.#writer.state.running.size > 0 && this.#inputs.isDiskFull;
    if (isFull) this.#haltOnFullDisk();
    else if (this.#isDiskFull) this.#resumeWorkers();
    this.#isDiskFull = isFull;
    return isFull;
  }

  #haltOnFullDisk(): void {
    for (const { worker } of this.#workers.values()) worker.haltOnFullDisk();
    this.#acceptances.halt(true);
    const { paths, state } = this.#writer;
    const message = `The disk of ${paths.folder} is full. Running sessions are suspended until space is available.`;
    if (!this.#isDiskFull) this.#reporter.warning?.(message, state);
    this.#isDiskFull = true;
  }

  #resumeWorkers(): void {
    for (const { worker } of this.#workers.values()) worker.halt(false);
    this.#acceptances.halt(false);
  }

  /** Repeated at every tick, because a process may have started while the others were halted. */
  #halt(): void {
    for (const [sessionId, { worker }] of this.#workers) {
      const session = this.#writer.state.sessions.get(sessionId)?.state;
      if (session?.status === 'running' && session.attempt.stopping === undefined) worker.halt(true);
    }
    this.#acceptances.halt(true);
  }

  #decideAndAct(): boolean {
    const decisions = this.#inputs.decisions(this.#writer.state);
    this.#reportWait(decisions);
    this.#isOver = decisions.some((decision) => decision.do === 'settle');
    // Handle requests that were not yet noticed, because no later step would handle them.
    if (this.#isOver && this.#handleRequests()) return true;
    this.#settled = this.#isOver;
    this.#recordAndAct(decisionEvents(this.#world, this.#writer.paths, this.#writer.state, decisions));
    this.#remote.want(decisions);
    return decisions.some((decision) => decision.do !== 'wait' && decision.do !== 'wish');
  }

  #reportWait(decisions: readonly Decision[]): void {
    const wait = decisions.find((decision) => decision.do === 'wait');
    if (wait !== undefined && wait.reason !== this.#reportedWait) {
      this.#reporter.waiting(wait.reason, wait.message, this.#writer.state);
    }
    // A wait that continues after a start is not reported again.
    if (wait !== undefined || !decisions.some((decision) => decision.do === 'start')) this.#reportedWait = wait?.reason;
  }

  #recordAndAct(bodies: readonly EventBody[]): void {
    for (const event of this.record(bodies)) this.#act(event);
  }

  #act(event: GroupEvent): void {
    switch (event.type) {
      case 'session_starting':
        this.#startWorker(event.sessionId);
        return;
      case 'session_stopping': {
        this.#acceptances.stop(event.sessionId, event.reason);
        const worker = this.#workers.get(event.sessionId)?.worker;
        // A suspended process cannot receive the stop.
        if (worker && (this.#isDiskFull || this.#writer.state.frozenUntil !== undefined)) worker.halt(false);
        worker?.stop(event.reason);
        return;
      }
      case 'item_answered':
      case 'item_withdrawn':
        this.#answerItem(event.sessionId, event.item);
        return;
      case 'session_message':
        this.#workers.get(event.sessionId)?.worker.say(event.text);
        return;
      case 'session_changed':
        // Only the model of a running session can change.
        if (event.session.model !== undefined) {
          this.#workers.get(event.sessionId)?.worker.changeModel(event.session.model);
        }
        return;
      case 'group_frozen':
        this.#halt();
        return;
      case 'group_thawed':
        this.#resumeWorkers();
        return;
    }
  }

  readonly #hosted = (sessionId: SessionId, attemptId: string): HostedAttempt => {
    const session = this.#writer.state.sessions.get(sessionId)?.state;
    const attempt = session?.status === 'running' && session.attempt.id === attemptId ? session.attempt : undefined;
    if (attempt?.place !== undefined) return this.#remote.attempt(sessionId, attempt, attempt.place);
    return new LocalAttempt(this.#world, { sessionId, attemptId, paths: sessionPaths(this.#writer.paths, sessionId) });
  };

  #newWorker(sessionId: SessionId, hosted: HostedAttempt, idleMs = 0): Worker {
    const { paths, state } = this.#writer;
    const record = state.sessions.get(sessionId) as SessionRecord;
    const options = workerOptions(this.#world, paths, state, record, runningAttempt(this.#writer.state, sessionId));
    const startedAtMs = options.startedAtMs + idleMs;
    const emit = this.enqueue;
    const warnings = () => branchWarnings(this.#preparer.forCommands, record, options.paths);
    const more = { emit, startedAtMs, expectHook: true, branchWarnings: warnings };
    const worker = new Worker(this.#world, hosted, { ...options, ...more });
    this.#workers.set(sessionId, { worker, startedAtMs });
    return worker;
  }

  #startWorker(sessionId: SessionId): void {
    const { state } = this.#writer;
    const record = state.sessions.get(sessionId) as SessionRecord;
    const attempt = runningAttempt(this.#writer.state, sessionId);
    if (attempt.accepting !== undefined) {
      this.#acceptances.begin(state, sessionId);
      return;
    }
    const worker = this.#newWorker(sessionId, this.#hosted(sessionId, attempt.id));
    const isolated = (workspace: Workspace, notes: readonly string[]) => {
      this.#remote.noteWorkspace(attempt.id, workspace);
      this.enqueue({ kind: 'isolated', sessionId, attemptId: attempt.id, workspace, notes });
    };
    const noticed = (warnings: readonly Warning[]) => {
      if (warnings.length > 0) this.enqueue({ kind: 'noticed', sessionId, attemptId: attempt.id, warnings });
    };
    const isElsewhere = attempt.place !== undefined;
    const about = { state, record, attempt, isolated, noticed, isElsewhere };
    void worker.begin((onStop) => this.#preparer.prepare({ ...about, onStop }));
  }

  async #adoptUnfinished(): Promise<void> {
    const { state } = this.#writer;
    const isElsewhere = (id: SessionId): boolean => runningAttempt(state, id).place !== undefined;
    const running = [...state.running];
    // Remote sessions first: their host ends those that are not claimed in time.
    for (const sessionId of [...running.filter(isElsewhere), ...running.filter((id) => !isElsewhere(id))]) {
      const attempt = runningAttempt(state, sessionId);
      const { place } = attempt;
      const remote = place === undefined ? null : this.#remote.attempt(sessionId, attempt, place, true);
      if (attempt.accepting !== undefined) {
        remote?.recallPlace();
        this.#acceptances.begin(this.#writer.state, sessionId, { isAdopted: true });
        continue;
      }
      // An unreachable host must not delay the other sessions.
      if (remote !== null) void this.#takeOver(sessionId, attempt, remote);
      else await this.#takeOver(sessionId, attempt, this.#hosted(sessionId, attempt.id));
    }
  }

  async #takeOver(sessionId: SessionId, attempt: Attempt, hosted: HostedAttempt): Promise<void> {
    const found = await hosted.takeOver(attempt);
    if (found.do === 'restart') {
      if (attempt.place !== undefined) return this.enqueue(neverStarted(sessionId, attempt));
      const isTaken = this.#writer.state.takenOver.has(sessionId);
      const why = isTaken ? 'a user has attached to it' : this.#inputs.isLimited ? 'a usage limit is in force' : null;
      if (why === null) this.#restartAttempt(sessionId, attempt);
      else this.#recordAndAct([notStarted(sessionId, attempt, why)]);
      return;
    }
    const wasInterrupted = found.do === 'finalizeDead' && found.wasInterrupted;
    this.#adopted.set(attempt.id, { stopBegun: wasInterrupted || attempt.stopping !== undefined });
    const worker = this.#newWorker(sessionId, hosted, found.do === 'adopt' ? found.silentMs : 0);
    if (found.do === 'adopt') {
      const { stopping } = runningAttempt(this.#writer.state, sessionId);
      worker.adopt(found.process, stopping, found.signalled);
      // An earlier runner may have died during a freeze.
      worker.halt(false);
    } else {
      void worker.finalizeDead(attempt.stopping ?? (wasInterrupted ? 'signal' : undefined), found.signalled);
    }
  }

  /** Restarts an attempt that has cost nothing. */
  #restartAttempt(sessionId: SessionId, { id, number, kind, reservedUsd }: Attempt): void {
    const offset = terminatePartialLine(this.#world, sessionPaths(this.#writer.paths, sessionId));
    const attempt = { id, number, kind, offset, ...defined({ reservedUsd }) };
    this.#recordAndAct([{ type: 'session_starting', sessionId, attempt }]);
  }

  get live(): ReadonlyMap<SessionId, LiveSession> {
    return this.#board.live;
  }
}
