/** C library calls that neither node nor Bun offers: flock(2), mkfifo(3), and on Linux the adoption of orphans. */
import { dlopen, read } from 'bun:ffi';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createClock } from './clock.ts';
import { openPrivate, writeFully } from './private-file.ts';
import { errorCode, systemError, unlessMissing } from './system-error.ts';
import type { Clock, Fifos, FifoWriter, Lock, LockHolder, Locks } from './world.ts';

/** glibc first, then musl (Alpine) under the names its loader knows. */
const linuxNames = ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1', 'libc.so'];

interface Libc {
  /** 0 on success, otherwise the errno. */
  flock(fd: number, operation: number): number;
  mkfifo(path: string, mode: number): number;
  /** Null on other systems. */
  readonly linux: LinuxCalls | null;
}

interface LinuxCalls {
  prctl(option: number, first: bigint, second: bigint, third: bigint, fourth: bigint): number;
  waitpid(pid: number, status: null, options: number): number;
}

const linuxSymbols = {
  prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
  waitpid: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
} as const;

/** PR_SET_CHILD_SUBREAPER of prctl(2). */
const childSubreaper = 36;
/** WNOHANG of waitpid(2). */
const doNotWait = 1;

/** Operations of flock(2), the same numbers on Linux and macOS. */
export const lockShared = 1;
export const lockExclusive = 2;
const lockNonBlocking = 4;

function open(): Libc {
  const isMac = process.platform === 'darwin';
  const errnoSymbol = isMac ? '__error' : '__errno_location';
  const names = isMac ? ['libSystem.B.dylib'] : linuxNames;
  let cause: unknown;
  for (const name of names) {
    try {
      const { symbols } = dlopen(name, {
        flock: { args: ['i32', 'i32'], returns: 'i32' },
        mkfifo: { args: ['cstring', 'u32'], returns: 'i32' },
        [errnoSymbol]: { args: [], returns: 'ptr' },
      } as const);
      const location = symbols[errnoSymbol] as unknown as () => Parameters<typeof read.i32>[0];
      const errno = (result: number): number => (result === 0 ? 0 : read.i32(location(), 0));
      return {
        flock: (fd, operation) => errno(symbols.flock(fd, operation)),
        mkfifo: (path, mode) => errno(symbols.mkfifo(Buffer.from(`${path}\0`), mode)),
        linux: isMac ? null : dlopen(name, linuxSymbols).symbols,
      };
    } catch (error) {
      cause = error;
    }
  }
  throw new Error(`No C library can be opened; tried ${names.join(', ')}.`, { cause });
}

let opened: Libc | undefined;

function libc(): Libc {
  opened ??= open();
  return opened;
}

/** Tries a flock(2) without waiting; false when another open file holds it. Throws other errors. */
export function tryFlock(fd: number, operation: number, path: string): boolean {
  const errno = libc().flock(fd, operation | lockNonBlocking);
  if (errno === 0) return true;
  const error = systemError(errno, 'flock', path);
  const { code } = error as Error & { code: string };
  if (code === 'EAGAIN' || code === 'EWOULDBLOCK') return false;
  throw error;
}

export function makeFifo(path: string, mode: number): void {
  const errno = libc().mkfifo(path, mode);
  if (errno !== 0) throw systemError(errno, 'mkfifo', path);
}

/**
 * From now on descendants that lose their parent become children of this process; false on other systems. See
 * PR_SET_CHILD_SUBREAPER in prctl(2).
 */
export function becomeSubreaper(): boolean {
  return libc().linux?.prctl(childSubreaper, 1n, 0n, 0n, 0n) === 0;
}

/** Reaps, without blocking, one child that has ended. Not for children of Bun, which reaps them itself. */
export function waitForEnded(pid: number): void {
  libc().linux?.waitpid(pid, null, doNotWait);
}

// Locks between processes by flock(2): the system frees them when their holder ends in any way. A lock file is
// never removed, because the removed and the new file could both be locked.

/** Looking up the holder takes the lock (shared) for an instant, so a refusal without a live holder is retried. */
const attempts = 100;
const pauseMs = 5;

/** Returned when the lock is held but its holder's record cannot be read. */
const unknownHolder: LockHolder = { identity: { pid: 0, startTime: '', host: '', bootId: '' }, runId: '' };

/** `isAlive` avoids repeated tries when the recorded holder is alive. */
export function createLocks(isAlive: (holder: LockHolder) => boolean): Locks {
  return {
    tryLock(path, holder) {
      for (let attempt = 1; ; attempt++) {
        const lock = tryOnce(path, holder);
        if (lock !== null) return lock;
        const other = readHolder(path);
        if (attempt === attempts || (other !== null && isAlive(other))) return null;
        Bun.sleepSync(pauseMs);
      }
    },
    holder(path) {
      for (let attempt = 1; ; attempt++) {
        if (isFree(path)) return null;
        // The holder writes its record right after it got the lock; this waits for that instant.
        const holder = readHolder(path);
        if (holder !== null || attempt === attempts) return holder ?? unknownHolder;
        Bun.sleepSync(pauseMs);
      }
    },
  };
}

