/**
 * Writes a parcel's files into the folder of a session. Its sender is known by a signature and still not trusted
 * outside that folder: no path leads out of it, neither by name nor through a symlink.
 */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import type { Git } from '../../git/git.ts';
import { isSame, keepingRef, pushRefs, type Snapshot, setRefs, snapshotOf } from '../../git/worktrees/snapshot.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { FileInfo, Files } from '../../system/world.ts';
import { fitsBlob } from '../redis.ts';
import { type ParcelFile, placeholders, slugPlaceholder } from '../wire.ts';

export interface Places {
  /** The session's folder; all are real paths. */
  readonly session: string;
  readonly worktree: string;
  readonly package: string;
  readonly bun: string;
  readonly slug: string;
}

/**
 * Fails with `usage` before anything is written when a path is not allowed, with `worktree-failed` when something else
 * is in the place of a file or its folder, which no retry changes, otherwise with the system's reason. `keep`: existing
 * files stay.
 */
export function layOut(files: Files, all: readonly ParcelFile[], places: Places, keep = false): Result<void> {
  for (const { path } of all) {
    const problem = problemWith(path);
    if (problem !== null) return fail('usage', `The order holds a file ${quoted(path)}, ${problem}.`, refusedNext);
  }
  for (const file of all) {
    const { folder, path, target } = destination(places, file);
    try {
      const obstacle = obstacleTo(files, folder, path);
      if (obstacle !== null) return fail('worktree-failed', obstacle, 'Look at that folder, then retry the session.');
      if (keep && files.entryKind(target) !== null) continue;
      files.makeFolder(dirname(target));
      put(files, target, file, places);
    } catch (error) {
      return { ok: false, failure: systemFailure(target, error) };
    }
  }
  return ok(undefined);
}

/** Prefix in parcels of files in the worktree, wherever that is. */
export const worktreeFolder = 'worktree/';

/** The target of a parcel's file below one of the two folders. */
export function destination(places: Places, file: Pick<ParcelFile, 'path'>) {
  const named = file.path.replaceAll(slugPlaceholder, places.slug);
  const isWork = named.startsWith(worktreeFolder);
  const folder = isWork ? places.worktree : places.session;
  const path = isWork ? named.slice(worktreeFolder.length) : named;
  return { folder, path, target: join(folder, path) };
}

const refusedNext = 'Check which runners this host accepts.';

/** Shorter than any system's limit, to leave room for the temporary name and the parent folder. */
const nameBytesMax = 200;
const pathBytesMax = 3_000;

function problemWith(path: string): string | null {
  const parts = path.split('/');
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..') && !/[\0\\]/.test(path);
  if (!isPlain) return 'which would lead out of the folder of its session';
  const isLong = (text: string, max: number): boolean => Buffer.byteLength(text) > max;
  if (isLong(path, pathBytesMax) || parts.some((part) => isLong(part, nameBytesMax))) return 'whose name is too long';
  // Files in `.git` would decide what git runs.
  if (parts.some((part) => part.toLowerCase() === '.git')) return 'which would change a repository';
  return isOwn(path) ? 'which a host makes for itself' : null;
}

/** A session may have made symlinks in the place of its files. A sentence fragment; null = no obstacle. */
function obstacleTo(files: Files, folder: string, path: string): string | null {
  const parts = path.split('/');
  for (let count = 1; count <= parts.length; count += 1) {
    const at = join(folder, ...parts.slice(0, count));
    const kind = files.entryKind(at);
    if (kind === null) return null;
    const wanted = count === parts.length ? 'file' : 'folder';
    if (kind !== wanted) return `${at} is a ${kind === 'other' ? 'special file' : kind}, where a ${wanted} has to lie.`;
  }
  return null;
}

function put(files: Files, target: string, { data, isText, offset }: ParcelFile, places: Places): void {
  const bytes = Buffer.from(data, 'base64');
  const content = isText ? Buffer.from(fillIn(bytes.toString(), places)) : bytes;
  const before = offset === undefined ? [] : [files.readBytes(target, 0, offset)];
  // Written to a temporary file and renamed, so that it is never partial.
  const temporary = `${target}.laid-out`;
  files.remove(temporary);
  files.writeBytes(temporary, Buffer.concat([...before, content]), { mode: 0o600 });
  files.rename(temporary, target);
}

