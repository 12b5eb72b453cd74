/**
 * Changes a file that other processes of ours change too: under a lock on its folder, which the system frees when its
 * holder ends, and by a rename.
 */
import { basename, dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { systemFailure } from '../store/system-failure.ts';
import { pauseBlocking } from '../system/clock.ts';
import { lockFolder } from '../system/libc.ts';
import type { FileAccess } from '../system/world.ts';
import type { ContextFiles } from './hook-call.ts';

export interface ExclusiveUpdate {
  /** A regular file, symlinks resolved, or nothing yet. */
  readonly path: string;
  /** Larger files are left alone, bytes. */
  readonly bytesMax: number;
  /**
   * The new content; null leaves the file unchanged. `before` is null without a file. Called with the lock held, so it
   * must be quick; its failure leaves the file unchanged.
   */
  readonly change: (before: Uint8Array | null) => Result<Uint8Array | null>;
  /** Access of a new file; an existing one keeps its mode. Default: `project`. */
  readonly access?: FileAccess;
}

/** About three seconds in all, less than the timeout of a hook. */
const triesMax = 1_500;
const pauseMs = 2;

/**
 * True when the file was changed. Fails with `busy` when another process keeps the lock, `write-failed` for a system
 * error, `corrupt-file` when the path is not a regular file or far too large, and as `change` fails.
 */
export function updateExclusively(files: ContextFiles, update: ExclusiveUpdate): Result<boolean> {
  const { path } = update;
  try {
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (tries > 0) pauseBlocking(pauseMs);
      const release = lockFolder(dirname(path));
      if (release === null) continue;
      try {
        return updateLocked(files, update);
      } finally {
        release();
      }
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  return fail('busy', `Another process has locked ${path}.`, 'Try again in a moment.');
}

function updateLocked(files: ContextFiles, { path, bytesMax, change, access }: ExclusiveUpdate): Result<boolean> {
  const info = files.info(path);
  if (info !== null && info.kind !== 'file') {
    return fail('corrupt-file', `${path} is not a regular file.`, 'Move it away.');
  }
  const before = info === null ? null : files.readBytes(path, 0, bytesMax + 1);
  if (before !== null && before.length > bytesMax) {
    return fail('corrupt-file', `${path} is larger than ${bytesMax} bytes.`, 'Make it shorter.');
  }
  const after = change(before);
  if (!after.ok) return after;
  if (after.value === null || (before !== null && Buffer.compare(before, after.value) === 0)) return ok(false);
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  // Left by a process that died here: only the holder of the lock writes it.
  if (files.entryKind(fresh) === 'file') files.remove(fresh);
  const kept = before === null ? { access: access ?? 'project' } : { access: 'project' as const, like: path };
  files.writeBytes(fresh, after.value, { durable: true, ...kept });
  files.rename(fresh, path);
  return ok(true);
}
