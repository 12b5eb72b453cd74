/** The worktree of a session as git objects in blobs, for a machine that may have nothing of its repository. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import type { SessionId, Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import { isAncestor } from '../git/run-git.ts';
import { keepingRef, makeBundle, setRefs } from '../git/worktrees/bundles.ts';
import { snapshotOf } from '../git/worktrees/snapshot.ts';
import type { BlobStore } from './engine.ts';
import type { Blob, ShippedWork } from './wire.ts';

/** Refs of a session that keep what was sent, and what has come back of it. */
export function workRefs(sessionId: SessionId) {
  return {
    sentHead: keepingRef(sessionId, 'sent-head'),
    sent: keepingRef(sessionId, 'sent'),
    head: keepingRef(sessionId, 'head'),
    checkpoint: keepingRef(sessionId, 'checkpoint'),
    applying: keepingRef(sessionId, 'applying'),
  } as const;
}

export class WorkShipper {
  readonly #git: Git;
  readonly #blobs: BlobStore;
  /** Whole histories, by repository and commit: the sessions of a group begin at the same one. */
  readonly #bases = new Map<string, Promise<Result<Blob>>>();

  constructor(git: Git, blobs: BlobStore) {
    this.#git = git;
    this.#blobs = blobs;
  }

  /** Fails with `worktree-failed`, and as `BlobStore` does. `folder` is for files on their way. */
  async ship(sessionId: SessionId, workspace: Workspace, folder: string): Promise<Result<ShippedWork>> {
    const git = this.#git;
    const { path, repository, branch } = workspace;
    const taken = await snapshotOf(git, path);
    if (!taken.ok) return taken;
    const { head, snapshot } = taken.value;
    const refs = workRefs(sessionId);
    // What came back of an earlier attempt was taken in by now.
    const kept = await setRefs(git, repository, [
      ...([refs.head, refs.checkpoint, refs.applying] as const).map((ref) => [ref, null] as const),
      [refs.sentHead, head],
      [refs.sent, snapshot],
    ]);
    if (!kept.ok) return kept;
    const base = await this.#baseOf(workspace, head);
    if (!base.ok) return base;
    const baseBundle = await this.#baseBlob(repository, base.value, sessionId, folder);
    if (!baseBundle.ok) return baseBundle;
    const isBase = head === base.value && snapshot === head;
    const bundle = isBase ? ok(null) : await this.#bundle(repository, [refs.sentHead, refs.sent], [base.value], folder);
    if (!bundle.ok) return bundle;
    const more = bundle.value === null ? {} : { bundle: bundle.value };
    return ok({
      repository: keyOf(git, repository),
      base: base.value,
      baseBundle: baseBundle.value,
      ...more,
      head,
      snapshot,
      branch,
    });
  }

  /** The commit that most sessions of the repository share. */
  async #baseOf({ path, base, origin = base }: Workspace, head: string): Promise<Result<string>> {
    if (origin === head) return ok(origin);
    const isShared = await isAncestor(this.#git, path, origin, head);
    if (!isShared.ok) return isShared;
    if (isShared.value) return ok(origin);
    const isBelow = await isAncestor(this.#git, path, base, head);
    return isBelow.ok ? ok(isBelow.value ? base : head) : isBelow;
  }

  async #baseBlob(repository: string, base: string, sessionId: SessionId, folder: string): Promise<Result<Blob>> {
    const key = `${repository} ${base}`;
    const known = await this.#bases.get(key);
    if (known?.ok === true) {
      const has = await this.#blobs.hasBlob(known.value);
      if (!has.ok) return has;
      if (has.value) return known;
    }
    const making = this.#makeBase(repository, base, sessionId, folder);
    this.#bases.set(key, making);
    return making;
  }

  async #makeBase(repository: string, base: string, sessionId: SessionId, folder: string): Promise<Result<Blob>> {
    const ref = keepingRef(sessionId, 'base');
    const kept = await setRefs(this.#git, repository, [[ref, base]]);
    if (!kept.ok) return kept;
    const bundle = await this.#bundle(repository, [ref], [], folder);
    // One that stays keeps some commits a little longer.
    await setRefs(this.#git, repository, [[ref, null]]);
    return bundle.ok ? ok(bundle.value as Blob) : bundle;
  }

  async #bundle(
    repository: string,
    refs: readonly string[],
    without: readonly string[],
    folder: string,
  ): Promise<Result<Blob | null>> {
    const { files, random } = this.#git.world;
    files.makeFolder(folder);
    const made = await makeBundle(this.#git, repository, { refs, without, folder });
    if (!made.ok || made.value === null) return made.ok ? ok(null) : made;
    try {
      const bytes = files.readBytes(made.value, 0, files.info(made.value)?.size ?? 0);
      return await this.#blobs.putBlob(random.uuid(), bytes);
    } finally {
      files.remove(made.value);
    }
  }
}

/** The same for all sessions of a repository on this machine, and for none of another. */
function keyOf({ world }: Git, repository: string): string {
  return createHash('sha256')
    .update(join(`/${world.machine.host}`, repository))
    .digest('hex')
    .slice(0, 32);
}
