/** Scratch worktrees, in which the commits of several sessions are merged and checked. */
import { basename, dirname } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import { listNames } from '../../core/text.ts';
import { systemFailure } from '../../store/system-failure.ts';

import type { Git } from '../git.ts';
import { askOwn, gitFailure, identityOptions, longTimeoutMs, runOwn } from '../run-git.ts';

const long = { timeoutMs: longTimeoutMs };
const namesShown = 10;

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

/** Paths on which the two commits conflict. */
export async function conflictsOf(
  git: Git,
  repository: string,
  one: string,
  other: string,
): Promise<Result<readonly string[]>> {
  const args = ['merge-tree', '--write-tree', '--name-only', '--no-messages', '-z', one, other];
  const asked = await askOwn(git, repositoryDir(repository), args, long);
  if (!asked.ok) return asked;
  const { exitCode, stdout } = asked.value;
  if (exitCode === 0) return ok([]);
  // The first name is that of the tree.
  if (exitCode === 1) return ok([...new Set(stdout.split('\0').slice(1))].filter((name) => name !== ''));
  return gitFailure(args, asked.value);
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