function tryOnce(path: string, holder: LockHolder): Lock | null {
  const fd = openPrivate(path, constants.O_RDWR);
  try {
    if (tryFlock(fd, lockExclusive, path) && isStillThere(fd, path)) {
      ftruncateSync(fd, 0);
      writeFully(fd, Buffer.from(`${JSON.stringify(holder)}\n`));
      return heldLock(fd);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return null;
}

/** False when the folder was removed while we opened the file: that lock would protect nothing. */
function isStillThere(fd: number, path: string): boolean {
  const mine = fstatSync(fd);
  const current = statSync(path, { throwIfNoEntry: false });
  return current !== undefined && current.ino === mine.ino && current.dev === mine.dev;
}

function heldLock(fd: number): Lock {
  let held = true;
  return {
    release() {
      if (!held) return;
      held = false;
      try {
        // The record is removed first: it never names a process that has released the lock.
        ftruncateSync(fd, 0);
      } catch {
        // A full disk keeps the record; the lock is still free.
      } finally {
        closeSync(fd);
      }
    },
  };
}

function isFree(path: string): boolean {
  const fd = unlessMissing(() => openSync(path, 'r'), null);
  if (fd === null) return true;
  try {
    return tryFlock(fd, lockShared, path);
  } finally {
    closeSync(fd);
  }
}

/** The record in the lock file; null while it is empty or incomplete. */
function readHolder(path: string): LockHolder | null {
  const text = unlessMissing(() => readFileSync(path, 'utf8'), '');
  try {
    const note = JSON.parse(text) as Partial<LockHolder> | null;
    const isWhole = typeof note?.runId === 'string' && typeof note.identity?.pid === 'number';
    return isWhole ? (note as LockHolder) : null;
  } catch {
    return null;
  }
}

/** Some network file systems lock only files that are open for writing, which a folder cannot be. */
const withoutFolderLocks: ReadonlySet<string> = new Set(['EBADF', 'ENOLCK', 'EOPNOTSUPP', 'ENOTSUP']);

/**
 * Locks a folder among the callers of this function, until the returned function is called or this process ends. Null
 * while another one has it. On file systems without folder locks every caller gets it. Throws the system's error.
 */
export function lockFolder(path: string): (() => void) | null {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  const release = () => closeSync(fd);
  try {
    if (tryFlock(fd, lockExclusive, path)) return release;
  } catch (error) {
    if (withoutFolderLocks.has(errorCode(error))) return release;
    release();
    throw error;
  }
  release();
  return null;
}

// Named pipes, through which any runner sends a worker its prompt and its control requests.

const mode = 0o600;

/** A pipe holds 64 KiB, so a long line takes several rounds; a busy reader is retried less and less often. */
const firstRetryMs = 2;
const lastRetryMs = 100;

/** `clock` schedules the next try after a full pipe. */
export function createFifos(clock: Pick<Clock, 'after'> = createClock()): Fifos {
  return { create, openWriter: (path) => openWriter(path, clock) };
}

function create(path: string): void {
  try {
    makeFifo(path, mode);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    rmSync(path, { force: true });
    makeFifo(path, mode);
  }
}

function openWriter(path: string, clock: Pick<Clock, 'after'>): FifoWriter | null {
  const fd = openWithoutWaiting(path);
  if (fd === null) return null;
  // A regular file in its place would swallow every request unread.
  if (fstatSync(fd).isFIFO()) return queuedWriter(fd, clock);
  closeSync(fd);
  return null;
}

function openWithoutWaiting(path: string): number | null {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    // ENXIO: no process reads. ELOOP: the path is a symlink, which may lead to another file.
    if (['ENXIO', 'ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) return null;
    throw error;
  }
}

function queuedWriter(fd: number, clock: Pick<Clock, 'after'>): FifoWriter {
  let queue: Uint8Array[] = [];
  let retryMs = firstRetryMs;
  let cancelRetry: (() => void) | null = null;
  let isClosed = false;
  const drop = (): void => {
    cancelRetry?.();
    cancelRetry = null;
    queue = [];
  };
  /** Bytes that the pipe took; null when the reader is gone and the queue was dropped. */
  const write = (bytes: Uint8Array): number | null => {
    try {
      return writeSync(fd, bytes);
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EAGAIN') return 0;
      if (code !== 'EPIPE') throw error;
      // The end of the reader is detected and reported where its process is followed.
      drop();
      return null;
    }
  };
  const flush = (): void => {
    cancelRetry = null;
    for (let bytes = queue[0]; bytes !== undefined; bytes = queue[0]) {
      const written = write(bytes);
      if (written === null) return;
      if (written === 0) {
        cancelRetry = clock.after(retryMs, flush);
        retryMs = Math.min(retryMs * 2, lastRetryMs);
        return;
      }
      retryMs = firstRetryMs;
      if (written === bytes.length) queue.shift();
      else queue[0] = bytes.subarray(written);
    }
  };
  return {
    writeLine(line) {
      if (isClosed) return;
      queue.push(Buffer.from(`${line}\n`));
      if (cancelRetry === null) flush();
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      drop();
      closeSync(fd);
    },
  };
}
