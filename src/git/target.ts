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

/**
 * Fails with `usage` when a checkout of the branch has changes or an unfinished operation, or when another worktree has
 * an unfinished operation on the branch.
 */
export async function checkTarget(git: Git, { repository, branch, checkouts }: MergeTarget): Promise<Result<void>> {
  const { files } = git.world;
  const linked = join(repository, 'worktrees');
  for (const folder of [repository, ...files.list(linked).map((name) => join(linked, name))]) {
    const heads = ['rebase-merge', 'rebase-apply'].map((name) => files.readText(join(folder, name, 'head-name')));
    const names = [...heads, files.readText(join(folder, 'BISECT_START'))].map((text) => text?.trim());
    if (names.includes(`refs/heads/${branch}`) || names.at(-1) === branch) {
      const where = `The branch ${quoted(branch)} of ${repositoryDir(repository)}`;
      const message = `${where} is in the middle of a rebase or a bisection.`;
      return fail('usage', message, 'Finish or abort it, then merge again.');
    }
  }
  for (const checkout of checkouts) {
    const clean = await checkCheckout(git, checkout, branch);
    if (!clean.ok) return clean;
  }
  return ok(undefined);
}

/** Files in a worktree's git directory that mark an unfinished operation. */
const unfinished: readonly (readonly [string, string])[] = [
  ['MERGE_HEAD', 'a merge'],
  ['rebase-merge', 'a rebase'],
  ['rebase-apply', 'a rebase'],
  ['CHERRY_PICK_HEAD', 'a cherry-pick'],
  ['REVERT_HEAD', 'a revert'],
];

async function checkCheckout(git: Git, checkout: string, branch: string): Promise<Result<void>> {
  const gitDir = await runOwn(git, checkout, ['rev-parse', '--absolute-git-dir']);
  if (!gitDir.ok) return gitDir;
  const folder = gitDir.value.replace(/\n$/, '');
  const is = (name: string): boolean => git.world.files.entryKind(join(folder, name)) !== null;
  const what = unfinished.find(([name]) => is(name))?.[1];
  const where = `${checkout}, where ${quoted(branch)} is checked out,`;
  if (what !== undefined) {
    return fail('usage', `${where} is in the middle of ${what}.`, 'Finish or abort it, then merge again.');
  }
  if (is('index.lock')) {
    const next = `Wait for it. If no git command is running there, remove ${join(folder, 'index.lock')}.`;
    return fail('usage', `${where} is locked by another git command.`, next);
  }
  // Changes inside a submodule do not matter here.
  const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
  const status = await runOwn(git, checkout, args);
  if (!status.ok) return status;
  // Resume files belong to the checkout: hooks write to them while sessions run, and no session branch has them.
  const isOwn = (line: string): boolean => /^(?: M|M |MM) /.test(line) && isCheckoutState(line.slice(3));
  const changed = status.value.split('\0').flatMap((line) => (line === '' || isOwn(line) ? [] : [line.slice(3)]));
  if (changed.length === 0) return ok(undefined);
  const next = 'Commit or stash them, then merge again.';
  return fail('usage', `${where} has uncommitted changes: ${quotedNames(changed)}.`, next);
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

/** The same for commits that are not merged yet, as far as it can be predicted. */
export async function checkRoomBefore(
  git: Git,
  target: MergeTarget,
  sources: readonly string[],
): Promise<Result<void>> {
  // A file that one session adds and a later one removes never appears.
  const args = ['merge-base', '--independent', ...sources];
  const last = sources.length === 0 ? ok('') : await runOwn(git, repositoryDir(target.repository), args);
  if (!last.ok) return last;
  for (const source of last.value.split('\n').filter((line) => line !== '')) {
    const parted = await askOwn(git, repositoryDir(target.repository), ['merge-base', target.commit, source]);
    if (!parted.ok) return parted;
    // A file removed only by the target is in the source, but the merge does not restore it.
    const commit = parted.value.exitCode === 0 ? parted.value.stdout.trim() : target.commit;
    const room = await checkRoom(git, { ...target, commit }, source);
    if (!room.ok) return room;
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
