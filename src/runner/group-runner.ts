/**
 * runner/: one run of one group. The loop drains one inbox: facts, events, log (fsync), reduce, decide, act. Events are
 * logged before they are reduced, and reduced before they are shown.
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
import { LogLost } from '../store/log-lost.ts';
import { sessionPaths } from '../store/paths.ts';
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
import { LocalAttempt } from '../worker/local-attempt.ts';
import { branchWarnings } from '../worker/prepare/workspace-preparer.ts';
import { terminatePartialLine } from '../worker/session-files.ts';
import { AttachmentWatch, leftEvents } from './attach/recover.ts';
import { assertLog, decisionEvents, endWorkers, runningAttempt } from './decision-events.ts';
import { Elsewhere, type OpenFleet } from './elsewhere.ts';
import { eventsOf, neverStarted, notStarted, overdueEvents } from './fact-events.ts';
import { freezeWorkers } from './freeze.ts';
import { deadlineEvents, parkingEvents } from './item-events.ts';
import { LiveBoard } from './live-board.ts';
import { answerRequests } from './request-answers.ts';
import { SchedulerInputs, type SurroundingsOptions } from './scheduler-inputs.ts';

/** How often requests, timeouts and the machine are checked, in any case. */
const tickMs = 500;

export interface GroupRunnerOptions extends SurroundingsOptions {
  readonly writer: GroupWriter;
  readonly run: RunInfo;
  readonly reporter: Reporter;
  readonly preparer: AttemptPreparer;
  readonly openFleet?: OpenFleet | null;
}

