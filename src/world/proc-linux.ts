/** The process table of Linux, read from /proc. */
import { readdirSync, readFileSync } from 'node:fs';
import { ProcCache, type ProcReading } from './proc-cache.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';
import { errorCode } from './system-error.ts';

/** Threads of a runtime come and go. */
const childrenTries = 3;

/** So often a process is asked again that is just becoming another program, a millisecond apart. */
const execTries = 50;

/** `root` is `/proc`, and `pause` a millisecond; tests give a folder and a pause of their own. */
export function createLinuxTable(root: string, pause: () => void = () => Bun.sleepSync(1)): ProcTable {
  const stat = (pid: number) => read(`${root}/${pid}/stat`)?.toString('latin1') ?? '';
  const pids = (): number[] => readdirSync(root).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  const cache = new ProcCache(pids, (pid) => {
    const text = stat(pid);
    const entry = parseStat(text);
    if (entry === null) return null;
    return { entry, environment: entry.zombie || isOfKernel(text) ? null : environmentOf(pid) };
  });
  /** In the middle of an exec a process has an empty one, whatever it was started with. */
  const environmentOf = (pid: number): Buffer | null => {
    let environment = read(`${root}/${pid}/environ`);
    for (let tries = 0; tries < execTries && environment?.length === 0; tries += 1) {
      const text = stat(pid);
      environment = read(`${root}/${pid}/environ`);
      if (environment?.length !== 0 || !isInExec(text)) break;
      pause();
    }
    return environment;
  };
  /** Not another process to which the system has given the pid since it was read. */
  const isStill = ({ pid, startTime }: ProcEntry) => parseStat(stat(pid))?.startTime === startTime;
  return {
    find: (wanted) => wanted.flatMap((pid) => parseStat(stat(pid)) ?? []),
    all: () => cache.look().map((known) => known.entry),
    children(pid, threads = 'all') {
      const folder = `${root}/${pid}/task`;
      const ofThread = (thread: string) => numbers(readFileSync(`${folder}/${thread}/children`, 'latin1'));
      for (let tries = 0; tries < childrenTries; tries += 1) {
        try {
          // Each thread has the children it made; those of a thread that ends go to another one.
          return threads === 'first' ? ofThread(String(pid)) : readdirSync(folder).flatMap(ofThread);
        } catch {
          // The process or one of its threads has just ended, or the kernel was built without these files.
        }
      }
      return null;
    },
    marked(name, value) {
      const isMarked = (known: ProcReading) => valuesIn(known, name).includes(value);
      const marked = cache.look().filter((known) => isMarked(known) && isStill(known.entry));
      return marked.map(({ entry }) => entry.pid);
    },
    forget: () => cache.forget(),
    bootId: () => readFileSync(`${root}/sys/kernel/random/boot_id`, 'utf8').trim(),
  };
}

function numbers(text: string): number[] {
  return text.split(' ').flatMap((word) => (word === '' ? [] : [Number(word)]));
}

/** Null for a process that has ended (ENOENT, ESRCH), that is somebody else's (EACCES) or hidden (EPERM). */
function read(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(errorCode(error))) return null;
    throw error;
  }
}

/**
 * One line of /proc/PID/stat, see proc_pid_stat(5). The second field is the program's name in parentheses and may
 * itself hold blanks and parentheses, so the fields are counted from the last closing one.
 */
export function parseStat(text: string): ProcEntry | null {
  const end = text.lastIndexOf(')');
  const fields = text.slice(end + 2).split(' ');
  const [state, parent, , session] = fields;
  const [threads, , startTime] = fields.slice(17, 20);
  const pid = Number.parseInt(text, 10);
  if (end === -1 || startTime === undefined || Number.isNaN(pid)) return null;
  const zombie = state === 'Z' || state === 'X' || state === 'x';
  return { pid, parent: Number(parent), session: Number(session), isSingle: threads === '1', startTime, zombie };
}

/** PF_KTHREAD among the flags, the ninth field: a thread of the kernel has no environment. */
function isOfKernel(text: string): boolean {
  const flags = text.slice(text.lastIndexOf(')') + 2).split(' ')[6];
  return (Number(flags) & 0x200000) !== 0;
}

/**
 * Its new program has no place for arguments and environment yet: arg_end and env_end, the fields 49 and 51, are 0. So
 * looks a process as well that is about to end, or of which we may not know.
 */
function isInExec(text: string): boolean {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return parseStat(text)?.zombie === false && fields[46] === '0' && fields[48] === '0';
}

/** What was looked for last in what was read: with many workers the same name is asked for again and again. */
const lookedFor = new WeakMap<ProcReading, { readonly name: string; readonly values: readonly string[] }>();

/** The values of all entries of that name in the NUL-separated environment. */
function valuesIn(known: ProcReading, name: string): readonly string[] {
  const before = lookedFor.get(known);
  if (before?.name === name) return before.values;
  const values = known.environment === null ? [] : entriesOf(known.environment, `${name}=`);
  lookedFor.set(known, { name, values });
  return values;
}

function entriesOf(environment: Buffer, start: string): string[] {
  const values: string[] = [];
  for (let at = environment.indexOf(start); at !== -1; at = environment.indexOf(start, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue;
    const end = environment.indexOf(0, at);
    values.push(environment.toString('utf8', at + start.length, end === -1 ? environment.length : end));
  }
  return values;
}
