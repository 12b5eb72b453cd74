/** Slots for checkouts, set-up and acceptance commands. The session with the longest chain of dependents goes first. */
import type PQueue from 'p-queue';
import type { SessionId } from '../../core/group.ts';
import { heldMax, type SlotUse, type SlotWait } from '../../core/plan/command-slot.ts';

export interface CommandSlotsOptions {
  readonly atOnce: () => number;
  /** Length of the longest chain of dependents, including the session itself. */
  readonly chainOf: (id: SessionId) => number;
}

export interface SlotRequest extends SlotUse {
  /** Requests with the same `turn` run one after another. */
  readonly turn?: string;
  /** Needs its turn but no slot. */
  readonly isLight?: boolean;
  /** Receives a function that withdraws the queued command. It has no effect after the start. */
  readonly onStop: (withdraw: () => void) => void;
}

interface Waiting {
  readonly use: SlotUse;
  readonly withdraw: () => void;
}

export class CommandSlots {
  /** Called for every session whose wait starts, ends or changes; must only enqueue. */
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

  /** Runs `work` in a slot; null when withdrawn before its start. */
  async take<T>({ turn, isLight = false, onStop, ...use }: SlotRequest, work: () => Promise<T>): Promise<T | null> {
    const slots = this.#allSlots();
    slots.concurrency = this.#options.atOnce();
    const withdrawal = new AbortController();
    // The queue's own abort would free the slot of a command that is still running.
    const withdraw = () => {
      if (!this.#waiting.delete(waiting)) return;
      withdrawal.abort();
      this.#notify(use.sessionId);
    };
    const waiting: Waiting = { use, withdraw };
    const inSlot = async (): Promise<T> => {
      this.#waiting.delete(waiting);
      if (!isLight) this.#running.add(use);
      this.#notify(use.sessionId);
      try {
        return await work();
      } finally {
        this.#running.delete(use);
        this.#notify(use.sessionId);
      }
    };
    const options = () => ({ priority: this.#options.chainOf(use.sessionId), signal: withdrawal.signal });
    const takeSlot = () => (isLight ? inSlot() : slots.add(inSlot, options()));
    this.#waiting.add(waiting);
    this.#notify(use.sessionId);
    onStop(withdraw);
    if (this.#isClosed) withdraw();
    try {
      if (turn === undefined) return await takeSlot();
      return await this.#turnsOf(turn).add(takeSlot, options());
    } catch (error) {
      if (withdrawal.signal.aborted) return null;
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

  /** For a runner that exits: nothing starts after this. */
  close(): void {
    this.#isClosed = true;
    for (const { withdraw } of [...this.#waiting]) withdraw();
  }

  #waitingOf(sessionId: SessionId): Waiting | undefined {
    return [...this.#waiting].find(({ use }) => use.sessionId === sessionId);
  }

  /** All waiting sessions are notified, because their view includes who holds the slots. */
  #notify(sessionId: SessionId): void {
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

/** Loaded on first use: most runs need no slots. */
function newQueue(concurrency: number): PQueue {
  const { default: Queue }: typeof import('p-queue') = require('p-queue');
  return new Queue({ concurrency });
}