const conversations = 'claude-config/projects/';

/**
 * Conversations of an earlier attempt from which nothing was received. With the same id there, claude would start none.
 */
export function removeOtherConversations(files: Files, all: readonly ParcelFile[], { session, slug }: Places): void {
  const known = new Set(all.map(({ path }) => path.replaceAll(slugPlaceholder, slug)));
  const isElsewhere = (path: string): boolean =>
    !path.startsWith(conversations) && !conversations.startsWith(`${path}/`);
  for (const path of filesIn(files, session, isElsewhere)) {
    if (path.startsWith(conversations) && !known.has(path)) files.remove(join(session, path));
  }
}

export function fillIn(text: string, places: Places): string {
  return text
    .replaceAll(placeholders.session, () => places.session)
    .replaceAll(placeholders.worktree, () => places.worktree)
    .replaceAll(placeholders.package, () => places.package)
    .replaceAll(placeholders.bun, () => places.bun);
}

/** The reverse, longest first, because one path may be within another. */
export function takeOut(text: string, places: Places): string {
  const known = (['session', 'worktree', 'package', 'bun'] as const).map(
    (name) => [places[name], placeholders[name]] as const,
  );
  return known
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((all, [path, placeholder]) => all.replaceAll(path, placeholder), text);
}

/** A file of the session's folder, without paths of this host. */
export function packFile(path: string, bytes: Uint8Array, places: Places): ParcelFile {
  // A conversation stays byte for byte: the model has read it like that.
  const text = path.startsWith(conversations) ? null : textOf(bytes);
  const data = Buffer.from(text === null ? bytes : takeOut(text, places));
  const to = path.replace(`${conversations}${places.slug}/`, `${conversations}${slugPlaceholder}/`);
  return { path: to, isText: text !== null, data: data.toString('base64') };
}

// The parts of a session's folder that belong to one host: they are never sent in either direction.

const own: ReadonlySet<string> = new Set([
  ...['transcript.jsonl', 'stderr.log', 'stdin.fifo', 'meta.json', 'order.json'],
  ...['workspace.json', 'setup.done', 'remote-worktree.json'],
]);

/** claude's file for a login made within the session; sessions elsewhere use that host's login. */
const credentials = 'claude-config/.credentials.json';

export function isOwn(path: string): boolean {
  const [top = ''] = path.split('/');
  return own.has(top) || top === 'tmp' || /^\..*\.tmp$/.test(top) || path === credentials;
}

/** Regular files below the folder, not through symlinks, relative to it and sorted. */
export function filesIn(files: Files, top: string, isLeft: (path: string) => boolean): string[] {
  const found: string[] = [];
  const open = [''];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const name of files.list(join(top, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      if (isLeft(path)) continue;
      const kind = files.entryKind(join(top, path));
      if (kind === 'folder') open.push(path);
      else if (kind === 'file') found.push(path);
    }
  }
  return found.toSorted();
}

function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

// A session's state at one moment, for the runner's host: its conversation and other files, and its worktree as
// a commit. Another host continues from there when this one is lost.

/** Size factor of bytes in JSON. */
const base64 = 1.4;

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
  changed(): Result<readonly ParcelFile[] | null> {
    const changes = this.#paths().flatMap((path) => this.#change(path) ?? []);
    const fits = fitsBlob(changes.reduce((sum, change) => sum + (change.info.size - change.offset) * base64, 0));
    if (!fits.ok) return fits;
    this.#seenBefore = new Map(this.#seen);
    const files = changes.flatMap((change) => this.#taken(change) ?? []);
    return ok(files.length === 0 ? null : files);
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
    const file = join(this.#places.session, path);
    const bytes = this.#files.readBytes(file, offset, Math.max(0, info.size - offset));
    const whole = isAppended ? bytes.subarray(0, bytes.lastIndexOf(10) + 1) : bytes;
    this.#seen.set(path, { ...info, told: offset + whole.length });
    if (isAppended && whole.length === 0) return null;
    return { ...packFile(path, whole, this.#places), ...(isAppended ? { offset } : {}) };
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
