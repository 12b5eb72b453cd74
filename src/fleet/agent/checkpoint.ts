/**
 * What a session has made by one moment, for the machine that its runner is on: its conversation and other files, and
 * its worktree as a commit. Another machine goes on from there when this one is lost.
 */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { keepingRef, makeBundle, setRefs } from '../../git/worktrees/bundles.ts';
import { isSame, type Snapshot, snapshotOf } from '../../git/worktrees/snapshot.ts';
import type { FileInfo, Files } from '../../system/world.ts';
import { fitsBlob } from '../redis.ts';
import { type Parcel, type ParcelFile, slugPlaceholder } from '../wire.ts';
import { filesIn, isOwn, type Places, takeOut, textOf } from './lay-out.ts';
import { inWorktree } from './resume-files.ts';

/** Bytes that a byte becomes on its way. */
const base64 = 4 / 3;

const conversations = 'claude-config/projects/';

/** Of a file: when it is the same again, nothing was written to it. */
interface Seen {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: number;
  /** Bytes of it that the other end has. */
  readonly told: number;
}

interface Change {
  /** In the session's folder. */
  readonly path: string;
  readonly info: FileInfo;
  /** Nothing but whole lines is ever added to it. */
  readonly isAppended: boolean;
  /** Bytes before it are with the other end. */
  readonly offset: number;
}

/** The files of a session's folder, and what of them the other end has. */
export class SessionFiles {
  readonly #files: Files;
  readonly #places: Places;
  readonly #seen = new Map<string, Seen>();

  constructor(files: Files, places: Places) {
    this.#files = files;
    this.#places = places;
  }

  /** What lies there now, the other end has. */
  noteAll(): void {
    for (const path of this.#paths()) {
      const info = this.#files.info(join(this.#places.session, path));
      if (info !== null) this.#seen.set(path, { ...info, told: info.size });
    }
  }

  /**
   * What is new since, as it is now. Null when nothing is. A conversation ends with a whole line. `resumeFiles`: paths
   * from the top of the worktree, of which nothing else is told here. Fails with `usage` when that is too much to be
   * sent; it is not read then.
   */
  changed(resumeFiles: readonly string[] = []): Result<Parcel | null> {
    const changes = [...this.#paths(), ...resumeFiles.map(inWorktree)].flatMap((path) => this.#change(path) ?? []);
    const fits = fitsBlob(changes.reduce((sum, change) => sum + (change.info.size - change.offset) * base64, 0));
    if (!fits.ok) return fits;
    const files = changes.flatMap((change) => this.#taken(change) ?? []);
    return ok(files.length === 0 ? null : { files });
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
    const isKept = path.startsWith(conversations) || path.startsWith('worktree/');
    const bytes = this.#files.readBytes(join(session, path), offset, Math.max(0, info.size - offset));
    const whole = isAppended ? bytes.subarray(0, bytes.lastIndexOf(10) + 1) : bytes;
    this.#seen.set(path, { ...info, told: offset + whole.length });
    if (isAppended && whole.length === 0) return null;
    const common = {
      path: path.replace(`${conversations}${slug}/`, `${conversations}${slugPlaceholder}/`),
      mode: 0o600,
    };
    // A conversation stays as it is to the byte, and so does what belongs to the project; of other texts only paths
    // of this machine are taken out.
    const text = isKept ? null : textOf(whole);
    const data = text === null ? Buffer.from(whole) : Buffer.from(takeOut(text, this.#places));
    return {
      ...common,
      isText: text !== null,
      ...(isAppended ? { offset } : {}),
      data: data.toString('base64'),
    };
  }

  /** Regular files, through no link, without what belongs to this machine alone. */
  #paths(): string[] {
    return filesIn(this.#files, this.#places.session, (path) => isOwn(path) || path === 'worktree');
  }
}

export interface WorkSnapshot extends Snapshot {
  /** Path of a bundle of what is new; null when the other end has all of it. */
  readonly bundle: string | null;
}

/**
 * Commits of the worktree, and a commit on top of them of all its files but the ignored ones. Null when nothing is new.
 * Fails with `worktree-failed`.
 */
export async function snapshotWork(
  git: Git,
  { path, repository }: { readonly path: string; readonly repository: string },
  sessionId: string,
  told: Snapshot,
): Promise<Result<WorkSnapshot | null>> {
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
  const bundle = await makeBundle(git, repository, { refs, without: [told.head, told.snapshot], folder: repository });
  return bundle.ok ? ok({ head, snapshot, bundle: bundle.value }) : bundle;
}
