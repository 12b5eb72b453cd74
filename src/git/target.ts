/**
 * The branch into which work is merged: where it stands, where it is checked out, and what of the user's would be in
 * the way of moving it. Nothing is changed here.
 */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { Git } from './git.ts';
import { askOwn, refusal, runOwn } from './run-git.ts';
import { isCheckoutState } from './stage.ts';
import { listed, repositoryDir } from './worktrees/scratch.ts';
import { listWorktrees } from './worktrees/worktree.ts';

export interface Target {
  /** As in SessionDefinition. */
  readonly repository: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Full id of its last commit. */
  readonly commit: string;
  /** Roots of the worktrees in which it is checked out. */
  readonly checkouts: readonly string[];
}

/** Full id of a branch's last commit; null when there is no such branch. Fails with `worktree-failed`. */
export async function tipOf(git: Git, repository: string, branch: string): Promise<Result<string | null>> {
  const ref = `refs/heads/${branch}`;
  const asked = await askOwn(git, repositoryDir(repository), ['rev-parse', '--verify', '--quiet', `${ref}^{commit}`]);
  if (!asked.ok) return asked;
  const { exitCode, stdout } = asked.value;
  if (exitCode === 0) return ok(stdout.trim());
  // A name that is none and a ref that points nowhere look the same; only the latter is damage.
  const known = await runOwn(git, repositoryDir(repository), ['for-each-ref', '--format=%(refname)', ref]);
  if (!known.ok) return known;
  if (!known.value.split('\n').includes(ref)) return ok(null);
  return fail(
    'worktree-failed',
    `The branch ${quoted(branch)} of ${repositoryDir(repository)} names no commit.`,
    'See: git fsck',
  );
}

