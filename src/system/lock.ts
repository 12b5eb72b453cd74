/**
 * Locks between processes by flock(2): the system frees them when their holder ends in any way. A lock file is never
 * removed, because the removed and the new file could both be locked.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, statSync } from 'node:fs';
import { lockExclusive, lockShared, tryFlock } from './libc.ts';
import { openPrivate, writeFully } from './private-file.ts';
import { errorCode, unlessMissing } from './system-error.ts';
import type { Lock, LockHolder, Locks } from './world.ts';

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
