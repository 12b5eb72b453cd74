/** The process table of Linux, read from /proc. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { errorCode } from '../system-error.ts';
import { ProcCache, type ProcReading } from './proc-cache.ts';
import { KeptProcesses } from './proc-kept.ts';
import { isInExec, isOfKernel, parseStat } from './proc-stat.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';

/** Threads of a runtime come and go. */
const childrenTries = 3;

/** Of the folder with the threads of a process that has one: its name, its dot, and one for each thread. */
const linksOfSingle = 3;

/** So often a process is asked again that is just becoming another program, a millisecond apart. */
const execTries = 50;

/** `root` is `/proc`, and `pause` a millisecond; tests give a folder and a pause of their own. */
export function createLinuxTable(root: string, pause: () => void = () => Bun.sleepSync(1)): ProcTable {
  const kept = new KeptProcesses(root);
  const stat = (pid: number) => kept.stat(pid) ?? read(`${root}/${pid}/stat`)?.toString('latin1') ?? '';
  const pids = (): number[] => {
    const found: number[] = [];
    // Nothing else there begins with a digit.
    for (const name of readdirSync(root)) if (isDigit(name.charCodeAt(0))) found.push(Number(name));
    return found;
  };
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
          const isFirst = threads === 'first' || statSync(folder).nlink === linksOfSingle;
          if (!isFirst) return readdirSync(folder).flatMap(ofThread);
          const told = kept.children(pid);
          return told === null ? ofThread(String(pid)) : numbers(told);
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
    keep: (pid) => kept.keep(pid),
    forget: () => cache.forget(),
    bootId: () => readFileSync(`${root}/sys/kernel/random/boot_id`, 'utf8').trim(),
  };
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
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
