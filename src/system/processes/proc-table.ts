/** The system's process table: /proc on Linux, ps(1) elsewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { errorText } from '../../core/failure.ts';
import { errorCode } from '../system-error.ts';

export function createProcTable(): ProcTable {
  return existsSync('/proc/self/stat') ? createLinuxTable('/proc') : createPsTable();
}

/** Threads start and end during a read. */
const childrenTries = 3;

/** `root` is `/proc`; tests pass their own folder. */
export function createLinuxTable(root: string): ProcTable {
  const stat = (pid: number) => read(`${root}/${pid}/stat`)?.toString('latin1') ?? '';
  const pids = () => readdirSync(root).filter(beginsWithDigit).map(Number);
  const valuesOf = (pid: number, name: string): string[] => {
    const environment = read(`${root}/${pid}/environ`);
    return environment === null ? [] : valuesIn(environment, `${name}=`);
  };
  const isMarked = (pid: number, name: string, value: string): boolean => {
    // Most have another environment, and nothing else is read of them.
    if (!valuesOf(pid, name).includes(value)) return false;
    const entry = parseStat(stat(pid));
    // The pid may have been reused meanwhile.
    return entry !== null && valuesOf(pid, name).includes(value);
  };
  return {
    // Most of the wanted processes have ended, and an exception for each would cost more than this.
    find: (wanted) => wanted.flatMap((pid) => (existsSync(`${root}/${pid}`) ? (parseStat(stat(pid)) ?? []) : [])),
    all: () => pids().flatMap((pid) => parseStat(stat(pid)) ?? []),
    children(pid) {
      const folder = `${root}/${pid}/task`;
      for (let tries = 0; tries < childrenTries; tries += 1) {
        try {
          // Each thread has the children it started; when it ends they move to another thread.
          return readdirSync(folder).flatMap((thread) =>
            numbers(readFileSync(`${folder}/${thread}/children`, 'latin1')),
          );
        } catch {
          // The process or one of its threads has just ended, or the kernel lacks these files.
        }
      }
      return null;
    },
    marked: (name, value) => pids().filter((pid) => isMarked(pid, name, value)),
    valuesOf,
    bootId: () => readFileSync(`${root}/sys/kernel/random/boot_id`, 'utf8').trim(),
  };
}

function beginsWithDigit(name: string): boolean {
  const code = name.charCodeAt(0);
  return code >= 48 && code <= 57;
}

function numbers(text: string): number[] {
  return text.split(' ').flatMap((word) => (word === '' ? [] : [Number(word)]));
}

/** Null for a process that has ended (ENOENT, ESRCH), or that is unreadable (EACCES, EPERM). */
function read(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(errorCode(error))) return null;
    throw error;
  }
}

/** `start` is `name=`; the environment is separated by NUL. */
function valuesIn(environment: Buffer, start: string): string[] {
  const values: string[] = [];
  for (let at = environment.indexOf(start); at !== -1; at = environment.indexOf(start, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue;
    const end = environment.indexOf(0, at);
    values.push(environment.toString('utf8', at + start.length, end === -1 ? environment.length : end));
  }
  return values;
}

/**
 * Descendants of the roots, members of the sessions that roots or descendants lead or joined, and the descendants of
 * those; without the roots and without `self`. An orphan has left the tree, but never its session.
 *
 * A session that a root was born into without leading it does not count: it belongs to whatever started the root, such
 * as the user's terminal. A root that is gone is taken to have led its own session.
 */
export function collectDescendants(entries: readonly ProcEntry[], roots: readonly number[], self: number): ProcEntry[] {
  const pids = new Set(roots);
  const present = new Map(entries.filter(({ pid }) => pids.has(pid)).map(({ pid, session }) => [pid, session]));
  const sessions = new Set(roots.filter((pid) => (present.get(pid) ?? pid) === pid));
  const foreign = new Set([...present.values()].filter((session) => !sessions.has(session)));
  const found = new Map<number, ProcEntry>();
  // Sessions lead to new parents, and parents to new sessions. Every round but the last adds a process.
  for (let grew = true; grew; ) {
    grew = false;
    for (const entry of entries) {
      if (pids.has(entry.pid) || entry.pid === self) continue;
      if (!pids.has(entry.parent) && !sessions.has(entry.session)) continue;
      found.set(entry.pid, entry);
      pids.add(entry.pid);
      if (!foreign.has(entry.session)) sessions.add(entry.session);
      grew = true;
    }
  }
  return [...found.values()].filter((entry) => !entry.zombie);
}

// The process table without /proc (macOS), from the output of ps(1).

/** Runs a system program and returns its output; '' when it found nothing. */
export type Ask = (program: string, args: readonly string[]) => string;

/**
 * The process group replaces the session: macOS prints 0 for every session, and a shell that starts children in their
 * own sessions also makes them leaders of groups with the same number.
 */
const columns = 'pid=,ppid=,pgid=,stat=,lstart=';

export function createPsTable(ask: Ask = askSystem): ProcTable {
  return {
    find: (pids) => (pids.length === 0 ? [] : parsePs(ask('ps', ['-o', columns, '-p', pids.join(',')]))),
    all: () => parsePs(ask('ps', ['-ax', '-o', columns])),
    marked: (name, value) => parseMarked(ask('ps', ['-axEww', '-o', 'pid=,command=']), `${name}=${value}`),
    children: () => null,
    valuesOf: () => [],
    bootId: () => ask('sysctl', ['-n', 'kern.bootsessionuuid']).trim(),
  };
}

/** Lines of `pid ppid group state start`, where the start is five words such as `Sun Nov  2 01:03:00 2025`. */
export function parsePs(text: string): ProcEntry[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*?)\s*$/.exec(line);
    if (match === null) return [];
    const [pid, parent, session] = match.slice(1, 4).map(Number) as [number, number, number];
    const [state, start] = match.slice(4) as [string, string];
    const startTime = start.replace(/\s+/g, ' ');
    const halted = state.startsWith('T') ? ({ halted: true } as const) : {};
    return [{ pid, parent, session, startTime, zombie: state.startsWith('Z'), ...halted }];
  });
}

/** Lines of a pid, the command and, as far as the system shows it, the environment, separated by spaces. */
export function parseMarked(text: string, mark: string): number[] {
  return text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s(.*)$/.exec(line);
    const isMarked = match !== null && ` ${match[2]} `.includes(` ${mark} `);
    return isMarked ? [Number(match[1])] : [];
  });
}

function askSystem(program: string, args: readonly string[]): string {
  try {
    // Start times are printed as local time in the user's language; both are fixed, or they would not compare.
    const env = { PATH: '/bin:/usr/bin:/sbin:/usr/sbin', LC_ALL: 'C', TZ: 'UTC' };
    return Bun.spawnSync([program, ...args], { env, stdin: 'ignore', stderr: 'ignore' }).stdout.toString();
  } catch (error) {
    throw new Error(`Cannot ask ${program} for the processes of this machine: ${errorText(error)}.`);
  }
}

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
