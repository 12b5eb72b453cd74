/**
 * Worktrees of a repository: list, create, remove; git's view of the files in them; and scratch worktrees, in which the
 * commits of several sessions are merged and checked.
 */
import { basename, dirname } from 'node:path';
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import { listNames } from '../../core/text.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Git } from '../git.ts';
import { askOwn, gitFailure, identityOptions, longTimeoutMs, runOwn } from '../run-git.ts';
import { withoutSetUp } from '../stage.ts';

const long = { timeoutMs: longTimeoutMs };
const namesShown = 10;

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
  const listed = await runOwn(git, folder, ['worktree', 'list', '--porcelain']);
  if (!listed.ok) return listed;
  return ok(listed.value.split('\n\n').flatMap((entry) => parseEntry(entry.split('\n')) ?? []));
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
  const added = await runOwn(git, repository, ['worktree', 'add', '--quiet', ...args], long);
  return added.ok ? ok(undefined) : added;
}

/** Merging `commit` would change nothing in `into`, even after a squash. False when git cannot tell. */
export async function isMerged(git: Git, folder: string, commit: string, into = 'HEAD'): Promise<boolean> {
  const merged = await runOwn(git, folder, ['merge-tree', '--write-tree', into, commit]);
  const own = merged.ok ? await runOwn(git, folder, ['rev-parse', '--verify', `${into}^{tree}`]) : merged;
  return merged.ok && own.ok && merged.value.trim() === own.value.trim();
}

/** Removes a worktree with its files, or the entry of a missing one; its branch stays. */
export async function removeWorktree(git: Git, repository: string, folder: string): Promise<Result<void>> {
  // The second --force is for one that a killed git left marked as initializing.
  const args = ['worktree', 'remove', '--force', '--force', '--', folder];
  const removed = await runOwn(git, repository, args, long);
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

// Scratch worktrees, in which the commits of several sessions are merged and checked.

/** The folder for git commands on a repository: git can be set to distrust a bare git folder. */
export function repositoryDir(repository: string): string {
  return basename(repository) === '.git' ? dirname(repository) : repository;
}

/** Checks the commit out at `path` without a branch; leftovers of an earlier command are removed first. */
export async function makeScratch(git: Git, repository: string, path: string, commit: string): Promise<Result<void>> {
  const cleared = await removeScratch(git, repository, path);
  if (!cleared.ok) return cleared;
  git.world.files.makeFolder(dirname(path));
  const added = await runOwn(git, repositoryDir(repository), scratchArgs(path, commit), long);
  if (added.ok) return ok(undefined);
  await removeScratch(git, repository, path);
  return added;
}

export function scratchArgs(path: string, commit: string): string[] {
  return ['worktree', 'add', '--quiet', '--force', '--detach', '--', path, commit];
}

/** Also removes a worktree of which only the folder, or only git's entry, is left. Fails with `write-failed`. */
export async function removeScratch(git: Git, repository: string, path: string): Promise<Result<void>> {
  const { files } = git.world;
  const args = ['worktree', 'remove', '--force', '--force', '--', path];
  const isRepository = files.info(repository)?.kind === 'folder';
  if (isRepository && files.entryKind(path) !== null) await askOwn(git, repositoryDir(repository), args, long);
  try {
    files.remove(path);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  // Git also removes an entry without a folder, unless it never had one.
  if (isRepository) await askOwn(git, repositoryDir(repository), args, long);
  return ok(undefined);
}

export type Merged =
  | { readonly commit: string }
  /** Paths from the top that both sides changed. */
  | { readonly conflicts: readonly string[] };

/** Merges the commit into the checkout; after a conflict the merge stays unfinished. */
export async function mergeInto(git: Git, scratch: string, commit: string, message: string): Promise<Result<Merged>> {
  const identity = await identityOptions(git, scratch);
  if (!identity.ok) return identity;
  const args = [...identity.value, ...mergeArgs(commit, message)];
  const merged = await askOwn(git, scratch, args, long);
  if (!merged.ok) return merged;
  if (merged.value.exitCode === 0) {
    const head = await runOwn(git, scratch, ['rev-parse', '--verify', 'HEAD^{commit}']);
    return head.ok ? ok({ commit: head.value.trim() }) : head;
  }
  const unmerged = await runOwn(git, scratch, ['diff', '--name-only', '--no-relative', '--diff-filter=U', '-z']);
  if (!unmerged.ok) return unmerged;
  const names = unmerged.value.split('\0').filter((name) => name !== '');
  return names.length === 0 ? gitFailure(['merge'], merged.value) : ok({ conflicts: names });
}

/** Paths on which the two commits conflict. `scratch`: where a git older than 2.38 merges them. */
export async function conflictsOf(
  git: Git,
  repository: string,
  [one, other]: readonly [string, string],
  scratch: string,
): Promise<Result<readonly string[]>> {
  const args = ['merge-tree', '--write-tree', '--name-only', '--no-messages', '-z', one, other];
  const asked = await askOwn(git, repositoryDir(repository), args, long);
  if (!asked.ok) return asked;
  const { exitCode, stdout } = asked.value;
  if (exitCode === 0) return ok([]);
  // The first name is that of the tree.
  if (exitCode === 1) return ok([...new Set(stdout.split('\0').slice(1))].filter((name) => name !== ''));
  if (exitCode !== 129) return gitFailure(args, asked.value);
  const made = await makeScratch(git, repository, scratch, one);
  if (!made.ok) return made;
  const merged = await mergeInto(git, scratch, other, 'review');
  const removed = await removeScratch(git, repository, scratch);
  if (!merged.ok || !removed.ok) return merged.ok ? (removed as Result<never>) : merged;
  return ok('conflicts' in merged.value ? merged.value.conflicts : []);
}

/** Whether `commit` changed one of the paths since it diverged from `other`; true when git cannot tell. */
export async function changedSince(
  git: Git,
  repository: string,
  other: string,
  commit: string,
  paths: readonly string[],
): Promise<Result<boolean>> {
  const args = ['diff', '--quiet', '--no-ext-diff', '--no-renames', `${other}...${commit}`, '--', ...paths];
  const asked = await askOwn(git, repositoryDir(repository), ['--literal-pathspecs', ...args], long);
  return asked.ok ? ok(asked.value.exitCode !== 0) : asked;
}

export function mergeArgs(commit: string, message: string): string[] {
  return ['merge', ...mergeOptions, '-m', message, commit];
}

/** Explicit, because the user's configuration may differ. */
const mergeOptions = [
  ...['--quiet', '--ff', '--commit', '--no-edit', '--no-log', '--no-squash', '--no-autostash', '--no-signoff'],
  ...['--no-verify', '--cleanup=whitespace'],
];

/** Resets the scratch worktree to the commit; ignored files such as installed packages stay. */
export async function restore(git: Git, scratch: string, commit: string): Promise<Result<void>> {
  const checkedOut = await runOwn(git, scratch, ['checkout', '--quiet', '--force', '--detach', commit, '--'], long);
  if (!checkedOut.ok) return checkedOut;
  const cleaned = await runOwn(git, scratch, ['clean', '-ffdq'], long);
  return cleaned.ok ? ok(undefined) : cleaned;
}

export function quotedNames(names: readonly string[]): string {
  return listNames(
    names.map((name) => JSON.stringify(name)),
    namesShown,
  );
}

export function shortCommit(commit: string): string {
  return commit.slice(0, 10);
}
