/** Entries of a process table, and the parser of /proc/PID/stat. */

export interface ProcEntry {
  readonly pid: number;
  readonly parent: number;
  /** The session; on macOS the process group, because ps(1) prints no sessions there. */
  readonly session: number;
  /** In the system's unit, as text; together with the pid it identifies a process uniquely. */
  readonly startTime: string;
  /** Ended, but not yet reaped by its parent. */
  readonly zombie: boolean;
  /** Halted by a signal, such as that of Ctrl-Z. */
  readonly halted?: true;
}

/** All methods tolerate processes that end, or cannot be read, during the call. */
export interface ProcTable {
  /** Entries of the given processes that exist. */
  find(pids: readonly number[]): ProcEntry[];
  all(): ProcEntry[];
  /**
   * Children of all threads of a process, including zombies. Null without a list of children, or when the process has
   * ended.
   */
  children(pid: number): number[] | null;
  /** Pids of processes whose environment has exactly `name=value`, as far as it is readable. */
  marked(name: string, value: string): number[];
  /** Values of all variables of that name in the process's initial environment. */
  valuesOf(pid: number, name: string): string[];
  /** Changes with every boot of the machine. */
  bootId(): string;
}

/**
 * Parses one line of /proc/PID/stat, see proc_pid_stat(5). The second field is the program's name in parentheses, which
 * may contain spaces and parentheses, so fields are counted from the last closing one.
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
