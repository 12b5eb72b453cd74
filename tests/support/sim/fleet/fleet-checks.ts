/** What holds among several hosts, checked from outside: by their processes, the engine and the log of the group. */
import type { GroupState } from '../../../../src/core/state.ts';
import { hostsKey } from '../../../../src/fleet/redis.ts';
import type { ClaudeBook } from '../books.ts';
import { LogWatch } from '../log-watch.ts';
import { dearestMessageUsd, heldMessageUsd } from '../scenario.ts';
import type { FleetMachine } from './fleet-machine.ts';
import type { FleetPlace } from './fleet-place.ts';
import { home } from './fleet-scenario.ts';

export const fleetPromises = {
  once: 'an attempt is started once',
  alone: 'no two of one session work at once',
  final: 'what is completed is not begun again',
  money: 'the cap holds among machines',
  books: 'the books are right when all is well again',
  settled: 'all comes to its end',
  leftovers: 'nothing is left on any host',
  engine: 'nothing is left in the engine',
  bounded: 'what lies in the engine is bounded',
  work: 'what a completed session has made is here',
  exceptions: 'nothing throws',
} as const;

/** A host ends a process within this time: a check, SIGTERM, SIGKILL. */
const ladderMs = 16_000;
const bytesMax = 4_000_000;
const cent = 1e-6;
/** A message may be in transit for this long. */
const onItsWayMs = 4_000;

interface Seen {
  readonly book: ClaudeBook;
  readonly machine: FleetMachine;
  readonly lines: string[];
}

export class FleetChecks {
  readonly #place: FleetPlace;
  readonly #machines: ReadonlyMap<string, FleetMachine>;
  readonly #seen: Seen[] = [];
  readonly #completed = new Set<string>();
  /** By attempt: its logged cost, and the held part of it. */
  readonly #costs = new Map<string, { readonly usd: number; readonly heldUsd: number }>();
  readonly #wokeMs = new Map<FleetMachine, number>();
  /** An attempt has started since the budget was checked. */
  #hasReserved = false;
  readonly events = new Map<string, number>();

  readonly #log: LogWatch;

  constructor(place: FleetPlace, machines: ReadonlyMap<string, FleetMachine>) {
    this.#place = place;
    this.#machines = machines;
    const { disk, log } = this.#home;
    this.#log = new LogWatch(disk, log.path, ({ message }) => this.#violate('exceptions', message));
  }

