/** Slots for checkouts, set-up and acceptance commands; the session with the longest dependent chain goes first. */
import type PQueue from 'p-queue';
import type { SessionId } from '../../core/group.ts';
import { heldMax, type SlotUse, type SlotWait } from '../../core/plan/command-slot.ts';

export interface CommandSlotsOptions {
  readonly atOnce: () => number;
  /** Number of sessions on the longest chain that waits for this one, including itself. */
  readonly chainOf: (id: SessionId) => number;
}

export interface SlotRequest extends SlotUse {
  /** Requests with the same name run one after another, however many slots are free. */
  readonly turn?: string;
  /** It needs its turn but no slot. */
  readonly isLight?: boolean;
  /** Receives a function that withdraws the command from the queue. After its start that has no effect. */
  readonly onStop: (withdraw: () => void) => void;
}

interface Waiting {
  readonly use: SlotUse;
  readonly withdraw: () => void;
}

export class CommandSlots {
  /** Contract: only enqueues. Called for every session whose wait starts, ends or changes. */
  onChange: (id: SessionId) => void = () => {};
  readonly #options: CommandSlotsOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #running = new Set<SlotUse>();
  readonly #turns = new Map<string, PQueue>();
  #slots: PQueue | null = null;
  #isClosed = false;

  constructor(options: CommandSlotsOptions) {
    this.#options = options;
  }

  /** Does the work once there is a slot. Null when it was withdrawn before it started. */
  async take<T>({ turn, isLight = false, onStop, ...use }: SlotRequest, work: () => Promise<T>): Promise<T | null> {
    const slots = this.#allSlots();
    slots.concurrency = this.#options.atOnce();
    const giveUp = new AbortController();
    // The queue's own abort would free the slot of a command that is asked to stop and still runs.
    const withdraw = () => {
      if (!this.#waiting.delete(waiting)) return;
      giveUp.abort();
      this.#tell(use.sessionId);
    };
    const waiting: Waiting = { use, withdraw };
    const inSlot = async (): Promise<T> => {
      this.#waiting.delete(waiting);
      if (!isLight) this.#running.add(use);
      this.#tell(use.sessionId);
      try {
        return await work();
      } finally {
        this.#running.delete(use);
        this.#tell(use.sessionId);
      }
    };
    const options = () => ({ priority: this.#options.chainOf(use.sessionId), signal: giveUp.signal });
    const askForSlot = () => (isLight ? inSlot() : slots.add(inSlot, options()));
    this.#waiting.add(waiting);
    this.#tell(use.sessionId);
    onStop(withdraw);
    if (this.#isClosed) withdraw();
    try {
      if (turn === undefined) return await askForSlot();
      return await this.#turnsOf(turn).add(askForSlot, options());
    } catch (error) {
      if (giveUp.signal.aborted) return null;
      throw error;
    }
  }

  waitOf(sessionId: SessionId): SlotWait | null {
    const waiting = this.#waitingOf(sessionId);
    if (waiting === undefined) return null;
    const heldBy = [...this.#running].slice(0, heldMax);
    return { command: waiting.use.command, atOnce: this.#options.atOnce(), heldBy };
  }

  isWaiting(sessionId: SessionId): boolean {
    return this.#waitingOf(sessionId) !== undefined;
  }

  halt(isHalted: boolean): void {
    if (isHalted) this.#allSlots().pause();
    else this.#allSlots().start();
  }

  /** For a runner that exits: nothing starts any more, and the next runner requests slots again. */
  close(): void {
    this.#isClosed = true;
    for (const { withdraw } of [...this.#waiting]) withdraw();
  }

  #waitingOf(sessionId: SessionId): Waiting | undefined {
    return [...this.#waiting].find(({ use }) => use.sessionId === sessionId);
  }

  /** A waiting session also gets the names of those that hold the slots. */
  #tell(sessionId: SessionId): void {
    for (const id of new Set([sessionId, ...[...this.#waiting].map(({ use }) => use.sessionId)])) {
      this.onChange(id);
    }
  }

  #allSlots(): PQueue {
    this.#slots ??= newQueue(this.#options.atOnce());
    return this.#slots;
  }

  #turnsOf(name: string): PQueue {
    const turns = this.#turns.get(name) ?? newQueue(1);
    this.#turns.set(name, turns);
    return turns;
  }
}

/** Loaded on first use: most runs have no such command. */
function newQueue(concurrency: number): PQueue {
  const { default: Queue }: typeof import('p-queue') = require('p-queue');
  return new Queue({ concurrency });
}
