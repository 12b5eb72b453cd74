/**
 * A session's state at one moment, for the runner's host: its conversation and other files, and its worktree as a
 * commit. Another host continues from there when this one is lost.
 */
import { basename, join } from 'node:path';
import { resumeFileName, resumeFilesIn } from '../../context/handover/projects.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { askOwn, runOwn } from '../../git/run-git.ts';
import { keepingRef, pushRefs, setRefs } from '../../git/worktrees/session-refs.ts';
import { isSame, type Snapshot, snapshotOf } from '../../git/worktrees/snapshot.ts';
import type { FileInfo, Files } from '../../system/world.ts';
import { fitsBlob } from '../redis.ts';
import { type Parcel, type ParcelFile, slugPlaceholder } from '../wire.ts';
import { filesIn, isOwn, obstacleTo, type Places, takeOut, textOf, worktreeFolder } from './lay-out.ts';

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
   * Changes since the last call. Null without any. A conversation ends with a complete line. `resumeFiles`: paths from
   * the top of the worktree, of which no other file is included. Fails with `usage` when it is too much to send; it is
   * not read then.
   */
  changed(resumeFiles: readonly string[] = []): Result<Parcel | null> {
    const changes = [...this.#paths(), ...resumeFiles.map(inWorktree)].flatMap((path) => this.#change(path) ?? []);
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
    const isKept = path.startsWith(conversations) || path.startsWith('worktree/');
    const bytes = this.#files.readBytes(join(session, path), offset, Math.max(0, info.size - offset));
    const whole = isAppended ? bytes.subarray(0, bytes.lastIndexOf(10) + 1) : bytes;
    this.#seen.set(path, { ...info, told: offset + whole.length });
    if (isAppended && whole.length === 0) return null;
    // Conversations and project files stay byte for byte; in other texts only paths of this host are replaced.
    const text = isKept ? null : textOf(whole);
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

// * Resume files of the handover system that git ignores: no snapshot has them, so they go between hosts as
// files, and nothing else of the worktree does.

const bytesMax = 1024 * 1024;
/** Arguments of one command are limited by the system. */
const filesMax = 200;

/** In orders: the host's own version may be older. The worktree itself has what a host already holds. */
const sentFolder = 'handover/';

/** Paths from `top`, the root of the worktree; `folder`: where the session works in it. */
export async function ignoredResumeFiles(git: Git, top: string, folder: string): Promise<readonly string[]> {
  const { files } = git.world;
  const root = files.realPath(top) ?? top;
  const own = resumeFilesIn(files, folder).filter((file) => file.startsWith(`${root}/`));
  const small = own.filter((file) => (files.info(file)?.size ?? bytesMax + 1) <= bytesMax).slice(0, filesMax);
  if (small.length === 0) return [];
  const paths = small.map((file) => file.slice(root.length + 1));
  const args = ['--literal-pathspecs', 'ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--'];
  const named = await runOwn(git, root, [...args, ...paths]);
  // If git fails now, they come with the next checkpoint.
  return named.ok ? named.value.split('\0').filter((path) => path !== '') : [];
}

export function sentResumeFiles(paths: readonly string[], read: (path: string) => Uint8Array): ParcelFile[] {
  return paths.map((path) => {
    const data = Buffer.from(read(path)).toString('base64');
    return { path: `${sentFolder}${path}`, isText: false, data };
  });
}

export function takeSent(files: readonly ParcelFile[]): ParcelFile[] {
  return files.flatMap((file) => {
    if (!isResumeFile(file, sentFolder)) return [];
    return [{ ...file, path: `${worktreeFolder}${file.path.slice(sentFolder.length)}` }];
  });
}

export function isSent({ path }: ParcelFile): boolean {
  return path.startsWith(sentFolder);
}

/**
 * The resume files of a checkpoint. A host may be stolen: tracked files arrive as commits, and no such file is
 * overwritten. Files without a place yet are skipped until the session's commits are applied, or the checkpoint would
 * be retried for ever.
 */
export async function comeBack(git: Git, top: string, files: readonly ParcelFile[]): Promise<readonly ParcelFile[]> {
  const taken: ParcelFile[] = [];
  for (const file of files.filter((one) => isResumeFile(one, worktreeFolder)).slice(0, filesMax)) {
    const path = file.path.slice(worktreeFolder.length);
    if (obstacleTo(git.world.files, top, path) !== null) continue;
    const args = ['check-ignore', '--quiet', '--', path];
    const asked = await askOwn(git, top, args);
    if (asked.ok && asked.value.exitCode === 0) taken.push(file);
  }
  return taken;
}

function isResumeFile({ path, data, offset, isText }: ParcelFile, below: string): boolean {
  const isWhole = offset === undefined && !isText && data.length <= 2 * bytesMax;
  return path.startsWith(below) && basename(path) === resumeFileName && isWhole;
}

export function inWorktree(path: string): string {
  return `${worktreeFolder}${path}`;
}
