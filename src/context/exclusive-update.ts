/**
 * Changes a file that other processes change too, and loses nothing of theirs: a lock on its folder, which the system
 * frees when its holder ends, the change of what stands there then, and a rename.
 */
import { basename, dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { systemFailure } from '../store/system-failure.ts';
import { pauseBlocking } from '../system/clock.ts';
import { lockFolder } from '../system/lock.ts';
import type { FileAccess } from '../system/world.ts';
import type { ContextFiles } from './hook-call.ts';

export interface ExclusiveUpdate {
  /** A regular file, links resolved, or nothing yet. */
  readonly path: string;
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
}

/** About three seconds in all, which is less than the timeout of a hook. */
const triesMax = 1_500;
const pauseMs = 2;

/**
 * True when the file was changed. Fails with `busy` when another process keeps the lock, `write-failed` for what the
 * system refuses, `corrupt-file` when the path holds no regular file or a far too large one, and as `change` fails.
 */
export function updateExclusively(files: ContextFiles, update: ExclusiveUpdate): Result<boolean> {
  const { path, pause = pauseBlocking } = update;
  try {
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (tries > 0) pause(pauseMs);
      const release = lockFolder(dirname(path));
      if (release === null) continue;
      try {
        const updated = updateLocked(files, update);
        if (updated !== 'moved-on') return updated;
      } finally {
        release();
      }
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  return fail('busy', `Another process keeps ${path} locked.`, 'Try again in a moment.');
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

/** A folder of that name is not ours, and removing it would take all it holds along. */
function removeOwn(files: ContextFiles, path: string): void {
  if (files.entryKind(path) === 'file') files.remove(path);
}
