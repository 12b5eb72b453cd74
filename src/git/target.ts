/** The branch into which work is merged, and user changes in the way. Read only. */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { Git } from './git.ts';
import { askOwn, commitOf, runOwn } from './run-git.ts';
import { isCheckoutState } from './stage.ts';
import { quotedNames, repositoryDir } from './worktrees/scratch.ts';
import { listWorktrees } from './worktrees/worktree.ts';

export interface MergeTarget {
  readonly repository: string;
  readonly branch: string;
  readonly commit: string;
  /** Roots of the worktrees in which it is checked out. */
  readonly checkouts: readonly string[];
}

/** Full id of a branch's last commit; null without such a branch. Fails with `worktree-failed`. */
export function tipOf(git: Git, repository: string, branch: string): Promise<Result<string | null>> {
  return commitOf(git, repositoryDir(repository), `refs/heads/${branch}`);
}

/** Fails with `usage` (no such branch) and `worktree-failed`. */
export async function readTarget(git: Git, repository: string, branch: string): Promise<Result<MergeTarget>> {
  if (git.world.files.info(repository)?.kind !== 'folder') {
    return fail('usage', `The repository ${repositoryDir(repository)} is missing.`, 'Restore it, then merge again.');
  }
  const tip = await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  if (tip.value === null) {
    return fail(
      'usage',
      `${repositoryDir(repository)} has no branch ${quoted(branch)}.`,
      `Create it with git branch, or name another one with --into.`,
    );
  }
  const checkouts = await checkoutsOf(git, repository, branch);
  return checkouts.ok ? ok({ repository, branch, commit: tip.value, checkouts: checkouts.value }) : checkouts;
}

/** Roots of the existing worktrees that have the branch checked out. */
async function checkoutsOf(git: Git, repository: string, branch: string): Promise<Result<readonly string[]>> {
  const worktrees = await listWorktrees(git, repositoryDir(repository));
  if (!worktrees.ok) return worktrees;
  const found: string[] = [];
  for (const worktree of worktrees.value) {
    if (worktree.branch !== branch || git.world.files.info(worktree.path)?.kind !== 'folder') continue;
    // For a submodule's repository git lists the git folder; a bare repository has no root.
    const top = await askOwn(git, worktree.path, ['rev-parse', '--show-toplevel']);
    if (!top.ok) return top;
    const root = top.value.stdout.replace(/\n$/, '');
    if (top.value.exitCode === 0 && root !== '') found.push(root);
  }
  return ok(found);
}

/** Fails with `usage` when a checkout of the branch has changes, or when the branch is being rebased. */
export async function checkTarget(git: Git, { repository, branch, checkouts }: MergeTarget): Promise<Result<void>> {
  const { files } = git.world;
  const linked = join(repository, 'worktrees');
  for (const folder of [repository, ...files.list(linked).map((name) => join(linked, name))]) {
    const heads = ['rebase-merge', 'rebase-apply'].map((name) => files.readText(join(folder, name, 'head-name')));
    if (!heads.some((head) => head?.trim() === `refs/heads/${branch}`)) continue;
    const message = `The branch ${quoted(branch)} of ${repositoryDir(repository)} is in the middle of a rebase.`;
    return fail('usage', message, 'Finish or abort it, then merge again.');
  }
  for (const checkout of checkouts) {
    // Changes inside a submodule do not matter here.
    const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
    const status = await runOwn(git, checkout, args);
    if (!status.ok) return status;
    // Resume files belong to the checkout: hooks write to them while sessions run, and no session branch has them.
    const isOwn = (line: string): boolean => /^(?: M|M |MM) /.test(line) && isCheckoutState(line.slice(3));
    const changed = status.value.split('\0').flatMap((line) => (line === '' || isOwn(line) ? [] : [line.slice(3)]));
    if (changed.length === 0) continue;
    const message = `${checkout}, where ${quoted(branch)} is checked out, has uncommitted changes: `;
    return fail('usage', `${message}${quotedNames(changed)}.`, 'Commit or stash them, then merge again.');
  }
  return ok(undefined);
}

export interface ChangedPath {
  readonly path: string;
  readonly before: boolean;
  readonly after: boolean;
}

export async function changedPaths(
  git: Git,
  repository: string,
  from: string,
  to: string,
): Promise<Result<readonly ChangedPath[]>> {
  const args = ['diff-tree', '-r', '-z', '--name-status', '--no-renames', from, to];
  const listing = await runOwn(git, repositoryDir(repository), args);
  if (!listing.ok) return listing;
  const words = listing.value.split('\0');
  const changed: ChangedPath[] = [];
  for (let index = 0; index + 1 < words.length; index += 2) {
    const [status, path] = [words[index] as string, words[index + 1] as string];
    changed.push({ path, before: status !== 'A', after: status !== 'D' });
  }
  return ok(changed);
}

/** Arguments of one command are limited by the system. */
const pathsAtOnce = 200;

/**
 * Fails with `usage` when a checkout has an untracked file, ignored or not, where moving the branch to `to` would write
 * one: the file would be lost.
 */
export async function checkRoom(git: Git, target: MergeTarget, to: string): Promise<Result<void>> {
  const { repository, branch, commit, checkouts } = target;
  if (checkouts.length === 0 || commit === to) return ok(undefined);
  const changed = await changedPaths(git, repository, commit, to);
  if (!changed.ok) return changed;
  const tracked = new Set(changed.value.flatMap(({ path, before }) => (before ? [path] : [])));
  const added = changed.value.flatMap(({ path, before }) => (before ? [] : [path]));
  for (const checkout of checkouts) {
    const inTheWay = new Set(added.flatMap((path) => obstacleAbove(git, checkout, path, tracked) ?? []));
    for (let first = 0; first < added.length; first += pathsAtOnce) {
      const some = added.slice(first, first + pathsAtOnce);
      const others = await runOwn(git, checkout, ['--literal-pathspecs', 'ls-files', '-z', '--others', '--', ...some]);
      if (!others.ok) return others;
      for (const path of others.value.split('\0')) if (path !== '') inTheWay.add(path);
    }
    if (inTheWay.size > 0) {
      const where = `${checkout}, where ${quoted(branch)} is checked out,`;
      const message = `Untracked files in ${where} would be overwritten: ${quotedNames([...inTheWay])}.`;
      return fail('usage', message, 'Move them away or commit them, then merge again.');
    }
  }
  return ok(undefined);
}

/** The nearest non-folder above the path, unless it is tracked and removed; null when the path is free. */
function obstacleAbove(
  { world: { files } }: Git,
  checkout: string,
  path: string,
  tracked: ReadonlySet<string>,
): string | null {
  for (let above = dirname(path); above !== '.'; above = dirname(above)) {
    const kind = files.entryKind(join(checkout, above));
    if (kind === 'folder') return null;
    if (kind !== null) return tracked.has(above) ? null : above;
  }
  return null;
}
