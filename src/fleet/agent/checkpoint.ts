/**
 * A session's state at one moment, for the runner's host: its conversation and other files, and its worktree as a
 * commit. Another host continues from there when this one is lost.
 */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { keepingRef, pushRefs, setRefs } from '../../git/worktrees/session-refs.ts';
import { isSame, type Snapshot, snapshotOf } from '../../git/worktrees/snapshot.ts';
import type { FileInfo, Files } from '../../system/world.ts';
import { fitsBlob } from '../redis.ts';
import { type Parcel, type ParcelFile, slugPlaceholder } from '../wire.ts';
import { filesIn, isOwn, type Places, takeOut, textOf } from './lay-out.ts';

/** Size factor of bytes in JSON. */
const base64 = 1.4;

const conversations = 'claude-config/projects/';

/** Of a file: if it is unchanged, nothing was written. */
interface Seen {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: number;
  readonly told: number;
}

interface Change {
  readonly path: string;
  readonly info: FileInfo;
  /** Only complete lines are ever appended to it. */
  readonly isAppended: boolean;
  readonly offset: number;
}

export class SessionFiles {
  readonly #files: Files;
  readonly #places: Places;
  #seen = new Map<string, Seen>();
  #seenBefore = this.#seen;

  constructor(files: Files, places: Places) {
    this.#files = files;
    this.#places = places;
  }

  noteAll(): void {
    for (const path of this.#paths()) {
      const info = this.#files.info(join(this.#places.session, path));
      if (info !== null) this.#seen.set(path, { ...info, told: info.size });
    }
  }

  /**
   * Changes since the last call. Null without any. A conversation ends with a complete line. Fails with `usage` when it
   * is too much to send; it is not read then.
   */
  changed(): Result<Parcel | null> {
    const changes = this.#paths().flatMap((path) => this.#change(path) ?? []);
    const fits = fitsBlob(changes.reduce((sum, change) => sum + (change.info.size - change.offset) * base64, 0));
    if (!fits.ok) return fits;
    this.#seenBefore = new Map(this.#seen);
    const files = changes.flatMap((change) => this.#taken(change) ?? []);
    return ok(files.length === 0 ? null : { files });
  }

  /** The last result of `changed` could not be kept for sending; it is returned again. */
  takeBack(): void {
    this.#seen = this.#seenBefore;
  }

  #change(path: string): Change | null {
    const info = this.#files.info(join(this.#places.session, path));
    const seen = this.#seen.get(path);
    if (info?.kind !== 'file') return null;
    if (seen?.size === info.size && seen.mtimeMs === info.mtimeMs && seen.inode === info.inode) return null;
    const isAppended = path.startsWith(conversations) && path.endsWith('.jsonl');
    const offset = isAppended && seen?.inode === info.inode && info.size >= seen.told ? seen.told : 0;
    return { path, info, isAppended, offset };
  }

  #taken({ path, info, isAppended, offset }: Change): ParcelFile | null {
    const { session, slug } = this.#places;
    const bytes = this.#files.readBytes(join(session, path), offset, Math.max(0, info.size - offset));
    const whole = isAppended ? bytes.subarray(0, bytes.lastIndexOf(10) + 1) : bytes;
    this.#seen.set(path, { ...info, told: offset + whole.length });
    if (isAppended && whole.length === 0) return null;
    // Conversations stay byte for byte; in other texts only paths of this host are replaced.
    const text = path.startsWith(conversations) ? null : textOf(whole);
    const data = text === null ? Buffer.from(whole) : Buffer.from(takeOut(text, this.#places));
    return {
      path: path.replace(`${conversations}${slug}/`, `${conversations}${slugPlaceholder}/`),
      isText: text !== null,
      ...(isAppended ? { offset } : {}),
      data: data.toString('base64'),
    };
  }

  /** Regular files, not through symlinks, without files that belong to this host alone. */
  #paths(): string[] {
    return filesIn(this.#files, this.#places.session, (path) => isOwn(path) || path === 'worktree');
  }
}

/**
 * Commits of the worktree, and one on top with all files except ignored ones, for the runner to fetch: from here, or
 * from the remote. Null when nothing is new. Fails with `worktree-failed`, and as `pushRefs`.
 */
export async function snapshotWork(
  git: Git,
  { path, repository }: { readonly path: string; readonly repository: string },
  sessionId: string,
  { told, remote }: { readonly told: Snapshot; readonly remote: string | undefined },
): Promise<Result<Snapshot | null>> {
  const made = await snapshotOf(git, path);
  if (!made.ok) return made;
  const { head, snapshot } = made.value;
  if (isSame(made.value, told)) return ok(null);
  const refs = [keepingRef(sessionId, 'head'), keepingRef(sessionId, 'snapshot')] as const;
  const kept = await setRefs(git, repository, [
    [refs[0], head],
    [refs[1], snapshot],
  ]);
  if (!kept.ok) return kept;
  const refspecs = refs.map((ref) => `+${ref}:${ref}`);
  const pushed =
    remote === undefined ? ok(undefined) : await pushRefs(git, repository, { url: remote, isOnHost: false }, refspecs);
  return pushed.ok ? ok({ head, snapshot }) : pushed;
}
