/** Commits as files that another repository takes in. */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { commitOf, longTimeoutMs, runOwn } from '../run-git.ts';

const long = { timeoutMs: longTimeoutMs };

/** What keeps commits of a session while no branch does; `name` is unique among those of the session. */
export function keepingRef(sessionId: string, name: string): string {
  return `refs/claude-code-agent/${sessionId}/${name}`;
}

/** Fails with `worktree-failed`. */
export async function keepCommit(git: Git, repository: string, ref: string, commit: string): Promise<Result<void>> {
  const kept = await runOwn(git, repository, ['update-ref', ref, commit]);
  return kept.ok ? ok(undefined) : kept;
}

export async function forgetRefs(git: Git, repository: string, refs: readonly string[]): Promise<void> {
  // One that stays keeps some commits a little longer.
  for (const ref of refs) await runOwn(git, repository, ['update-ref', '-d', ref]);
}

/**
 * The commits of these refs without those that the other end has, as a file in `folder` that is the caller's to remove;
 * null when the other end has all. Fails with `worktree-failed`.
 */
export async function makeBundle(
  git: Git,
  repository: string,
  {
    refs,
    without,
    folder,
  }: { readonly refs: readonly string[]; readonly without: readonly string[]; readonly folder: string },
): Promise<Result<string | null>> {
  const revisions = [...refs, ...without.map((commit) => `^${commit}`)];
  const counted = await runOwn(git, repository, ['rev-list', '--count', ...revisions], long);
  if (!counted.ok) return counted;
  if (counted.value.trim() === '0') return ok(null);
  const path = join(folder, `outgoing-${git.world.random.uuid()}.bundle`);
  const made = await runOwn(git, repository, ['bundle', 'create', '--quiet', path, ...revisions], long);
  return made.ok ? ok(path) : made;
}

/** Takes in the commits of a bundle; nothing refers to them yet. Fails with `worktree-failed`. */
export async function takeBundle(
  git: Git,
  repository: string,
  bytes: Uint8Array,
  folder: string,
): Promise<Result<void>> {
  const { files, random } = git.world;
  const path = join(folder, `incoming-${random.uuid()}.bundle`);
  try {
    files.writeBytes(path, bytes);
    const taken = await runOwn(git, repository, ['bundle', 'unbundle', path], long);
    return taken.ok ? ok(undefined) : taken;
  } finally {
    files.remove(path);
  }
}

export async function hasCommits(git: Git, repository: string, commits: readonly string[]): Promise<boolean> {
  for (const commit of commits) {
    const found = await commitOf(git, repository, commit);
    if (!found.ok || found.value === null) return false;
  }
  return true;
}
