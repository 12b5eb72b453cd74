/** What the system's process table says, behind one small interface: /proc on Linux, ps(1) elsewhere. */

export interface ProcEntry {
  readonly pid: number;
  readonly parent: number;
  /**
   * The session, or where the system does not tell it the process group: what a program that detaches its children
   * gives them of their own.
   */
  readonly session: number;
  /** In the system's own unit, as text; with the pid it names a process for good. */
  readonly startTime: string;
  /** What it executes: the first 15 bytes of the file's name; absent = nobody knows. */
  readonly name?: string;
  /** It has one thread; absent = nobody knows. */
  readonly isSingle?: boolean;
  /** Ended, but its parent has not asked for its status yet. */
  readonly zombie: boolean;
  /** Halted by a signal, such as that of Ctrl-Z. */
  readonly halted?: true;
}

/** A source of process facts. All methods tolerate processes that end or cannot be read while they look. */
export interface ProcTable {
  /** Entries of those of the given processes that exist. */
  find(pids: readonly number[]): ProcEntry[];
  /** All processes; one that ended within the last second may still be among them. */
  all(): ProcEntry[];
  /**
   * Its children at this moment, those included that have just ended; null when the system does not tell at once.
   * `first`: of its first thread alone, for a process that has no other.
   */
  children(pid: number, threads?: 'all' | 'first'): number[] | null;
  /** Pids of processes whose environment holds or held exactly `name=value`, as far as we may see it. */
  marked(name: string, value: string): number[];
  /** It is going to be asked for again and again: cheaper from now on, until the returned function is called. */
  keep(pid: number): () => void;
  /** To be told after anything that may have changed the processes: what was seen before it is not to be believed. */
  forget(): void;
  /** Changes with every boot of the machine. */
  bootId(): string;
}
