/**
 * What was read of each process lately. Looking for the processes of one worker means looking at all processes of the
 * machine, and a hundred workers that end one after another would read the same thousand files again and again.
 */
import type { ProcEntry } from './proc-table.ts';

/** So long a pid is taken to name the same process: the system gives a number again only after all others. */
const trustMs = 1_000;

export interface ProcReading {
  readonly entry: ProcEntry;
  /** Null for a process that has none, or whose environment we may not see. */
  readonly environment: Buffer | null;
}

interface Known extends ProcReading {
  readonly readAtMs: number;
}

export class ProcCache {
  readonly #list: () => readonly number[];
  readonly #read: (pid: number) => ProcReading | null;
  /** Questions that are asked without a pause in between are answered by one look at the machine. */
  #isCurrent = false;
  #known = new Map<number, Known>();

  /** `list` gives the pids of all processes, `read` one of them; null when it is gone. */
  constructor(list: () => readonly number[], read: (pid: number) => ProcReading | null) {
    this.#list = list;
    this.#read = read;
  }

  /** Whoever changes something, as by a signal, wants to see the machine as it is afterwards. */
  forget(): void {
    this.#isCurrent = false;
  }

  /**
   * All processes. Each one's place in the tree is as it is now: it changes only when the parent ends, and then it is
   * read again. State, session and environment may be a second old. So a process may be said to live that has just
   * ended, or to belong to a session it has just left, but none is missing: an environment is the one that a process
   * was started with or one before, and ours are started with their mark.
   */
  look(): readonly ProcReading[] {
    const pids = this.#isCurrent ? [...this.#known.keys()] : this.#list();
    const present = new Set(pids);
    const now = performance.now();
    const known = new Map<number, Known>();
    for (const pid of pids) {
      const before = this.#known.get(pid);
      const found = before !== undefined && isStillTrue(before, present, now) ? before : this.#readAt(pid, now);
      if (found !== null) known.set(pid, found);
    }
    this.#known = known;
    if (!this.#isCurrent) queueMicrotask(() => this.forget());
    this.#isCurrent = true;
    return [...known.values()];
  }

  #readAt(pid: number, readAtMs: number): Known | null {
    const found = this.#read(pid);
    return found === null ? null : { ...found, readAtMs };
  }
}

function isStillTrue({ entry, environment, readAtMs }: Known, present: ReadonlySet<number>, now: number): boolean {
  // In the middle of an exec a process has an empty one for a moment.
  if (environment?.length === 0) return false;
  // The parent of what was started from outside a container is 0.
  return now - readAtMs < trustMs && (entry.parent === 0 || present.has(entry.parent));
}
