/**
 * The promises of acceptance, checked by separate tables: which command accepts the work, that its turn is paid for
 * once and not repeated, and that no command survives.
 */
import type { GroupEvent } from '../../../src/core/event.ts';
import { defaultAcceptRetries, defaultCommandTimeoutMs, type SessionDefinition } from '../../../src/core/group.ts';
import type { ClaudeBook, CommandBook } from './books.ts';
import { invariants } from './checks.ts';
import { cores } from './scenario.ts';
import type { VirtualMachine } from './virtual-machine.ts';

interface Standing {
  definition: SessionDefinition;
  /** When claude's last good answer began to wait for acceptance, virtual milliseconds; null while none waits. */
  waitsSinceMs: number | null;
  running: boolean;
  rejections: number;
}

interface Cost {
  readonly sessionId: string;
  readonly usd: number;
  /** The attempt is over. */
  readonly isEnd: boolean;
}

type Accepting = Extract<GroupEvent, { type: 'session_accepting' }>;
type Ended = Extract<GroupEvent, { type: 'session_completed' | 'session_failed' | 'session_paused' }>;

/** Sums of money differ in the last digits. */
const sameUsd = 1e-9;
/** Time is counted in steps of a second, and a step during a halt may count or not. */
const stepsMs = 2_000;

