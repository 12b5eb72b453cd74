/**
 * Changes a file that other processes change too, and loses nothing of theirs: a lock file made by one atomic call,
 * the change of what stands there then, and a rename. The lock says whose it is, so that one whose owner died is broken
 * at once; where that cannot be told, after a while.
 */
import { basename, dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { systemFailure } from '../store/system-failure.ts';
import { type OwnedLocks, ownedLocks } from '../system/owned-lock.ts';
import { pauseBlocking } from '../system/pause.ts';
import type { FileAccess } from '../system/world.ts';
import type { ContextFiles } from './hook-call.ts';

export interface ExclusiveUpdate {
  /** A regular file, links resolved, or nothing yet. */
  readonly path: string;
  /** Milliseconds since 1970; locks much older than this, of owners nobody knows, are left over. */
  readonly nowMs: number;
  /** Larger files are left alone, bytes. */
  readonly bytesMax: number;
  /**
   * What the file shall hold; null leaves it as it is. `before` is null when there is no file. Called with the lock
   * held, so it must be quick; its failure leaves the file as it is.
   */
  readonly change: (before: Uint8Array | null) => Result<Uint8Array | null>;
  /** Who may read the file when it is new; one that is there keeps its mode. `project` when not given. */
  readonly access?: FileAccess;
  /** Between two tries; tests hand in their own. */
  readonly pause?: (ms: number) => void;
  readonly locks?: OwnedLocks;
}

/** A change takes a few milliseconds; an owner that cannot be asked and holds the lock for so long is dead. */
const staleMs = 10_000;
/** About three seconds in all, which is less than the timeout of a hook. */
const triesMax = 1_500;
const pauseMs = 2;

/**
 * True when the file was changed. Fails with `busy` when another process keeps the lock, `write-failed` for what the
 * system refuses, `corrupt-file` when the path holds no regular file or a far too large one, and as `change` fails.
 */
export function updateExclusively(files: ContextFiles, update: ExclusiveUpdate): Result<boolean> {
  const { path, pause = pauseBlocking, locks = ownedLocks } = update;
  const lock = join(dirname(path), `.${basename(path)}.lock`);
  try {
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (tries > 0) pause(pauseMs);
      if (!locks.take(lock)) {
        breakStale(files, lock, update);
        continue;
      }
      try {
        const updated = updateLocked(files, update);
        if (updated !== 'moved-on') return updated;
      } finally {
        files.remove(lock);
      }
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  return fail(
    'busy',
    `Another process keeps ${path} locked.`,
    `Try again; if no other session writes there, remove ${lock}.`,
  );
}

function updateLocked(files: ContextFiles, update: ExclusiveUpdate): Result<boolean> | 'moved-on' {
  const { path, bytesMax, change } = update;
  const info = files.info(path);
  if (info !== null && info.kind !== 'file') {
    return fail('corrupt-file', `${path} is not a regular file.`, 'Move it away.');
  }
  const before = contentOf(files, update);
  if (before !== null && before.length > bytesMax) {
    return fail('corrupt-file', `${path} is larger than ${bytesMax} bytes.`, 'Make it shorter.');
  }
  const after = change(before);
  if (!after.ok) return after;
  if (after.value === null || isSame(before, after.value)) return ok(false);
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  // Left over from a process that died here: only the holder of the lock writes it.
  removeOwn(files, fresh);
  try {
    files.writeBytes(fresh, after.value, { durable: true, ...accessOf(path, before, update) });
    // Editors and other programs know nothing of our lock; what they wrote meanwhile is taken up by another try.
    if (!isSame(before, contentOf(files, update))) {
      removeOwn(files, fresh);
      return 'moved-on';
    }
    files.rename(fresh, path);
  } catch (error) {
    removeOwn(files, fresh);
    throw error;
  }
  return ok(true);
}

/** Null when there is no file. A FIFO is never opened, because that would wait for a writer. */
function contentOf(files: ContextFiles, { path, bytesMax }: ExclusiveUpdate): Uint8Array | null {
  return files.info(path)?.kind === 'file' ? files.readBytes(path, 0, bytesMax + 1) : null;
}

function isSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0;
}

/** What is there keeps its mode, wide or narrow. */
function accessOf(path: string, before: Uint8Array | null, { access = 'project' }: ExclusiveUpdate) {
  return before === null ? { access } : { access: 'project' as const, like: path };
}

/** Only one process at a time removes a lock, and looks once more before: the lock may be a new one by then. */
function breakStale(files: ContextFiles, lock: string, update: ExclusiveUpdate): void {
  const { locks = ownedLocks } = update;
  if (!isStale(lock, update)) return;
  const guard = `${lock}.break`;
  if (isStale(guard, update)) files.remove(guard);
  if (!locks.take(guard)) return;
  try {
    if (isStale(lock, update)) files.remove(lock);
  } finally {
    files.remove(guard);
  }
}

/**
 * A living owner is waited for, whatever the age of its lock. Else the age decides; a time far ahead comes from a clock
 * that was set back since, and would otherwise be waited for.
 */
function isStale(path: string, { nowMs, locks = ownedLocks }: ExclusiveUpdate): boolean {
  const seen = locks.look(path);
  if (seen === null || seen.owner === 'alive' || seen.owner === 'foreign') return false;
  return seen.owner === 'gone' || Math.abs(nowMs - seen.mtimeMs) > staleMs;
}

/** A folder of that name is not ours, and removing it would take all it holds along. */
function removeOwn(files: ContextFiles, path: string): void {
  if (files.entryKind(path) === 'file') files.remove(path);
}
