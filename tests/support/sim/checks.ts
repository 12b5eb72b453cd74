/**
 * The promises, checked from outside: against the machine's books and the log as any process can read it, after every
 * step and whenever the program acts.
 */
import { dirname } from 'node:path';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { groupPathsIn, sessionPaths } from '../../../src/store/paths.ts';
import { groupMeta, renderMeta, sessionMeta } from '../../../src/store/snapshots.ts';
import { AcceptanceChecks } from './acceptance-checks.ts';
import { AskingChecks } from './asking-checks.ts';
import type { ClaudeBook } from './books.ts';
import { EventChecks } from './event-checks.ts';
import { secret } from './group-setup.ts';
import type { GuestBook } from './person.ts';
import { dearestMessageUsd } from './scenario.ts';
import { SpendingChecks } from './spending-checks.ts';
import { SupervisionChecks } from './supervision-checks.ts';
import { ToldChecks } from './told-checks.ts';
import type { VirtualMachine } from './virtual-machine.ts';
import type { VirtualProcess } from './virtual-processes.ts';
import type { VirtualRunner } from './virtual-runner.ts';

/** Names of the promises in reports. */
export const invariants = {
  slots: 'never more sessions than slots',
  dependencies: 'no start before its dependencies',
  once: 'an attempt works once',
  conversation: 'one process per conversation',
  money: 'the cap holds',
  totals: 'totals are right',
  remembered: 'what may have cost something is never forgotten',
  leftovers: 'no process is left over',
  fold: 'the log is the state',
  final: 'ends are final',
  completed: 'completed is completed',
  loggedFirst: 'logged before acted',
  reasons: 'every end has a reason',
  liveness: 'no wait is endless',
  writer: 'one writer',
  exceptions: 'nothing throws',
  gate: 'nothing starts before a limit is lifted',
  firstAlone: 'after a limit one goes first',
  tries: 'transient failures are tried again as agreed',
  busy: 'a busy session is not stalled',
  stalledOnce: 'a stall is interrupted once',
  frozen: 'frozen is frozen',
  thaw: 'a freeze ends',
  drain: 'a pausing group starts nothing',
  warnOnly: 'a warning passes no cap',
  rests: 'who is to rest rests',
  ceiling: 'no session is retried for ever',
  judged: 'the command is the judge',
  paidOnce: 'a turn is counted once',
  noTurn: 'claude rests while its work is judged',
  oneJudge: 'no command is left over',
  commandSlots: 'never more commands than command slots',
  stopLogged: 'no worker is ended without a log entry',
  task: 'claude knows its task',
  said: 'what was said is not lost',
  snapshots: 'meta.json is the fold of the log',
  secrets: 'nothing secret is told',
  bugs: 'no bug ends a session',
  folds: 'the log folds',
  threshold: 'after too many failures nothing starts',
  budgetStop: 'a used up budget ends the run',
  warned: 'the budget is warned of once',
} as const;

