/**
 * Virtual time: one queue of all pending actions, in an order that the seed decides. Nothing waits; the driver takes
 * the next entry and time jumps to it.
 */
import type { Clock } from '../../../src/system/world.ts';
import type { Seeded } from './seeded.ts';

/** An owner of entries, which vanish with it: a runner, a claude, a tool. */
export interface Owner {
  readonly name: string;
  alive: boolean;
  /** Timers that are set and neither fired nor cancelled. */
  timers: number;
  /** Halted by SIGSTOP: its actions wait until it continues. */
  halted?: boolean;
}

interface Entry {
  atMs: number;
  readonly order: number;
  readonly label: string;
  readonly owner: Owner | null;
  readonly isTimer: boolean;
  action: (() => void) | null;
}

const longAgoMs = Date.UTC(2026, 0, 2, 3, 4, 5);

export class Timeline {
  /** Monotonic milliseconds since the simulation began. */
  nowMs = 0;
  /** Offset of the wall clock; changed by clock jumps. */
  wallOffsetMs = longAgoMs;
  readonly #heap: Entry[] = [];
  readonly #held = new Map<Owner, Entry[]>();
  #order = 0;

  /** The wall clock, whole milliseconds since 1970. */
  wall(): number {
    return Math.floor(this.nowMs + this.wallOffsetMs);
  }

  /** Runs `action` after the delay, unless its owner is gone by then. The returned function cancels it. */
  schedule(delayMs: number, label: string, owner: Owner | null, action: () => void, isTimer = false): () => void {
    const entry: Entry = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order, label, owner, isTimer, action };
    this.#order += 1;
    if (isTimer && owner) owner.timers += 1;
    this.#push(entry);
    return () => {
      if (entry.action && isTimer && owner) owner.timers -= 1;
      entry.action = null;
    };
  }

  /** A halted owner continues: actions that became due meanwhile run now. */
  goOn(owner: Owner): void {
    owner.halted = false;
    for (const entry of this.#held.get(owner) ?? []) {
      entry.atMs = this.nowMs;
      this.#push(entry);
    }
    this.#held.delete(owner);
  }

  /** Takes the next entry and moves time there; null when none is left. */
  next(): { readonly label: string; readonly action: () => void } | null {
    for (;;) {
      const entry = this.#pop();
      if (entry === undefined) return null;
      const { action, owner } = entry;
      if (action === null || (owner !== null && !owner.alive)) continue;
      if (owner?.halted) {
        this.#held.set(owner, [...(this.#held.get(owner) ?? []), entry]);
        continue;
      }
      entry.action = null;
      if (entry.isTimer && owner) owner.timers -= 1;
      if (entry.atMs > this.nowMs) this.nowMs = entry.atMs;
      return { label: owner === null ? entry.label : `${owner.name}: ${entry.label}`, action };
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let index = heap.push(entry) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!isBefore(entry, above)) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      const below = heap[child] as Entry;
      if (!isBefore(below, last)) break;
      heap[index] = below;
      index = child;
    }
    heap[index] = last;
    return top;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** The clock of one process. Timers are late: usually by little, by a lot on a busy machine. */
export function clockOf(timeline: Timeline, owner: Owner, luck: Seeded): Clock {
  return {
    now: () => timeline.wall(),
    after(delayMs, action) {
      if (!owner.alive) return () => {};
      return timeline.schedule(delayMs + luck.delay(2, 1_500), `timer ${delayMs} ms`, owner, action, true);
    },
  };
}
