/** What a process table says of processes, and the parser of /proc/PID/stat. */

export interface ProcEntry {
  readonly pid: number;
  readonly parent: number;
  /** The session; on macOS the process group, because ps(1) prints no sessions there. */
  readonly session: number;
  /** In the system's own unit, as text; with the pid it names a process for good. */
  readonly startTime: string;
  /** Ended, but its parent has not waited for it yet. */
  readonly zombie: boolean;
  /** Halted by a signal, such as that of Ctrl-Z. */
  readonly halted?: true;
}

/** All methods tolerate processes that end, or cannot be read, during the call. */
export interface ProcTable {
  /** Entries of those of the given processes that exist. */
  find(pids: readonly number[]): ProcEntry[];
  all(): ProcEntry[];
  /**
   * Children of all threads of a process, zombies included. Null where the system has no list of children, or when the
   * process has ended.
   */
  children(pid: number): number[] | null;
  /** Pids of processes whose environment holds exactly `name=value`, as far as we may read it. */
  marked(name: string, value: string): number[];
  /** Values of all variables of that name in the environment that the process was started with. */
  valuesOf(pid: number, name: string): string[];
  /** Changes with every boot of the machine. */
  bootId(): string;
}

/**
 * Parses one line of /proc/PID/stat, see proc_pid_stat(5). The second field is the program's name in parentheses, which
 * may itself hold blanks and parentheses, so fields are counted from the last closing one.
 */
export function parseStat(text: string): ProcEntry | null {
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [state, parent, , session] = fields;
  const startTime = fields[19];
  const pid = Number.parseInt(text, 10);
  if (end === -1 || startTime === undefined || Number.isNaN(pid)) return null;
  const zombie = state === 'Z' || state === 'X' || state === 'x';
  const entry = { pid, parent: Number(parent), session: Number(session), startTime, zombie };
  return state === 'T' ? { ...entry, halted: true } : entry;
}
