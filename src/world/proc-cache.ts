/**
 * What was read of each process lately. Looking for the processes of one worker means looking at all processes of the
 * machine, and a hundred workers that end one after another would read the same thousand files again and again.
 */
import type { ProcEntry } from './proc-table.ts';

/** So long a pid is taken to name the same process: the system gives a number again only after all others. */
const trustMs = 1_000;

export interface Known {
  readonly entry: ProcEntry;
  /** Null for a process whose environment we may not see. */
  readonly environment: Buffer | null;
  readonly readAtMs: number;
}

/** How one process is read; null when it is gone. */
export type ReadEntry = (pid: number) => ProcEntry | null;
export type ReadEnvironment = (pid: number) => Buffer | null;

export class ProcCache {
  readonly #readEntry: ReadEntry;
  readonly #readEnvironment: ReadEnvironment;
  readonly #list: () => readonly number[];
  /** Questions that are asked without a pause in between are answered by one look at the machine. */
  #isCurrent = false;
  #known = new Map<number, Known>();

  /** `list` gives the pids of all processes. */
  constructor(list: () => readonly number[], readEntry: ReadEntry, readEnvironment: ReadEnvironment) {
    this.#list = list;
    this.#readEntry = readEntry;
    this.#readEnvironment = readEnvironment;
  }

  /** Whoever changes something, as by a signal, wants to see the machine as it is afterwards. */
  forget(): void {
    this.#isCurrent = false;
  }

  /**
   * All processes. Each one's place in the tree is as it is now: it changes only when the parent ends,
   * and then it is read again. State, session and environment may be a second old. So a process may be said to
   * live that has just ended, or to belong to a session it has just left, but none is missing: an environment is the
   * one that a process was started with or one before, and ours are started with their mark.
   */
  look(): Known[] {
    if (!this.#isCurrent) this.#lookAgain(performance.now());
    return [...this.#known.values()];
  }

  #lookAgain(now: number): void {
    const pids = this.#list();
    const present = new Set(pids);
    const known = new Map<number, Known>();
    for (const pid of pids) {
      const before = this.#known.get(pid);
      const isFresh = before !== undefined && now - before.readAtMs < trustMs;
      // The parent of what was started from outside a container is 0.
      const isInPlace = before?.entry.parent === 0 || present.has(before?.entry.parent ?? 0);
      const found = isFresh && isInPlace ? before : this.#read(pid, before, now);
      if (found !== null) known.set(pid, found);
    }
    this.#known = known;
    this.#isCurrent = true;
    queueMicrotask(() => this.forget());
  }

  #read(pid: number, before: Known | undefined, now: number): Known | null {
    const entry = this.#readEntry(pid);
    if (entry === null) return null;
    const environment = this.#readEnvironment(pid);
    // In the middle of an exec a process has none for a moment; the kernel's own never have one.
    const isSettled = environment === null || environment.length > 0 || before?.environment?.length === 0;
    return { entry, environment, readAtMs: isSettled ? now : Number.NEGATIVE_INFINITY };
  }
}
