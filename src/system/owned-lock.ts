/**
 * Lock files that say who holds them, so that nobody waits for a process that is gone. The lock is a symbolic link that
 * leads nowhere: one call makes it with its owner in it, so there is no instant in which a killed process leaves a lock
 * of nobody behind. Only files are read to judge it: hooks live for milliseconds.
 */
import {
  closeSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostName } from './host-name.ts';
import { parseStat } from './processes/proc-stat.ts';
import { errorCode, unlessMissing } from './system-error.ts';

/**
 * `self` is this very process. `unknown`: made elsewhere, or by nobody that can be told; only its age can say more.
 * `foreign`: something of that name that is no lock.
 */
export type OwnerState = 'self' | 'alive' | 'gone' | 'unknown' | 'foreign';

export interface SeenLock {
  readonly owner: OwnerState;
  /** When it was made, milliseconds since 1970. */
  readonly mtimeMs: number;
}

export interface OwnedLocks {
  /** Makes the lock for this process; false when anything has that name. Throws the system's error. */
  take(path: string): boolean;
  /** Whose lock it is; null when nothing has that name. */
  look(path: string): SeenLock | null;
}

export const ownedLocks: OwnedLocks = { take, look };

interface Note {
  readonly pid: number;
  /** Empty where the system does not tell it quickly. */
  readonly startTime: string;
  /** Pids mean something only within one host, one boot and one namespace of pids. */
  readonly realm: string;
}

/** A note is far shorter. */
const noteBytesMax = 1024;
/** What systems say whose disks have no symbolic links. */
const withoutLinks: ReadonlySet<string> = new Set(['EPERM', 'ENOSYS', 'EOPNOTSUPP', 'ENOTSUP', 'EINVAL']);

function take(path: string): boolean {
  const { pid } = process;
  const note: Note = { pid, startTime: startTimeOf(pid) ?? '', realm: realm() };
  const text = JSON.stringify(note);
  try {
    makeLock(path, text);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function makeLock(path: string, note: string): void {
  try {
    symlinkSync(note, path);
  } catch (error) {
    if (!withoutLinks.has(errorCode(error))) throw error;
    // Others must be able to read whose it is.
    writeFileSync(path, note, { flag: 'wx', mode: 0o644 });
  }
}

function look(path: string): SeenLock | null {
  const stats = unlessMissing(() => lstatSync(path), null);
  if (stats === null) return null;
  const { mtimeMs } = stats;
  if (stats.isSymbolicLink()) {
    const note = parseNote(quietly(() => readlinkSync(path)) ?? '');
    return { owner: note === null ? 'foreign' : stateOf(note), mtimeMs };
  }
  if (!stats.isFile()) return { owner: 'foreign', mtimeMs };
  // Made where there are no links: its owner may have died before the note was written.
  const note = parseNote(quietly(() => beginOf(path)) ?? '');
  return { owner: note === null ? 'unknown' : stateOf(note), mtimeMs };
}

function beginOf(path: string): string {
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(noteBytesMax);
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, noteBytesMax, 0));
  } finally {
    closeSync(fd);
  }
}

function stateOf(note: Note): OwnerState {
  if (note.realm !== realm()) return 'unknown';
  if (!exists(note.pid)) return 'gone';
  // Somebody else's process, or no /proc: that pid may have been given to another one since.
  const startTime = startTimeOf(note.pid);
  if (startTime === null || note.startTime === '') return note.pid === process.pid ? 'self' : 'unknown';
  if (startTime !== note.startTime) return 'gone';
  return note.pid === process.pid ? 'self' : 'alive';
}

function parseNote(text: string): Note | null {
  try {
    const { pid, startTime, realm } = JSON.parse(text) as Partial<Note>;
    const isWhole = Number.isSafeInteger(pid) && Number(pid) > 0 && typeof startTime === 'string';
    return isWhole && typeof realm === 'string' ? { pid: Number(pid), startTime, realm } : null;
  } catch {
    return null;
  }
}

function realm(): string {
  const parts = [
    () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    () => readlinkSync('/proc/self/ns/pid'),
  ];
  return [hostName(), ...parts.map((part) => quietly(part) ?? '')].join(' ');
}

/** A process that only waits to be asked for its status holds nothing any more: its time is `ended`. */
function startTimeOf(pid: number): string | null {
  const entry = parseStat(quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? '');
  if (entry === null) return null;
  return entry.zombie ? 'ended' : entry.startTime;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
