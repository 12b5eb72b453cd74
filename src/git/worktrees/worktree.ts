/** Worktrees of a repository: list, create, remove; and git's view of the files in them. */
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { longTimeoutMs, runOwn } from '../run-git.ts';
import { withoutSetUp } from '../stage.ts';

export interface Worktree {
  /** Absolute, as git recorded it; the folder may be gone. */
  readonly path: string;
  /** Full id of the checked-out commit; absent = none yet. */
  readonly head?: string;
  /** Without `refs/heads/`; absent for a detached HEAD. */
  readonly branch?: string;
  /** Present for a locked worktree: the reason, possibly empty. */
  readonly lock?: string;
}

/** All worktrees, the main one first. Fails with `worktree-failed`. */
export async function listWorktrees(git: Git, folder: string): Promise<Result<readonly Worktree[]>> {
  const listed = await runOwn(git, folder, ['worktree', 'list', '--porcelain', '-z']);
  if (!listed.ok) return listed;
  return ok(listed.value.split('\0\0').flatMap((entry) => parseEntry(entry.split('\0')) ?? []));
}

function parseEntry(fields: readonly string[]): Worktree | null {
  const value = (name: string): string | undefined => {
    const field = fields.find((text) => text === name || text.startsWith(`${name} `));
    return field?.slice(name.length + 1);
  };
  const [path, head, branch, lock] = ['worktree', 'HEAD', 'branch', 'locked'].map(value);
  if (path === undefined) return null;
  return {
    path,
    ...(head === undefined || /^0*$/.test(head) ? {} : { head }),
    ...(branch?.startsWith('refs/heads/') ? { branch: branch.slice('refs/heads/'.length) } : {}),
    // Git's own lock during creation; it stays when that git was killed.
    ...(lock === 'initializing' ? {} : defined({ lock })),
  };
}

/** The repository's entry of the worktree at the real path; null without one. */
export async function worktreeAt(git: Git, folder: string, path: string): Promise<Result<Worktree | null>> {
  const listed = await listWorktrees(git, folder);
  return listed.ok ? ok(listed.value.find((worktree) => worktree.path === path) ?? null) : listed;
}

/** Creates a worktree at the absolute path `folder`, on the branch or on a new one from HEAD. */
export async function addWorktree(
  git: Git,
  { repository, folder, branch }: { readonly repository: string; readonly folder: string; readonly branch: string },
): Promise<Result<void>> {
  const found = await runOwn(git, repository, ['for-each-ref', '--format=%(refname)', `refs/heads/${branch}`]);
  if (!found.ok) return found;
  const exists = found.value.split('\n').includes(`refs/heads/${branch}`);
  const args = exists ? [folder, branch] : ['-b', branch, folder];
  const added = await runOwn(git, repository, ['worktree', 'add', '--quiet', ...args], { timeoutMs: longTimeoutMs });
  return added.ok ? ok(undefined) : added;
}

/** Merging the branch would change nothing in `folder`, even after a squash. False when git cannot tell. */
export async function isMerged(git: Git, folder: string, branch: string): Promise<boolean> {
  const merged = await runOwn(git, folder, ['merge-tree', '--write-tree', 'HEAD', `refs/heads/${branch}`]);
  const own = merged.ok ? await runOwn(git, folder, ['rev-parse', '--verify', 'HEAD^{tree}']) : merged;
  return merged.ok && own.ok && merged.value.trim() === own.value.trim();
}

/** Removes a worktree with its files, or the entry of a missing one; its branch stays. */
export async function removeWorktree(git: Git, repository: string, folder: string): Promise<Result<void>> {
  // The second --force is for one that a killed git left marked as initializing.
  const args = ['worktree', 'remove', '--force', '--force', '--', folder];
  const removed = await runOwn(git, repository, args, { timeoutMs: longTimeoutMs });
  return removed.ok ? ok(undefined) : removed;
}

export async function pruneWorktrees(git: Git, repository: string): Promise<Result<void>> {
  const pruned = await runOwn(git, repository, ['worktree', 'prune']);
  return pruned.ok ? ok(undefined) : pruned;
}

/** Paths from the top of the worktree of changed, staged or new files, without ignored ones. */
export async function changedFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const args = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=none'];
  const listed = await runOwn(git, folder, args);
  if (!listed.ok) return listed;
  const names = listed.value.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
  return ok(withoutSetUp(git, folder, names));
}

/** Ignored, untracked files: those in `paths`, relative to `folder`, or all from the top. */
export async function ignoredFiles(
  git: Git,
  folder: string,
  paths: readonly string[] = [],
): Promise<Result<readonly string[]>> {
  const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--', ...paths];
  const listed = await runOwn(git, folder, ['--literal-pathspecs', ...args]);
  return listed.ok ? ok(listed.value.split('\0').filter((path) => path !== '')) : listed;
}
