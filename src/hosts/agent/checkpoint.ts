/**
 * What a session has made by one moment, for the machine that its runner is on: its conversation and other files, and
 * its worktree as a commit. Another machine goes on from there when this one is lost.
 */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { askOwn, commitOf, identityOptions, longTimeoutMs, runOwn } from '../../git/run-git.ts';
import type { Files } from '../../world/world.ts';
import { type Parcel, type ParcelFile, slugPlaceholder } from '../fleet/wire.ts';
import { type Places, takeOut } from './lay-out.ts';
import { isOwn } from './own-files.ts';
import { refOf } from './worktree.ts';

const long = { timeoutMs: longTimeoutMs };
const conversations = 'claude-config/projects/';

/** Of a file: when it is the same again, nothing was written to it. */
interface Seen {
  readonly size: number;
  readonly mtimeMs: number;
  readonly inode: number;
  /** Bytes of it that the other end has. */
  readonly told: number;
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

  /** What is new since, as it is now. Null when nothing is. A conversation ends with a whole line. */
  changed(): Parcel | null {
    const files = this.#paths().flatMap((path) => this.#change(path) ?? []);
    return files.length === 0 ? null : { files };
  }

  #change(path: string): ParcelFile | null {
    const { session, slug } = this.#places;
    const full = join(session, path);
    const info = this.#files.info(full);
    const seen = this.#seen.get(path);
    if (info?.kind !== 'file') return null;
    if (seen?.size === info.size && seen.mtimeMs === info.mtimeMs && seen.inode === info.inode) return null;
    const isKept = path.startsWith(conversations);
    const isAppended = isKept && path.endsWith('.jsonl');
    const offset = isAppended && seen?.inode === info.inode && info.size >= seen.told ? seen.told : 0;
    const bytes = this.#read(full, offset, info.size);
    const whole = isAppended ? bytes.subarray(0, bytes.lastIndexOf(10) + 1) : bytes;
    this.#seen.set(path, { ...info, told: offset + whole.length });
    if (isAppended && whole.length === 0) return null;
    const common = {
      path: path.replace(`${conversations}${slug}/`, `${conversations}${slugPlaceholder}/`),
      mode: 0o600,
    };
    // A conversation stays as it is to the byte; of other texts only paths of this machine are taken out.
    const text = isKept ? null : textOf(whole);
    const data = text === null ? Buffer.from(whole) : Buffer.from(takeOut(text, this.#places));
    return {
      ...common,
      isText: text !== null,
      ...(isAppended ? { offset } : {}),
      data: data.toString('base64'),
    };
  }

  #read(path: string, offset: number, size: number): Uint8Array {
    return this.#files.readBytes(path, offset, Math.max(0, size - offset));
  }

  /** Regular files, through no link, without what belongs to this machine alone. */
  #paths(): string[] {
    const { session } = this.#places;
    const found: string[] = [];
    const open = [''];
    for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
      for (const name of this.#files.list(join(session, folder))) {
        const path = folder === '' ? name : `${folder}/${name}`;
        if (isOwn(path) || path === 'worktree') continue;
        const kind = this.#files.entryKind(join(session, path));
        if (kind === 'folder') open.push(path);
        else if (kind === 'file') found.push(path);
      }
    }
    return found.toSorted();
  }
}

/** Null when it is no text. */
function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}

/** What of the worktree the other end has. */
export interface ToldWork {
  readonly head: string;
  readonly snapshot: string;
}

export interface WorkSnapshot extends ToldWork {
  /** Path of a bundle of what is new; null when the other end has all of it. */
  readonly bundle: string | null;
}

/**
 * Commits of the worktree, and a commit on top of them of all its files but the ignored ones, made without touching its
 * index. Null when nothing is new. Fails with `worktree-failed`.
 */
export async function snapshotWork(
  git: Git,
  worktree: { readonly path: string; readonly repository: string },
  sessionId: string,
  told: ToldWork,
): Promise<Result<WorkSnapshot | null>> {
  const { path, repository } = worktree;
  const found = await commitOf(git, path, 'HEAD');
  if (!found.ok) return found;
  const head = found.value ?? told.head;
  const made = await commitFiles(git, path, head, told);
  if (!made.ok) return made;
  const snapshot = made.value;
  if (head === told.head && snapshot === told.snapshot) return ok(null);
  const refs = { head, snapshot } as const;
  for (const what of ['head', 'snapshot'] as const) {
    const kept = await runOwn(git, repository, ['update-ref', refOf(sessionId, what), refs[what]]);
    if (!kept.ok) return kept;
  }
  const names = [refOf(sessionId, 'head'), refOf(sessionId, 'snapshot')];
  const known = [`^${told.head}`, `^${told.snapshot}`];
  const counted = await runOwn(git, repository, ['rev-list', '--count', ...names, ...known]);
  if (!counted.ok) return counted;
  if (counted.value.trim() === '0') return ok({ head, snapshot, bundle: null });
  const bundle = join(repository, `outgoing-${git.world.random.uuid()}.bundle`);
  const bundled = await runOwn(git, repository, ['bundle', 'create', '--quiet', bundle, ...names, ...known], long);
  return bundled.ok ? ok({ head, snapshot, bundle }) : bundled;
}

/** The head itself when all is committed; the commit told last when the files are the same still. */
async function commitFiles(git: Git, path: string, head: string, told: ToldWork): Promise<Result<string>> {
  const gitDir = await runOwn(git, path, ['rev-parse', '--absolute-git-dir']);
  if (!gitDir.ok) return gitDir;
  const index = join(gitDir.value.trim(), 'fleet-index');
  const call = { ...long, variables: { GIT_INDEX_FILE: index } };
  if (git.world.files.entryKind(index) === null) {
    const read = await runOwn(git, path, ['read-tree', head], call);
    if (!read.ok) return read;
  }
  // Files that vanish meanwhile, or cannot be read, are no reason to keep back all others.
  const added = await askOwn(git, path, ['add', '--all', '--ignore-errors'], call);
  if (!added.ok) return added;
  const tree = await runOwn(git, path, ['write-tree'], call);
  if (!tree.ok) return tree;
  for (const commit of [head, ...(told.head === head ? [told.snapshot] : [])]) {
    const same = await runOwn(git, path, ['rev-parse', '--verify', '--quiet', `${commit}^{tree}`]);
    if (same.ok && same.value.trim() === tree.value.trim()) return ok(commit);
  }
  const identity = await identityOptions(git, path);
  if (!identity.ok) return identity;
  const message = 'Files of a session as they lay there';
  const args = [...identity.value, 'commit-tree', '-p', head, '-m', message, tree.value.trim()];
  const made = await runOwn(git, path, args);
  return made.ok ? ok(made.value.trim()) : made;
}
