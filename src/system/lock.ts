/**
 * Locks between processes by flock(2): the system itself frees them when their holder ends, however it ends. The file
 * stays for good, because a lock file that is removed can be held twice, once under each of its lives.
 */
import { closeSync, constants, fstatSync, ftruncateSync, readSync, statSync, writeSync } from 'node:fs';
import type { ProcessIdentity } from '../core/event.ts';
import { lockExclusive, lockShared, tryFlock } from './libc.ts';
import { openPrivate, writeFully } from './private-file.ts';
import { lockersOf } from './processes/file-lockers.ts';
import { openToRead, readRegularText } from './regular-text.ts';
import { errorCode } from './system-error.ts';
import type { Lock, LockHolder, Locks } from './world.ts';

/** Asking who holds a lock takes it (shared) for an instant, so a refusal without a living holder is tried again. */
const attempts = 100;
const pauseMs = 5;

/** Told when the lock is held but its holder's note cannot be read. */
const unknownHolder: LockHolder = { identity: { pid: 0, startTime: '', host: '', bootId: '' }, runId: '' };

/** What a holder leaves behind that lets go. A file that somebody made anew does not say so. */
const releasedNote = Buffer.from('{"released":true}\n');

/**
 * `isAlive` spares the repeated tries when the holder named in the file lives; `identify` tells who a pid is, for a
 * lock whose file the disk does not open any more.
 */
export function createLocks(
  isAlive: (holder: LockHolder) => boolean,
  identify: (pid: number) => ProcessIdentity | null = () => null,
): Locks {
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
        try {
          if (isFree(path)) return null;
        } catch (error) {
          return unreadHolder(path, error, identify);
        }
        // The holder writes its note right after it got the lock; that instant is waited for.
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
      const wasReleased = saysReleased(fd);
      ftruncateSync(fd, 0);
      writeFully(fd, Buffer.from(`${JSON.stringify(holder)}\n`));
      return heldLock(fd, wasReleased);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return null;
}

/** False when the folder was removed while we opened the file: that lock would guard nothing. */
function isStillThere(fd: number, path: string): boolean {
  const mine = fstatSync(fd);
  const current = statSync(path, { throwIfNoEntry: false });
  return current !== undefined && current.ino === mine.ino && current.dev === mine.dev;
}

function saysReleased(fd: number): boolean {
  const bytes = Buffer.alloc(releasedNote.length);
  return readSync(fd, bytes, 0, bytes.length, 0) === bytes.length && bytes.equals(releasedNote);
}

function heldLock(fd: number, wasReleased: boolean): Lock {
  let held = true;
  const letGo = (farewell: () => void): void => {
    if (!held) return;
    held = false;
    try {
      // The note goes first: it never names somebody who has let go.
      ftruncateSync(fd, 0);
      farewell();
    } catch {
      // A disk that takes nothing keeps the note; whoever asks for the holder finds the lock free all the same. A full
      // one may not take the new note: the next holder has to find out by itself whether the last one is gone.
    } finally {
      closeSync(fd);
    }
  };
  return {
    wasReleased,
    release() {
      letGo(() => writeSync(fd, releasedNote, 0, releasedNote.length, 0));
    },
    abandon() {
      letGo(() => {});
    },
  };
}

function isFree(path: string): boolean {
  // Should it be a FIFO, opening it must not wait for a writer.
  const fd = openToRead(path);
  if (fd === null) return true;
  try {
    return tryFlock(fd, lockShared, path);
  } finally {
    closeSync(fd);
  }
}

/** Whose run it is nobody can read there. Throws `error` when it is another one, or the system does not tell. */
function unreadHolder(
  path: string,
  error: unknown,
  identify: (pid: number) => ProcessIdentity | null,
): LockHolder | null {
  const lockers = errorCode(error) === 'EIO' ? lockersOf(path) : null;
  if (lockers === null) throw error;
  for (const pid of lockers) {
    const identity = identify(pid);
    if (identity !== null) return { identity, runId: unknownHolder.runId };
  }
  return null;
}

/** What the lock file says; null while it is empty or half written. */
function readHolder(path: string): LockHolder | null {
  const text = readRegularText(path) ?? '';
  try {
    const note = JSON.parse(text) as Partial<LockHolder> | null;
    const isWhole = typeof note?.runId === 'string' && typeof note.identity?.pid === 'number';
    return isWhole ? (note as LockHolder) : null;
  } catch {
    return null;
  }
}