/** How a run ended for its process. */
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
  readonly #takeOvers: AttachmentWatch;
  readonly #adopted = new Map<string, { readonly stopBegun: boolean }>();
  readonly #board: LiveBoard;
  readonly #surroundings: SchedulerInputs;
  readonly #elsewhere: Elsewhere;
  readonly #noticed = new Set<string>();
  #inbox: Fact[] = [];
  #wake: (() => void) | null = null;
  #unwatch = () => {};
  #cancelTick = () => {};
  #waitTold: string | undefined;
  #leaving = false;
  #settled = false;
  #isDiskFull = false;
  /** All work is done, but remaining processes may still have to be ended. */
  #isOver = false;

  constructor(world: World, options: GroupRunnerOptions) {
    this.#world = world;
    this.#writer = options.writer;
    this.#run = options.run;
    this.#reporter = options.reporter;
    this.#preparer = options.preparer;
    const { writer, reporter, slots } = options;
    this.#slots = slots;
    const verdicts = (record: SessionRecord) => this.#surroundings.verdictOn(writer.state, record);
    const standing = () => this.#elsewhere.standing;
    this.#board = new LiveBoard(world, { writer, reporter, workers: this.#workers, slots, verdicts, standing });
    const needs = { ...options.preparer.forCommands, slots };
    const { paths } = writer;
    const elsewhere = (id: SessionId) => this.#elsewhere.runnerOf(id);
    this.#acceptances = new Acceptances(world, { paths, needs, elsewhere, enqueue: this.enqueue });
    this.#elsewhere = new Elsewhere(world, {
      ...defined({ openFleet: options.openFleet }),
      ...{ paths, workers: this.#workers, enqueue: this.enqueue, state: () => writer.state },
    });
    this.#takeOvers = new AttachmentWatch(world, options.writer, this.enqueue);
    this.#surroundings = new SchedulerInputs(world, options, this.#workers, this.#elsewhere.sight);
  }

  /** Puts a fact into the inbox and does nothing else, so it may be called from anywhere. */
  readonly enqueue = (fact: Fact): void => {
    if (fact.kind === 'activity') {
      this.#board.note(fact.sessionId);
      return;
    }
    this.#inbox.push(fact);
    this.#wake?.();
  };

  record(bodies: readonly EventBody[]): GroupEvent[] {
    return this.#tell(this.#writer.record(bodies));
  }

  #tell(events: GroupEvent[]): GroupEvent[] {
    if (events.length === 0) return events;
    for (const event of events) {
      this.#reporter.event(event, this.#writer.state, this.#board.live);
      this.#elsewhere.tell(event);
      if ('sessionId' in event && event.sessionId !== undefined) this.#board.forget(event.sessionId);
    }
    this.#writer.snapshot();
    this.#board.show();
    return events;
  }

  async run(): Promise<RunEnd> {
    try {
      this.#watchRequests();
      this.#elsewhere.begin();
      await this.#takeOverUnfinished();
      for (;;) {
        const next = this.#turnUnlessFull();
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
      if (this.#isDiskFull) this.#goOn();
      for (const { worker } of this.#workers.values()) worker.leave();
      this.#acceptances.leave();
      this.#board.close();
      await this.#elsewhere.close();
    }
  }

  /** What cannot be written to a full disk is retried once there is space. */
  #turnUnlessFull(): RunEnd | 'again' | 'rest' {
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
    // The next runner handles requests that arrive now. This one could neither carry them out nor undo them.
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
    const told = facts.filter((fact) => 'sessionId' in fact);
    let events: GroupEvent[];
    try {
      // The events of one drained inbox are on disk, by one fsync, before any is executed.
      events = this.#writer.record(this.#meaningOf(facts, told));
    } catch (error) {
      this.#inbox.unshift(...facts.filter(({ kind }) => kind !== 'tick'));
      throw error;
    }
    for (const event of this.#tell(events)) this.#act(event);
    for (const fact of told) this.#afterFact(fact);
    this.#recordAndAct(this.#surroundings.gateEvents(this.#writer.state));
  }

  #meaningOf(facts: readonly Fact[], told: readonly WorkerFact[]): EventBody[] {
    // A session's last activity is shown, and counted for the gate, before its end.
    if (facts.some((fact) => fact.kind === 'ended')) this.#board.showNow();
    this.#surroundings.noteLimits(this.#writer.state, facts);
    this.#elsewhere.noteLogins(facts);
    this.#surroundings.trackOutage(this.#writer.state, facts);
    const bodies: EventBody[] = this.#surroundings.gateEvents(this.#writer.state);
    const { clock, random } = this.#world;
    const { isUnserved } = this.#surroundings;
    const { isRefusedHere } = this.#elsewhere;
    const [nowMs, jitter] = [clock.now(), random.fraction()];
    const context = { adopted: this.#adopted, nowMs, jitter, isUnserved, isRefusedHere };
    for (const fact of facts) {
      if (fact.kind === 'signal') this.#onSignal(fact.signal, bodies);
      else if (fact.kind === 'tick') this.#onTick();
      else if (fact.kind === 'left-by-person') bodies.push(...leftEvents(this.#writer.state, fact.event));
    }
    return [...bodies, ...told.flatMap((fact) => eventsOf(this.#writer.state, fact, context))];
  }

  #afterFact(fact: WorkerFact): void {
    const active = this.#workers.get(fact.sessionId);
    if (!active) return;
    if (fact.kind === 'asked') this.#answerItem(fact.sessionId, itemId(fact.attemptId, fact.request));
    if (fact.kind === 'spawned') {
      // It was on its way when everything was halted.
      if (this.#writer.state.frozenUntil !== undefined) this.#halt();
      active.worker.sendPrompt();
    }
    if (fact.kind !== 'ended') return;
    this.#workers.delete(fact.sessionId);
    this.#board.live.delete(fact.sessionId);
    this.#acceptances.begin(this.#writer.state, fact.sessionId);
  }

  /** Also items answered before this runner had the worker. */
  #answerItem(sessionId: SessionId, itemId: string): void {
    const item = this.#writer.state.sessions.get(sessionId)?.items?.find(({ id }) => id === itemId);
    if (item !== undefined) this.#workers.get(sessionId)?.worker.answer(item);
  }

  /** First Ctrl-C or SIGTERM: pause all. Second: leave, workers go on. SIGHUP: leave at once. */
  #onSignal(signal: RunnerSignal, bodies: EventBody[]): void {
    const { pausing, draining, frozenUntil } = this.#writer.state;
    // Halted processes could neither receive the pause nor continue without a runner.
    if (frozenUntil !== undefined) bodies.push({ type: 'group_thawed' });
    const isPausing = (pausing !== undefined && !draining) || bodies.some((body) => body.type === 'group_pausing');
    if (signal === 'SIGHUP' || isPausing) this.#leaving = true;
    else bodies.push({ type: 'group_pausing', reason: 'signal' });
  }

  #onTick(): void {
    assertLog(this.#writer);
    this.#takeOvers.look();
    const { state } = this.#writer;
    for (const message of this.#elsewhere.newLacks()) this.#reporter.warning?.(message, state);
    const bodies: EventBody[] = [];
    if (state.frozenUntil !== undefined) {
      if (this.#world.clock.now() >= Date.parse(state.frozenUntil)) {
        bodies.push({ type: 'group_thawed' }, { type: 'group_pausing', reason: 'user' });
      } else this.#halt();
    } else if (!this.#isHaltedByDisk()) {
      bodies.push(...deadlineEvents(state, this.#world.clock.now()));
      this.#surroundings.tick(tickMs);
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

  /** While the disk is full sessions get no requests, because their answers could not be written. */
  #isHaltedByDisk(): boolean {
    const isFull = this.#writer.state.running.size > 0 && this.#surroundings.isDiskFull;
    if (isFull) this.#haltOnFullDisk();
    else if (this.#isDiskFull) this.#goOn();
    this.#isDiskFull = isFull;
    return isFull;
  }

  #haltOnFullDisk(): void {
    for (const { worker } of this.#workers.values()) worker.haltOnFullDisk();
    this.#acceptances.halt(true);
    const { paths, state } = this.#writer;
    const message = `The disk of ${paths.folder} is full. What runs is halted until there is room again.`;
    if (!this.#isDiskFull) this.#reporter.warning?.(message, state);
    this.#isDiskFull = true;
  }

  #goOn(): void {
    for (const { worker } of this.#workers.values()) worker.halt(false);
    this.#acceptances.halt(false);
  }

  /** Repeated at every tick, because a process may have started while the others were halted. */
  #halt(): void {
    freezeWorkers(this.#writer.state, this.#workers);
    this.#acceptances.halt(true);
  }

  #decideAndAct(): boolean {
    const decisions = this.#surroundings.decisions(this.#writer.state);
    this.#tellWait(decisions);
    this.#isOver = decisions.some((decision) => decision.do === 'settle');
    // Requests whose hint has not arrived yet are answered now, because no later step would handle them.
    if (this.#isOver && this.#handleRequests()) return true;
    this.#settled = this.#isOver;
    this.#recordAndAct(decisionEvents(this.#world, this.#writer.paths, this.#writer.state, decisions));
    this.#elsewhere.want(decisions);
    return decisions.some((decision) => decision.do !== 'wait' && decision.do !== 'wish');
  }

  #tellWait(decisions: readonly Decision[]): void {
    const wait = decisions.find((decision) => decision.do === 'wait');
    if (wait !== undefined && wait.reason !== this.#waitTold) {
      this.#reporter.waiting(wait.reason, wait.message, this.#writer.state);
    }
    // A start in between, such as the first session after a limit, does not make the wait a new one.
    if (wait !== undefined || !decisions.some((decision) => decision.do === 'start')) this.#waitTold = wait?.reason;
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
        // Halted processes could not receive it.
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
        // While it runs only the model can change.
        if (event.session.model !== undefined) {
          this.#workers.get(event.sessionId)?.worker.changeModel(event.session.model);
        }
        return;
      case 'group_frozen':
        this.#halt();
        return;
      case 'group_thawed':
        this.#goOn();
        return;
    }
  }

  readonly #hosted = (sessionId: SessionId, attemptId: string): HostedAttempt => {
    const session = this.#writer.state.sessions.get(sessionId)?.state;
    const attempt = session?.status === 'running' && session.attempt.id === attemptId ? session.attempt : undefined;
    if (attempt?.place !== undefined) return this.#elsewhere.attempt(sessionId, attempt, attempt.place);
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
      this.#elsewhere.noteWorkspace(attempt.id, workspace);
      this.enqueue({ kind: 'isolated', sessionId, attemptId: attempt.id, workspace, notes });
    };
    const noticed = (warnings: readonly Warning[]) => {
      if (warnings.length > 0) this.enqueue({ kind: 'noticed', sessionId, attemptId: attempt.id, warnings });
    };
    const isElsewhere = attempt.place !== undefined;
    const about = { state, record, attempt, isolated, noticed, isElsewhere };
    void worker.begin((onStop) => this.#preparer.prepare({ ...about, onStop }));
  }

  async #takeOverUnfinished(): Promise<void> {
    const { state } = this.#writer;
    const isElsewhere = (id: SessionId): boolean => runningAttempt(state, id).place !== undefined;
    const running = [...state.running];
    // Remote sessions first, without a pause: a host ends the ones that this runner has not claimed in time.
    for (const sessionId of [...running.filter(isElsewhere), ...running.filter((id) => !isElsewhere(id))]) {
      const attempt = runningAttempt(state, sessionId);
      const { place } = attempt;
      const remote = place === undefined ? null : this.#elsewhere.attempt(sessionId, attempt, place, true);
      if (attempt.accepting !== undefined) {
        remote?.recallPlace();
        this.#acceptances.begin(this.#writer.state, sessionId, { isTakenOver: true });
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
      const why = isTaken ? 'a person takes it over' : this.#surroundings.isLimited ? 'a usage limit holds' : null;
      if (why === null) this.#startAgain(sessionId, attempt);
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

  /** Starts the same attempt again, which has cost nothing so far. */
  #startAgain(sessionId: SessionId, { id, number, kind, reservedUsd }: Attempt): void {
    const offset = terminatePartialLine(this.#world, sessionPaths(this.#writer.paths, sessionId));
    const attempt = { id, number, kind, offset, ...defined({ reservedUsd }) };
    this.#recordAndAct([{ type: 'session_starting', sessionId, attempt }]);
  }

  get live(): ReadonlyMap<SessionId, LiveSession> {
    return this.#board.live;
  }
}