export class AcceptanceChecks {
  readonly #machine: VirtualMachine;
  readonly #sessions = new Map<string, Standing>();
  /** The cost of each attempt, US dollars, and its session. */
  readonly #costs = new Map<string, Cost>();
  /** Attempts that only need acceptance, from the start or by now. */
  readonly #judgements = new Set<string>();
  /** Claudes started since the log was last read. */
  readonly #spawned: ClaudeBook[] = [];
  #isQuiet = false;
  /** The cost of an attempt has been logged. */
  #isCounted = false;

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  /** `isReplay`: the log's content was checked when it happened. */
  take(events: readonly GroupEvent[], isReplay: boolean): void {
    this.#isQuiet = isReplay;
    if (isReplay) {
      this.#sessions.clear();
      this.#costs.clear();
      this.#judgements.clear();
    }
    for (const event of events) this.#takeOne(event);
    this.#isQuiet = false;
    if (this.#isCounted) this.#checkSums();
    this.#isCounted = false;
  }

  /** A claude was started. */
  spawned(book: ClaudeBook): void {
    this.#spawned.push(book);
    this.#checkAlone(book.sessionId, book.process.name);
  }

  /** Everything that must hold whenever the machine is idle. */
  step(): void {
    if (this.#spawned.length === 0) return;
    for (const { attemptId, sessionId, process } of this.#spawned.splice(0)) {
      if (!this.#judgements.has(attemptId)) continue;
      this.#violate(invariants.noTurn, `${process.name} starts although the work of ${sessionId} waits to be judged`);
    }
  }

  /** A command was started. */
  commanded(book: CommandBook): void {
    const { log } = this.#machine;
    const { attemptId, sessionId, process } = book;
    log.catchUp();
    const session = log.state?.sessions.get(sessionId)?.state;
    const isMeant = session?.status === 'running' && session.attempt.id === attemptId;
    if (!isMeant || session.attempt.accepting === undefined || !log.isDurable)
      this.#violate(invariants.loggedFirst, `${process.name} starts, and no durable session_accepting says so`);
    this.#checkAlone(sessionId, process.name, book);
    this.#checkSlots(book);
  }

  /** Processes left by a killed runner are ended later, each by its own session. */
  #checkSlots({ runner, process }: CommandBook): void {
    const atOnce = this.#machine.scenario.config.commandsAtOnce ?? cores;
    const living = this.#machine.commands.filter((other) => other.runner === runner && other.process.alive);
    if (living.length <= atOnce) return;
    this.#violate(invariants.commandSlots, `${process.name} is one of ${living.length} commands in ${atOnce} slots`);
  }

  /** Two commands of a session would check each other's changes. */
  #checkAlone(sessionId: string, name: string, self?: CommandBook): void {
    for (const other of this.#machine.commands) {
      if (other === self || other.sessionId !== sessionId || !other.process.alive) continue;
      this.#violate(invariants.oneJudge, `${name} starts while ${other.process.name} lives`);
    }
  }

  #takeOne(event: GroupEvent): void {
    switch (event.type) {
      case 'session_added':
        this.#sessions.set(event.sessionId, {
          definition: event.session,
          waitsSinceMs: null,
          running: false,
          rejections: 0,
        });
        return;
      case 'group_resumed':
      case 'group_started': {
        const { only } = event.type === 'group_resumed' ? event : {};
        for (const [id, session] of this.#sessions) {
          if (!session.running && (only === undefined || only.includes(id))) session.rejections = 0;
        }
        return;
      }
      case 'session_removed':
        this.#sessions.delete(event.sessionId);
        return;
      default:
        if ('sessionId' in event && event.sessionId !== undefined) this.#takeSession(event, event.sessionId);
    }
  }

  #takeSession(event: GroupEvent, sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    switch (event.type) {
      case 'session_starting':
        session.running = true;
        if (session.waitsSinceMs !== null) this.#judgements.add(event.attempt.id);
        return;
      case 'session_queued':
        if (event.queued) session.rejections = 0;
        if (event.prompt !== undefined) session.waitsSinceMs = null;
        return;
      case 'session_message':
        // A further message needs another turn.
        if (!session.running) session.waitsSinceMs = null;
        return;
      case 'session_detached':
        if (this.#costs.has(event.attachmentId))
          this.#violate(invariants.paidOnce, `the visit ${event.attachmentId} is counted again`);
        this.#isCounted = true;
        this.#costs.set(event.attachmentId, { sessionId: event.sessionId, usd: event.usage.costUsd, isEnd: true });
        // A message from the attached user needs another turn, and the session resumes after the detach as requested.
        if (event.spoken) session.waitsSinceMs = null;
        session.rejections = 0;
        return;
      case 'session_accepting':
        this.#accepts(event, session);
        return;
      case 'session_completed':
      case 'session_failed':
      case 'session_paused':
        this.#ends(event, session);
        return;
    }
  }

  #accepts(event: Accepting, session: Standing): void {
    const { sessionId, attemptId, usage } = event;
    if (this.#costs.has(attemptId))
      this.#violate(invariants.paidOnce, `attempt ${attemptId} of ${sessionId} is counted again`);
    this.#isCounted = true;
    this.#costs.set(attemptId, { sessionId, usd: usage.costUsd, isEnd: false });
    session.waitsSinceMs = this.#machine.timeline.nowMs;
    this.#judgements.add(attemptId);
    const isLiving = this.#machine.livingClaudes().some((book) => book.sessionId === sessionId);
    if (isLiving) this.#violate(invariants.noTurn, `${sessionId} is judged while its claude lives`);
    this.#machine.coverage.note('accepting');
  }

  #ends(event: Ended, session: Standing): void {
    const { sessionId, attemptId, type, usage } = event;
    const before = this.#costs.get(attemptId);
    if (before?.isEnd || (before !== undefined && Math.abs(before.usd - usage.costUsd) > sameUsd))
      this.#violate(invariants.paidOnce, `attempt ${attemptId} of ${sessionId} ends with other costs than it had`);
    this.#isCounted = true;
    this.#costs.set(attemptId, { sessionId, usd: usage.costUsd, isEnd: true });
    session.running = false;
    if (session.definition.accept === undefined) return;
    if (type === 'session_completed') this.#checkAccepted(session, sessionId, attemptId);
    else if (event.reason === 'not-accepted') this.#checkRejected(event, session);
    if (type === 'session_completed' || event.reason === 'not-accepted') session.waitsSinceMs = null;
  }

  #checkAccepted({ waitsSinceMs }: Standing, sessionId: string, attemptId: string): void {
    if (this.#isQuiet) return;
    if (waitsSinceMs === null)
      this.#violate(invariants.judged, `${sessionId} is completed, and claude has not finished`);
    // A replay does not know the times.
    const judge = this.#judgeOf(attemptId);
    const said = judge?.status?.kind === 'exited' && judge.status.code === 0 && !judge.wasEnded;
    if (!said || judge.bornMs < (waitsSinceMs ?? 0))
      this.#violate(invariants.judged, `${sessionId} is completed without a success of its command`);
  }

  #checkRejected(event: Ended, session: Standing): void {
    const { definition } = session;
    const { sessionId, attemptId, type } = event;
    const most = definition.acceptRetries ?? defaultAcceptRetries;
    const isLast = session.rejections >= most;
    if ((type === 'session_failed') !== isLast)
      this.#violate(invariants.judged, `${type} after ${session.rejections} of ${most} further turns of ${sessionId}`);
    if (type === 'session_paused') session.rejections += 1;
    if (this.#isQuiet) return;
    const judge = this.#judgeOf(attemptId);
    const { acceptTimeoutMs = defaultCommandTimeoutMs } = definition;
    const haltedMs = judge?.haltedForMs ?? 0;
    const workedMs = this.#machine.timeline.nowMs - (judge?.bornMs ?? 0) - haltedMs;
    const isLate = workedMs >= acceptTimeoutMs - (haltedMs > 0 ? stepsMs : 1);
    const failed = judge?.status != null && !(judge.status.kind === 'exited' && judge.status.code === 0);
    if (!isLate && (judge?.wasEnded || !failed))
      this.#violate(invariants.judged, `${sessionId} is not accepted, and its command did not say so`);
  }

  /** The command of the attempt that was started last. */
  #judgeOf(attemptId: string) {
    return this.#machine.commands.findLast((book) => book.attemptId === attemptId)?.process;
  }

  /** Each attempt is counted once, in its session and in the group. */
  #checkSums(): void {
    const { state } = this.#machine.log;
    if (state === null) return;
    const bySession = new Map<string, number>();
    let sum = 0;
    for (const { sessionId, usd } of this.#costs.values()) {
      bySession.set(sessionId, (bySession.get(sessionId) ?? 0) + usd);
      sum += usd;
    }
    for (const [id, { usage }] of state.sessions) {
      if (Math.abs(usage.costUsd - (bySession.get(id) ?? 0)) > sameUsd)
        this.#violate(invariants.paidOnce, `${id} counts $${usage.costUsd}, its attempts $${bySession.get(id) ?? 0}`);
    }
    if (Math.abs(state.usage.costUsd - sum) > sameUsd)
      this.#violate(invariants.paidOnce, `the group counts $${state.usage.costUsd}, its attempts $${sum}`);
  }

  #violate(invariant: string, message: string): void {
    if (!this.#isQuiet) this.#machine.violate(invariant, message);
  }
}