/** With no live claude and no pending answer, a runner must have ended after this time, virtual milliseconds. */
const patienceMs = 120_000;
const cent = 1e-7;
/** How language exceptions and unexpected values look in a sentence. */
const bugMarks = /TypeError|ReferenceError|RangeError|undefined|is not a function|\[object |\bNaN\b/;

export class SimulationChecks {
  readonly #machine: VirtualMachine;
  readonly #events: EventChecks;
  readonly supervision: SupervisionChecks;
  readonly acceptance: AcceptanceChecks;
  readonly told: ToldChecks;
  readonly asking: AskingChecks;
  readonly #spending: SpendingChecks;
  /** The state inside each live runner. */
  readonly #inner = new Map<VirtualRunner, GroupState>();
  #busyAtMs = 0;
  #chargedUsd = 0;

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
    this.#events = new EventChecks(machine);
    this.supervision = new SupervisionChecks(machine);
    this.acceptance = new AcceptanceChecks(machine);
    this.told = new ToldChecks(machine);
    this.asking = new AskingChecks(machine);
    this.#spending = new SpendingChecks(machine);
  }

  /** The state that a runner reduces for itself. */
  knows(runner: VirtualRunner, state: GroupState): void {
    this.#inner.set(runner, state);
  }

  /** A claude process was started. */
  spawned(book: ClaudeBook): void {
    const { log, claudes } = this.#machine;
    log.catchUp();
    this.acceptance.spawned(book);
    const session = log.state?.sessions.get(book.sessionId)?.state;
    const isLogged = session?.status === 'running' && session.attempt.id === book.attemptId && log.isDurable;
    if (!isLogged)
      this.#violate(invariants.loggedFirst, `${book.process.name} starts, and no durable session_starting says so`);
    for (const { process, sessionId } of this.#machine.guests) {
      if (sessionId === book.sessionId && process.alive)
        this.#violate(invariants.conversation, `${book.process.name} starts while a person is in ${process.name}`);
    }
    for (const other of claudes) {
      if (other === book) continue;
      if (other.claudeSessionId === book.claudeSessionId && other.process.alive) {
        this.#violate(
          invariants.conversation,
          `${book.process.name} starts while ${other.process.name} is in the same conversation`,
        );
      }
      if (other.attemptId === book.attemptId && (other.chargedUsd > 0 || other.hasSpoken)) {
        this.#violate(
          invariants.once,
          `${book.process.name} starts the attempt that ${other.process.name} has worked on`,
        );
      }
    }
  }

  /** claude was opened for a user. */
  letIn(guest: GuestBook): void {
    const { log, claudes, guests } = this.#machine;
    log.catchUp();
    const { takenOver } = log.state?.sessions.get(guest.sessionId) ?? {};
    if (takenOver?.id !== guest.attachmentId || takenOver.openedAt === undefined)
      this.#violate(invariants.loggedFirst, `${guest.process.name} opens, and no session_attached says so`);
    const others = [...claudes, ...guests].filter((other) => other !== guest && other.sessionId === guest.sessionId);
    for (const { process } of others.filter((other) => other.process.alive))
      this.#violate(invariants.conversation, `${guest.process.name} opens while ${process.name} is in the session`);
  }

  /** A claude read its prompt. */
  began(book: ClaudeBook): void {
    const twin = this.#machine
      .livingClaudes()
      .find((other) => other !== book && other.attemptId === book.attemptId && other.begun);
    if (twin) this.#violate(invariants.once, `${book.process.name} and ${twin.process.name} work on one attempt`);
  }

  /** A line is written to a session's FIFO; its attempt id. */
  writesToClaude(fifo: string, line: string): string {
    const { log } = this.#machine;
    const book = this.#machine.livingClaudes().find(({ transcript }) => dirname(transcript) === dirname(fifo));
    if (book === undefined) return '';
    log.catchUp();
    const session = log.state?.sessions.get(book.sessionId)?.state;
    const attempt =
      session?.status === 'running' && session.attempt.id === book.attemptId ? session.attempt : undefined;
    const isPrompt = line.startsWith('{"type":"user"');
    if (isPrompt && (attempt?.process?.pid !== book.process.identity.pid || !log.isDurable)) {
      this.#violate(invariants.loggedFirst, `${book.process.name} gets its prompt before its process is on record`);
    }
    if (line.includes('"interrupt"') && (attempt?.stopping === undefined || !log.isDurable)) {
      this.#violate(
        invariants.loggedFirst,
        `${book.process.name} is interrupted, and no durable session_stopping says so`,
      );
    }
    return book.attemptId;
  }

  /** A runner asks a process to end. */
  ends(runner: VirtualRunner, identity: ProcessIdentity): void {
    const { claudes, log, table } = this.#machine;
    const process = table.find(identity);
    const book = claudes.find((other) => other.process === process);
    // A claude that has answered is not stopped again, and a repeated stop is allowed.
    if (process === null || book === undefined || book.hasConcluded || process.toldToEndBy === runner.process) return;
    log.catchUp();
    const session = log.state?.sessions.get(book.sessionId)?.state;
    const attempt =
      session?.status === 'running' && session.attempt.id === book.attemptId ? session.attempt : undefined;
    if (!book.hasSpoken || (attempt?.stopping !== undefined && log.isDurable)) return;
    this.#violate(invariants.stopLogged, `${process.name} is ended, and no durable session_stopping says so`);
  }

  /** `text` leaves the program: in a command line, a file, a pipe or on a screen. */
  tells(where: string, text: string): void {
    if (text.includes(secret)) this.#violate(invariants.secrets, `${where} shows what is secret`);
  }

  /** Users see `text`, which must not look like a bug. */
  says(where: string, text: string): void {
    this.tells(where, text);
    if (bugMarks.test(text)) this.#violate(invariants.bugs, `${where} says: ${text}`);
  }

  /** A process writes the log. */
  appends(runner: VirtualRunner): void {
    const { locks, log } = this.#machine;
    const owner = locks.get(`${dirname(log.path)}/runner.lock`)?.owner;
    if (owner !== runner.process) this.#violate(invariants.writer, `${runner.process.name} writes without the lock`);
  }

  attached(_runner: VirtualRunner, _process: VirtualProcess): void {
    this.#machine.coverage.note('adopted');
  }

  /** A runner recorded the process as a worker's, so it must end it. */
  gathered(runner: VirtualRunner, process: VirtualProcess): void {
    process.gatheredBy = runner.process;
  }

  /** Everything that must hold whenever the machine is idle. */
  step(): void {
    const { log } = this.#machine;
    log.catchUp();
    const fresh = log.takeNew();
    if (fresh.length > 0) {
      this.#busyAtMs = this.#machine.timeline.nowMs;
      const isReplay = log.takeReplay();
      this.#events.take(fresh, isReplay);
      this.supervision.take(fresh, isReplay);
      this.acceptance.take(fresh, isReplay);
      this.told.take(fresh, isReplay);
      this.#spending.take(fresh, isReplay);
      this.#checkSlots();
      this.#checkFold();
    }
    this.supervision.step();
    this.acceptance.step();
    this.#checkMoney();
    this.#checkLiveness();
  }

  /** A run ended by itself. A leaving runner may still be reaping; its exit ends that. */
  ended(runner: VirtualRunner): void {
    this.#inner.delete(runner);
    const { timers, name } = runner.process;
    if (timers > 0) this.#violate(invariants.liveness, `${timers} timers of ${name} are still set after its end`);
    if (runner.metNoFault) this.#checkSnapshots();
  }

  #checkSnapshots(): void {
    const { disk, log } = this.#machine;
    log.catchUp();
    const { state } = log;
    if (state === null) return;
    const paths = groupPathsIn(dirname(log.path));
    const metas = [[paths.meta, renderMeta(groupMeta(state))]];
    for (const [id, record] of state.sessions)
      metas.push([sessionPaths(paths, id).meta, renderMeta(sessionMeta(record))]);
    for (const [path = '', text] of metas) {
      if (disk.file(path)?.text() === text) continue;
      this.#violate(invariants.snapshots, `${path} differs from what the log says`);
    }
  }

  /** The group is settled and its runner gone. */
  settled(): void {
    this.step();
    const { table, log } = this.#machine;
    for (const process of table.living.values()) {
      if (process.kind === 'runner' || this.#events.isExcused(process)) continue;
      // An attached session stays attached when the run ends.
      const guest = this.#machine.guests.find((other) => other.process === process);
      if (guest !== undefined && guest.recordedUsd === null) continue;
      if (process.kind === 'command')
        this.#violate(invariants.oneJudge, `${process.name} lives although the group is ${log.state?.status}`);
      this.#violate(invariants.leftovers, `${process.name} lives although the group is ${log.state?.status}`);
    }
  }

  #violate(invariant: string, message: string): void {
    this.#machine.violate(invariant, message);
  }

  #checkSlots(): void {
    const { state } = this.#machine.log;
    if (state === null) return;
    const slots = state.group.config.maxConcurrentSessions;
    const living = this.#machine.livingClaudes().length;
    if (state.running.size > slots)
      this.#violate(invariants.slots, `${state.running.size} sessions run in ${slots} slots`);
    if (living > slots) this.#violate(invariants.slots, `${living} claudes live for ${slots} slots`);
  }

  #checkFold(): void {
    const outer = this.#machine.log.state;
    for (const [runner, inner] of this.#inner) {
      if (!runner.alive) this.#inner.delete(runner);
      else if (outer !== null && inner.lastSeq > 0 && !Bun.deepEquals(outer, inner)) {
        this.#violate(
          invariants.fold,
          `${runner.process.name} is at event ${inner.lastSeq}, the log at ${outer.lastSeq}, and they differ`,
        );
      }
    }
  }

  #checkMoney(): void {
    const { log, guests } = this.#machine;
    const claudes = [...this.#machine.claudes, ...guests];
    const config = log.state?.group.config;
    let chargedUsd = 0;
    for (const book of claudes) chargedUsd += book.chargedUsd;
    if (chargedUsd === this.#chargedUsd || config === undefined) return;
    this.#chargedUsd = chargedUsd;
    this.#busyAtMs = this.#machine.timeline.nowMs;
    const { maxBudgetUsd, onBudgetExceeded, maxConcurrentSessions } = config;
    if (maxBudgetUsd === undefined || onBudgetExceeded === 'warn') return;
    let unknownUsd = 0;
    for (const book of claudes) unknownUsd += Math.max(0, book.chargedUsd - (book.recordedUsd ?? book.chargedUsd));
    // An attached session, too, is stopped after the message that exceeds its cap.
    const most = maxBudgetUsd + dearestMessageUsd * (maxConcurrentSessions + guests.length) + unknownUsd + cent;
    if (chargedUsd > most) {
      this.#violate(invariants.money, `$${chargedUsd.toFixed(4)} were spent; at most $${most.toFixed(4)} may be`);
    }
  }

  /** A wait with a known end; a limit without a reported end, or after a clock jump, may take longer. */
  #isWaiting(): boolean {
    const { timeline, log, isMemoryShort, trouble } = this.#machine;
    const waits = log.waits(timeline.wall() - patienceMs);
    return isMemoryShort || trouble.low || trouble.full || waits.length > 0;
  }

  #checkLiveness(): void {
    const { timeline, log, runners } = this.#machine;
    const isRunning = log.state?.status === 'running' && [...this.#inner.keys()].some(({ alive }) => alive);
    const isBusy = [...this.#machine.livingClaudes(), ...this.#machine.guests].some(({ process }) => process.alive);
    if (!isRunning || runners.length === 0 || isBusy) this.#busyAtMs = timeline.nowMs;
    if (timeline.nowMs - this.#busyAtMs > patienceMs && !this.#isWaiting()) {
      this.#violate(invariants.liveness, `nothing has happened for ${patienceMs / 1_000} s, and no claude lives`);
    }
  }
}
