/** Work trees of a repository: made, listed and removed; and what git thinks of the files in them. */
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { type Git, runGit } from '../git.ts';

/** A large repository takes its time to be checked out. */
const checkoutTimeoutMs = 5 * 60_000;
const localTimeoutMs = 60_000;

export interface Worktree {
  /** Absolute. */
  readonly path: string;
  /** Absent when a commit is checked out by itself. */
  readonly branch?: string;
}

/** All work trees, the repository's first one in front. Fails with `not-found` outside of a repository. */
export async function listWorktrees(git: Git, folder: string): Promise<Result<readonly Worktree[]>> {
  const listed = await local(git, folder, ['worktree', 'list', '--porcelain', '-z']);
  if (!listed.ok) return listed;
  const worktrees = listed.value.split('\0\0').flatMap((entry) => {
    const fields = entry.split('\0');
    const path = fieldOf(fields, 'worktree ');
    const branch = fieldOf(fields, 'branch refs/heads/');
    return path === undefined ? [] : [{ path, ...defined({ branch }) }];
  });
  return ok(worktrees);
}

function fieldOf(fields: readonly string[], start: string): string | undefined {
  return fields.find((field) => field.startsWith(start))?.slice(start.length);
}

/**
 * Makes a work tree at the absolute path `folder`, on the branch, which is made from what is checked out when it does
 * not exist. Fails with `not-found` and git's own reason, and with `timeout`.
 */
export async function addWorktree(
  git: Git,
  { repository, folder, branch }: { readonly repository: string; readonly folder: string; readonly branch: string },
): Promise<Result<void>> {
  const found = await local(git, repository, ['for-each-ref', '--format=%(refname)', `refs/heads/${branch}`]);
  if (!found.ok) return found;
  const exists = found.value.split('\n').includes(`refs/heads/${branch}`);
  const args = exists ? [folder, branch] : ['-b', branch, folder];
  const added = await runGit(git, {
    cwd: repository,
    timeoutMs: checkoutTimeoutMs,
    own: true,
    args: ['worktree', 'add', '--quiet', ...args],
  });
  if (added.ok) return ok(undefined);
  return withNext(added, 'Check the branch and the folder with git worktree list; a repository needs a first commit.');
}

/**
 * Whether the branch adds nothing to what is checked out in `folder`: it is part of its history, or merging it would
 * change nothing, as after a squash. False also when git cannot tell.
 */
export async function isMerged(git: Git, folder: string, branch: string): Promise<boolean> {
  const merged = await local(git, folder, ['merge-tree', '--write-tree', 'HEAD', `refs/heads/${branch}`]);
  const own = merged.ok ? await local(git, folder, ['rev-parse', '--verify', 'HEAD^{tree}']) : merged;
  if (merged.ok && own.ok) return merged.value.trim() === own.value.trim();
  // Only a git of 2022 and later can merge without a work tree.
  return (await local(git, folder, ['merge-base', '--is-ancestor', `refs/heads/${branch}`, 'HEAD'])).ok;
}

/** Removes a work tree with all that is in it; its branch stays. The caller has made sure that nothing is lost. */
export async function removeWorktree(git: Git, repository: string, folder: string): Promise<Result<void>> {
  const removed = await runGit(git, {
    cwd: repository,
    timeoutMs: checkoutTimeoutMs,
    own: true,
    args: ['worktree', 'remove', '--force', folder],
  });
  return removed.ok ? ok(undefined) : withNext(removed, 'See git worktree list.');
}

/** Makes git forget work trees whose folders are gone. */
export async function pruneWorktrees(git: Git, repository: string): Promise<Result<void>> {
  const pruned = await local(git, repository, ['worktree', 'prune']);
  return pruned.ok ? ok(undefined) : pruned;
}

/** Paths, from the top of the work tree, of what is changed, staged or new; ignored files are none of them. */
export async function changedFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const args = ['status', '--porcelain', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=none'];
  const listed = await local(git, folder, args);
  if (!listed.ok) return listed;
  return ok(
    listed.value
      .split('\0')
      .filter((line) => line !== '')
      .map((line) => line.slice(3)),
  );
}

/** Paths, from the top of the work tree, of all files that git ignores. */
export async function allIgnoredFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const listed = await local(git, folder, ['ls-files', '-z', '--others', '--ignored', '--exclude-standard']);
  return listed.ok ? ok(listed.value.split('\0').filter((path) => path !== '')) : listed;
}

/** Which of the existing files, by paths from `folder`, git ignores and does not track all the same. */
export async function ignoredFiles(
  git: Git,
  folder: string,
  paths: readonly string[],
): Promise<Result<readonly string[]>> {
  const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--', ...paths];
  const listed = await local(git, folder, ['--literal-pathspecs', ...args]);
  return listed.ok ? ok(listed.value.split('\0').filter((path) => path !== '')) : listed;
}

async function local(git: Git, cwd: string, args: readonly string[]): Promise<Result<string>> {
  return withNext(
    await runGit(git, { cwd, timeoutMs: localTimeoutMs, own: true, args }),
    'Check the repository with git status.',
  );
}

/** For a failure that says what happened, but not what to do. */
function withNext<T>(result: Result<T>, next: string): Result<T> {
  if (result.ok || result.failure.next.sentence !== '') return result;
  return fail(result.failure.reason, result.failure.message, next);
}