/** Fails with `usage` (no such branch, another name for a branch) and `worktree-failed`. */
export async function readTarget(git: Git, repository: string, branch: string): Promise<Result<Target>> {
  if (git.world.files.info(repository)?.kind !== 'folder') {
    return fail(
      'usage',
      `The repository ${repositoryDir(repository)} is gone.`,
      'Put it back where it was, then merge again.',
    );
  }
  const named = await askOwn(git, repositoryDir(repository), ['check-ref-format', `refs/heads/${branch}`]);
  if (!named.ok) return named;
  if (named.value.exitCode !== 0) {
    return fail('usage', `${quoted(branch)} cannot be the name of a branch.`, 'Give the name of a branch to --into.');
  }
  const tip = await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  if (tip.value === null) {
    return fail(
      'usage',
      `${repositoryDir(repository)} has no branch ${quoted(branch)}.`,
      `Make it with git branch, or name another one with --into.`,
    );
  }
  const link = await askOwn(git, repositoryDir(repository), ['symbolic-ref', '--quiet', `refs/heads/${branch}`]);
  if (!link.ok) return link;
  if (link.value.exitCode === 0) {
    const real = link.value.stdout.trim().replace(/^refs\/heads\//, '');
    const where = repositoryDir(repository);
    const message = `The branch ${quoted(branch)} of ${where} is only another name for ${quoted(real)}.`;
    return fail('usage', message, `Name that one with --into.`);
  }
  const checkouts = await checkoutsOf(git, repository, branch);
  return checkouts.ok ? ok({ repository, branch, commit: tip.value, checkouts: checkouts.value }) : checkouts;
}

/** Roots of the worktrees that have the branch checked out and are there. */
async function checkoutsOf(git: Git, repository: string, branch: string): Promise<Result<readonly string[]>> {
  const worktrees = await listWorktrees(git, repositoryDir(repository));
  if (!worktrees.ok) return worktrees;
  const found: string[] = [];
  for (const worktree of worktrees.value) {
    if (worktree.branch !== branch || git.world.files.info(worktree.path)?.kind !== 'folder') continue;
    // Of a submodule's repository git lists the git folder; a bare repository has no root.
    const top = await askOwn(git, worktree.path, ['rev-parse', '--show-toplevel']);
    if (!top.ok) return top;
    const root = top.value.stdout.replace(/\n$/, '');
    if (top.value.exitCode === 0 && root !== '') found.push(root);
  }
  return ok(found);
}

/**
 * Fails with `usage` when a checkout of the branch holds changes, or is in the middle of something, or when another
 * worktree is in the middle of something with the branch. What belongs to a checkout may have changed there as long as
 * none of the commits in `sources`, which are to be merged, brings another one.
 */
export async function checkTarget(git: Git, target: Target, sources: readonly string[]): Promise<Result<void>> {
  const { repository, branch, checkouts } = target;
  const { files } = git.world;
  const linked = join(repository, 'worktrees');
  for (const folder of [repository, ...files.list(linked).map((name) => join(linked, name))]) {
    const heads = ['rebase-merge', 'rebase-apply'].map((name) => files.readText(join(folder, name, 'head-name')));
    const names = [...heads, files.readText(join(folder, 'BISECT_START'))].map((text) => text?.trim());
    if (names.includes(`refs/heads/${branch}`) || names.at(-1) === branch) {
      const where = `The branch ${quoted(branch)} of ${repositoryDir(repository)}`;
      const message = `${where} is in the middle of a rebase or a bisection.`;
      return fail('usage', message, 'Finish or abort that, then merge again.');
    }
  }
  for (const checkout of checkouts) {
    const clean = await checkCheckout(git, checkout, target, sources);
    if (!clean.ok) return clean;
  }
  return ok(undefined);
}

/** Files in the folder of a worktree's git directory that say what it is in the middle of. */
const unfinished: readonly (readonly [string, string])[] = [
  ['MERGE_HEAD', 'a merge'],
  ['rebase-merge', 'a rebase'],
  ['rebase-apply', 'a rebase'],
  ['CHERRY_PICK_HEAD', 'a cherry-pick'],
  ['REVERT_HEAD', 'a revert'],
];

async function checkCheckout(
  git: Git,
  checkout: string,
  target: Target,
  sources: readonly string[],
): Promise<Result<void>> {
  const { branch } = target;
  const gitDir = await runOwn(git, checkout, ['rev-parse', '--absolute-git-dir']);
  if (!gitDir.ok) return gitDir;
  const folder = gitDir.value.replace(/\n$/, '');
  const is = (name: string): boolean => git.world.files.entryKind(join(folder, name)) !== null;
  const what = unfinished.find(([name]) => is(name))?.[1];
  const where = `${checkout}, where ${quoted(branch)} is checked out,`;
  if (what !== undefined) {
    return fail('usage', `${where} is in the middle of ${what}.`, 'Finish or abort that, then merge again.');
  }
  if (is('index.lock')) {
    const next = `Wait for it; if no git is at work there, remove ${join(folder, 'index.lock')}.`;
    return fail('usage', `${where} is held by another git command.`, next);
  }
  // What changed inside of a submodule is the submodule's own matter.
  const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
  const status = await runOwn(git, checkout, args);
  if (!status.ok) return status;
  const entries = status.value.split('\0').filter((line) => line !== '');
  const passed = await unconcerned(git, target, entries, sources);
  if (!passed.ok) return passed;
  const changed = entries.map((line) => line.slice(3)).filter((path) => !passed.value.has(path));
  if (changed.length === 0) return ok(undefined);
  const next = 'Commit them or put them aside with git stash, then merge again.';
  return fail('usage', `${where} holds changes that are in no commit: ${listed(changed)}.`, next);
}

/** Of what `git status` tells, the paths that may stay as they are. */
async function unconcerned(
  git: Git,
  { repository, commit }: Target,
  entries: readonly string[],
  sources: readonly string[],
): Promise<Result<ReadonlySet<string>>> {
  const own = entries.filter((line) => /^(?: M|M |MM) /.test(line)).map((line) => line.slice(3));
  const paths = new Set(own.filter(isCheckoutState));
  if (paths.size === 0) return ok(paths);
  for (const source of sources) {
    const made = await madeSince(git, repository, commit, source);
    if (!made.ok) return made;
    for (const { path } of made.value) paths.delete(path);
  }
  return ok(paths);
}

/** What a commit brings that is to be merged into another one. */
async function madeSince(
  git: Git,
  repository: string,
  commit: string,
  source: string,
): Promise<Result<readonly ChangedPath[]>> {
  const parted = await askOwn(git, repositoryDir(repository), ['merge-base', commit, source]);
  if (!parted.ok) return parted;
  const base = parted.value.exitCode === 0 ? parted.value.stdout.trim() : commit;
  return changedPaths(git, repository, base, source);
}

export interface ChangedPath {
  readonly path: string;
  readonly before: boolean;
  readonly after: boolean;
}

/** What is different between two commits, by paths from the top. */
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

/**
 * Fails with `usage` when a checkout holds a file that git does not track, ignored or not, where moving the branch to
 * `to` would put one: it would be lost.
 */
export async function checkRoom(git: Git, target: Target, to: string): Promise<Result<void>> {
  const { repository, commit, checkouts } = target;
  if (checkouts.length === 0 || commit === to) return ok(undefined);
  const changed = await changedPaths(git, repository, commit, to);
  return changed.ok ? checkPaths(git, target, sidesOf(changed.value)) : changed;
}

/** The same for commits that are not merged yet, as far as it can be told before. */
export async function checkRoomBefore(git: Git, target: Target, sources: readonly string[]): Promise<Result<void>> {
  const { repository, commit, checkouts } = target;
  if (checkouts.length === 0 || sources.length === 0) return ok(undefined);
  // What one adds and a later one removes is never there.
  const last = await runOwn(git, repositoryDir(repository), ['merge-base', '--independent', ...sources]);
  if (!last.ok) return last;
  for (const source of last.value.split('\n').filter((line) => line !== '')) {
    const made = await madeSince(git, repository, commit, source);
    if (!made.ok) return made;
    const different = await changedPaths(git, repository, commit, source);
    if (!different.ok) return different;
    const missing = new Set(sidesOf(different.value).added);
    const { added, tracked } = sidesOf(made.value);
    const room = await checkPaths(git, target, { added: added.filter((path) => missing.has(path)), tracked });
    if (!room.ok) return room;
  }
  return ok(undefined);
}

interface Sides {
  readonly added: readonly string[];
  readonly tracked: ReadonlySet<string>;
}

function sidesOf(changed: readonly ChangedPath[]): Sides {
  return {
    added: changed.flatMap(({ path, before, after }) => (after && !before ? [path] : [])),
    tracked: new Set(changed.flatMap(({ path, before }) => (before ? [path] : []))),
  };
}

async function checkPaths(git: Git, { branch, checkouts }: Target, { added, tracked }: Sides): Promise<Result<void>> {
  for (const checkout of checkouts) {
    const seen = new Map<string, Promise<Result<string | null>>>();
    const inTheWay = new Set<string>();
    for (const path of added) {
      const found = await obstacleTo(git, checkout, path, tracked, seen);
      if (!found.ok) return found;
      if (found.value !== null) inTheWay.add(found.value);
    }
    if (inTheWay.size > 0) {
      const where = `${checkout}, where ${quoted(branch)} is checked out`;
      const message = `Files that git does not track are in the way in ${where}: ${listed([...inTheWay])}.`;
      return fail('usage', message, 'Move them away or commit them, then merge again.');
    }
  }
  return ok(undefined);
}

/** The untracked path that would have to go for `path`; null when there is room. */
async function obstacleTo(
  git: Git,
  checkout: string,
  path: string,
  tracked: ReadonlySet<string>,
  seen: Map<string, Promise<Result<string | null>>>,
): Promise<Result<string | null>> {
  const { files } = git.world;
  const parent = dirname(path);
  if (parent !== '.') {
    const above = seen.get(parent) ?? obstacleAbove(git, checkout, parent, tracked);
    seen.set(parent, above);
    const found = await above;
    if (!found.ok || found.value !== null) return found;
  }
  const kind = files.entryKind(join(checkout, path));
  if (kind === null || tracked.has(path)) return ok(null);
  // A folder is no obstacle when all it holds is tracked: then that goes with it.
  return kind === 'folder' ? untrackedIn(git, checkout, path) : ok(path);
}

/** The nearest thing above that is no folder, unless it is tracked and goes. */
async function obstacleAbove(
  { world: { files } }: Git,
  checkout: string,
  folder: string,
  tracked: ReadonlySet<string>,
): Promise<Result<string | null>> {
  for (let path = folder; path !== '.'; path = dirname(path)) {
    const kind = files.entryKind(join(checkout, path));
    if (kind !== null && kind !== 'folder') return ok(tracked.has(path) ? null : path);
    if (kind === 'folder') return ok(null);
  }
  return ok(null);
}

async function untrackedIn(git: Git, checkout: string, path: string): Promise<Result<string | null>> {
  const args = ['--literal-pathspecs', 'ls-files', '-z', '--others', '--', path];
  const others = await askOwn(git, checkout, args);
  if (!others.ok) return others;
  if (others.value.exitCode !== 0) return refusal(args, others.value);
  return ok(others.value.stdout.split('\0').find((name) => name !== '') ?? null);
}