  get #home(): FleetMachine {
    return this.#machines.get(home) as FleetMachine;
  }

  spawned(machine: FleetMachine, book: ClaudeBook): void {
    const twin = this.#seen.find(
      (other) =>
        other.book.attemptId === book.attemptId &&
        (machine !== this.#home || other.machine !== machine || other.book.begun),
    );
    if (twin !== undefined)
      this.#violate('once', `${book.process.name} begins the attempt of ${twin.book.process.name}`);
    this.#takeEvents();
    if (this.#completed.has(book.sessionId))
      this.#violate('final', `${book.process.name} begins although ${book.sessionId} is completed`);
    this.#seen.push({ book, machine, lines: [] });
    this.#checkAlone(book.sessionId);
  }

  worked(book: ClaudeBook, line: string): void {
    this.#seen.find((one) => one.book === book)?.lines.push(line);
    this.#checkAlone(book.sessionId);
  }

  woke(machine: FleetMachine): void {
    this.#wokeMs.set(machine, this.#place.timeline.nowMs);
  }

  /** A sleeping host does nothing; one that has just woken is being ended, and may finish its message. */
  #checkAlone(sessionId: string): void {
    const living = this.#seen.filter(({ book, machine }) => {
      if (book.sessionId !== sessionId || !book.process.alive || machine.isSuspended) return false;
      return this.#place.timeline.nowMs - (this.#wokeMs.get(machine) ?? Number.NEGATIVE_INFINITY) > ladderMs;
    });
    if (living.length < 2) return;
    this.#violate('alone', living.map(({ book }) => book.process.name).join(' and '));
  }

  step(): void {
    this.#home.checks.step();
    this.#takeEvents();
    this.#checkMoney();
    if (this.#place.engine.usedBytes > bytesMax)
      this.#violate('bounded', `${this.#place.engine.usedBytes} bytes lie in the engine`);
  }

  #takeEvents(): void {
    this.#log.catchUp();
    for (const event of this.#log.takeNew()) {
      this.events.set(event.type, (this.events.get(event.type) ?? 0) + 1);
      switch (event.type) {
        case 'session_starting':
          this.#hasReserved = true;
          break;
        case 'session_accepting':
        case 'session_failed':
        case 'session_paused':
        case 'session_completed':
        case 'session_booked':
          this.#costs.set(event.attemptId, { usd: event.usage.costUsd, heldUsd: event.usage.heldUsd ?? 0 });
          if (event.type === 'session_completed') this.#checkCompleted(event.sessionId, event.attemptId);
          break;
        default:
      }
    }
  }

  /** All work of the last attempt is on the session's branch here. */
  #checkCompleted(sessionId: string, attemptId: string): void {
    this.#completed.add(sessionId);
    const lines = this.#seen.filter(({ book }) => book.attemptId === attemptId).flatMap((one) => one.lines);
    const number = sessionId.slice(0, 3);
    const ref = this.#home.git
      .refsOf('/projects/one')
      .find((name) => name.startsWith(`refs/heads/cca/simulated/${number}`));
    const text = ref === undefined ? '' : (this.#home.git.treeOf('/projects/one', ref)?.get('work.txt') ?? '');
    const missing = lines.find((line) => !text.includes(line));
    if (missing !== undefined) this.#violate('work', `${sessionId} is completed without "${missing.trim()}" on ${ref}`);
  }

  get state(): GroupState | null {
    return this.#log.state;
  }

  #checkMoney(): void {
    const { state } = this.#log;
    const { maxBudgetUsd } = state?.group.config ?? {};
    if (state == null || maxBudgetUsd === undefined) return;
    const count = this.#seen.filter(({ book }) => book.chargedUsd > 0).length;
    const charged = this.#seen.reduce((sum, { book }) => sum + book.chargedUsd, 0);
    // The cost of an attempt killed in the middle of an unreported message is unknown.
    const unknown = this.#seen.reduce((sum, { book }) => {
      const cost = this.#costs.get(book.attemptId);
      return sum + (cost === undefined ? 0 : Math.max(0, book.chargedUsd - cost.usd));
    }, 0);
    const open = this.#seen.filter(({ book }) => book.chargedUsd > 0 && !this.#costs.has(book.attemptId)).length;
    const recordedOver = Math.min(count, open + state.group.config.maxConcurrentSessions);
    const most = maxBudgetUsd + dearestMessageUsd * recordedOver + unknown + cent;
    if (charged > most) this.#violate('money', `$${charged} are spent, at most $${most} may be`);
    const bound = state.usage.costUsd + state.reservedUsd;
    // A kill may hold one message of unknown size more than was reserved; nothing starts with held money.
    const kills = this.#hasReserved ? 0 : [...this.#costs.values()].filter(({ heldUsd }) => heldUsd > 0).length;
    this.#hasReserved = false;
    const boundMost = maxBudgetUsd + dearestMessageUsd * count + heldMessageUsd * kills + cent;
    if (bound > boundMost) this.#violate('money', `$${bound} are spent, held and reserved of $${maxBudgetUsd}`);
  }

  /** All faults are over, the group is completed, and the hosts had time to clean up. */
  settled(): void {
    this.step();
    for (const machine of this.#machines.values()) {
      for (const process of machine.table.living.values()) {
        if (process.kind !== 'runner') this.#violate('leftovers', `${process.name} lives when all is over`);
      }
      const slots = machine.disk.find('/data/fleet/slots');
      const kept = slots?.kind === 'folder' ? slots.entries.size : 0;
      // Results kept for a runner that may have received them, or whose release the engine lost, take no slot.
      const { outOfReachSinceMs, engine } = this.#place;
      const isFree = (outOfReachSinceMs !== null || engine.hasForgotten) && this.#usedBy(machine) === 0;
      if (kept > 0 && !isFree && !this.isHeld)
        this.#violate('leftovers', `${kept} slots of ${machine.name} are in use when all is over`);
    }
    this.#checkEngine();
    for (const { book } of this.#seen) this.#checkBook(book);
  }

  /** Used slots by the host's own report. */
  #usedBy({ name }: FleetMachine): number {
    const { fields, open } = this.#place.engine;
    const told = open(`${hostsKey}/${name}`, fields.get(hostsKey)?.get(name) ?? new Uint8Array(0));
    return Number(/"used":(\d+)/.exec(told)?.[1]);
  }

  /** The cost of a lost attempt is unknown yet. */
  get isHeld(): boolean {
    return [...(this.#log.state?.sessions.values() ?? [])].some(({ lost }) => lost !== undefined);
  }

  #checkEngine(): void {
    const { streams, slots, hasForgotten } = this.#place.engine;
    // It may have lost a removal.
    if (this.isHeld || hasForgotten) return;
    for (const [name, entries] of streams) {
      // Messages to a group whose run is over, or that is unreachable, are kept for a while without a reader.
      const sinceMs = (this.#place.outOfReachSinceMs ?? this.#place.overSinceMs) - onItsWayMs;
      const isLate = name.startsWith('cca:g:') && entries.every(({ atMs }) => atMs > sinceMs);
      if (entries.length > 0 && !isLate)
        this.#violate('engine', `${entries.length} messages are left in ${name}: ${this.#place.engine.describe(name)}`);
    }
    for (const [token, { untilMs }] of slots) {
      // No process could release it; it is free when its lease ends.
      if (untilMs <= this.#place.timeline.nowMs || this.#place.wasRunnerKilled) continue;
      this.#violate('engine', `a slot is left, taken as ${token}`);
    }
  }

  #checkBook(book: ClaudeBook): void {
    // Its host has not reported its cost yet.
    const { lost } = this.state?.sessions.get(book.sessionId) ?? {};
    if (lost?.some(({ attempt }) => attempt.id === book.attemptId)) return;
    const cost = this.#costs.get(book.attemptId);
    if (book.chargedUsd === 0) return;
    if (cost === undefined) {
      this.#violate('books', `nothing is on record of ${book.process.name}, which cost $${book.chargedUsd}`);
      return;
    }
    const told = Math.max(book.toldUsd, book.begunUsd);
    if (cost.usd < told - cent)
      this.#violate('books', `${book.process.name} told of $${told}, on record are $${cost.usd}`);
    if (cost.usd - cost.heldUsd > book.chargedUsd + cent)
      this.#violate('books', `${book.process.name} was charged $${book.chargedUsd}, on record are $${cost.usd}`);
  }

  #violate(promise: keyof typeof fleetPromises, message: string): void {
    this.#place.violate(fleetPromises[promise], message);
  }
}
