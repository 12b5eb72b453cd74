/**
 * The branches into which work is merged: finds what is in the way, and moves them with their checkouts, all or none.
 * After a crash a second call finishes.
 */
import { dirname, join } from 'node:path';
import { shellWord } from '../core/advice.ts';
import { describeFailure, fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { Move } from '../store/merge-journal.ts';
import type { Git } from './git.ts';
import {
  askOwn,
  commitOf,
  currentBranch,
  gitFailure,
  identityOptions,
  isAncestor,
  longTimeoutMs,
  runOwn,
} from './run-git.ts';
import { checkoutStates, isCheckoutState } from './stage.ts';
import { listWorktrees, quotedNames, repositoryDir, shortCommit } from './worktrees/worktree.ts';

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
    const free = await checkFree(git, checkout, branch);
    if (!free.ok) return free;
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

/** Files in a worktree's git directory that mark an unfinished operation. */
const unfinished: Readonly<Record<string, string>> = {
  MERGE_HEAD: 'in the middle of a merge',
  CHERRY_PICK_HEAD: 'in the middle of a cherry-pick',
  REVERT_HEAD: 'in the middle of a revert',
  'index.lock': 'locked by another git command',
};

/** Moves would fail halfway, or end in the user's own merge. */
async function checkFree(git: Git, checkout: string, branch: string): Promise<Result<void>> {
  const gitDir = await runOwn(git, checkout, ['rev-parse', '--absolute-git-dir']);
  if (!gitDir.ok) return gitDir;
  const folder = gitDir.value.replace(/\n$/, '');
  const found = Object.entries(unfinished).find(([name]) => git.world.files.entryKind(join(folder, name)) !== null);
  if (found === undefined) return ok(undefined);
  const message = `${checkout}, where ${quoted(branch)} is checked out, is ${found[1]}.`;
  const next = found[0] === 'index.lock' ? `If no git command runs there, remove ${join(folder, found[0])}.` : '';
  return fail('usage', message, `Finish or abort it, then merge again. ${next}`.trim());
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

// Moves branches of several repositories, all or none, and their checkouts; after a crash a second call
// finishes.

export interface Settlement {
  readonly notes: readonly string[];
  /** One or two sentences: why the moves were undone. */
  readonly undone?: string;
}

type RefPosition =
  | 'before'
  | 'after'
  /** Another process added commits on top. */
  | 'beyond'
  /** Another process moved or deleted it. */
  | 'elsewhere';

/**
 * Makes all moves, or undoes them if one is impossible. `what` is for the reflogs. Fails with `worktree-failed` or
 * `write-failed` when neither is possible now; a retry continues.
 */
export async function settleMoves(git: Git, moves: readonly Move[], what: string): Promise<Result<Settlement>> {
  const notes: string[] = [];
  const problem = await forwards(git, moves, `claude-code-agent: ${what}`, notes);
  if (!problem.ok) return problem;
  if (problem.value === null) return ok({ notes });
  const undone = await backwards(git, moves, `claude-code-agent: undo ${what}`, notes);
  return undone.ok ? ok({ undone: problem.value, notes }) : undone;
}

async function forwards(
  git: Git,
  moves: readonly Move[],
  reason: string,
  notes: string[],
): Promise<Result<string | null>> {
  const open: Move[] = [];
  const reached: Move[] = [];
  for (const move of moves) {
    const position = await positionOf(git, move);
    if (!position.ok) return position;
    if (position.value === 'elsewhere') return ok(`The ${nameOf(move)} was moved or deleted by another process.`);
    if (position.value === 'before') open.push(move);
    if (position.value !== 'beyond') reached.push(move);
  }
  for (const move of open) {
    const moved = await update(git, move, { from: move.from, to: move.to, reason });
    if (!moved.ok) return ok(`The ${nameOf(move)} could not be moved: ${describeFailure(moved.failure)}`);
  }
  for (const move of reached) {
    const followed = await follow(git, move, { from: move.from, to: move.to });
    if (!followed.ok)
      return ok(`A checkout of the ${nameOf(move)} could not be updated: ${describeFailure(followed.failure)}`);
    notes.push(...followed.value);
  }
  return ok(null);
}

/** A branch on which others have built meanwhile stays. */
async function backwards(git: Git, moves: readonly Move[], reason: string, notes: string[]): Promise<Result<void>> {
  const returned: Move[] = [];
  for (const move of moves) {
    const position = await positionOf(git, move);
    if (!position.ok) return position;
    if (position.value === 'after') {
      const moved = await update(git, move, { from: move.to, to: move.from, reason });
      if (!moved.ok) return moved;
    }
    if (position.value === 'after' || position.value === 'before') returned.push(move);
  }
  for (const move of returned) {
    const followed = await follow(git, move, { from: move.to, to: move.from, isReturn: true });
    if (!followed.ok) return followed;
    notes.push(...followed.value);
  }
  return ok(undefined);
}

async function positionOf(git: Git, { repository, into, from, to }: Move): Promise<Result<RefPosition>> {
  if (git.world.files.info(repository)?.kind !== 'folder') return ok('elsewhere');
  const tip = await tipOf(git, repository, into);
  if (!tip.ok) return tip;
  if (tip.value === null) return ok('elsewhere');
  if (tip.value === to) return ok('after');
  if (tip.value === from) return ok('before');
  const built = await isAncestor(git, repositoryDir(repository), to, tip.value);
  if (!built.ok) return built;
  return ok(built.value ? 'beyond' : 'elsewhere');
}

async function update(
  git: Git,
  { repository, into }: Move,
  { from, to, reason }: { readonly from: string; readonly to: string; readonly reason: string },
): Promise<Result<void>> {
  const args = ['update-ref', '-m', reason, `refs/heads/${into}`, to, from];
  const asked = await askOwn(git, repositoryDir(repository), args);
  if (!asked.ok) return asked;
  return asked.value.exitCode === 0 ? ok(undefined) : gitFailure(args, asked.value);
}

async function follow(git: Git, move: Move, way: Pick<Follow, 'from' | 'to' | 'isReturn'>): Promise<Result<string[]>> {
  const notes: string[] = [];
  for (const checkout of move.checkouts) {
    const followed = await followBranch(git, { checkout, branch: move.into, ...way });
    if (!followed.ok) return followed;
    notes.push(...followed.value);
  }
  return ok(notes);
}

function nameOf({ repository, into }: Move): string {
  return `branch ${quoted(into)} of ${repositoryDir(repository)}`;
}

const long = { timeoutMs: longTimeoutMs };
const heldOrForbidden = /\.lock': |Permission denied|Read-only file system|No space left|Out of diskspace/;

export interface Follow {
  readonly checkout: string;
  readonly branch: string;
  readonly from: string;
  readonly to: string;
  /** Back to where the checkout was: an interrupted update may have written files of which the index knows nothing. */
  readonly isReturn?: boolean;
}

/**
 * Updates a checkout after its branch has moved. No effect when the checkout is missing, on another branch or already
 * updated. Returns notes about files that were kept. Fails with `worktree-failed`; a retry continues.
 */
export async function followBranch(git: Git, step: Follow): Promise<Result<string[]>> {
  const { checkout, branch, from, to, isReturn } = step;
  if (git.world.files.info(checkout)?.kind !== 'folder') return ok([]);
  const current = await currentBranch(git, checkout);
  if (!current.ok) return current;
  if (current.value !== branch) return ok([]);
  const args = ['read-tree', '-m', '-u', from, to];
  for (const isLast of [false, true]) {
    const read = await askOwn(git, checkout, args, long);
    if (!read.ok) return read;
    if (read.value.exitCode === 0) return isReturn === true ? overwrite(git, step) : ok([]);
    if (heldOrForbidden.test(read.value.stderr)) return gitFailure(args, read.value);
    // A touched but unchanged file counts as changed until the index is refreshed.
    if (!isLast) await askOwn(git, checkout, ['update-index', '-q', '--refresh'], long);
  }
  return overwrite(git, step);
}

/** After an interrupted update, what it left, and perhaps the user's changes meanwhile, are kept in a stash. */
async function overwrite(git: Git, { checkout, from, to }: Follow): Promise<Result<string[]>> {
  const identity = await identityOptions(git, checkout);
  if (!identity.ok) return identity;
  const made = await runOwn(git, checkout, [...identity.value, 'stash', 'create'], long);
  if (!made.ok) return made;
  const stash = made.value.trim();
  const message = 'claude-code-agent: files that were replaced by a merge';
  const steps = [
    ...(stash === '' ? [] : [['stash', 'store', '--quiet', '--message', message, stash]]),
    // The index must know the new files of both commits, so that git removes those that only one of them has.
    ['read-tree', '--reset', from],
    ['read-tree', '--reset', '-u', to],
  ];
  for (const args of steps) {
    const done = await runOwn(git, checkout, args, long);
    if (!done.ok) return done;
  }
  if (stash === '') return ok([]);
  // These may have changed at any time. It fails when there are none.
  await askOwn(git, checkout, ['restore', `--source=${stash}`, '--worktree', '--', checkoutStates], long);
  const see = `git -C ${shellWord(checkout)} diff ${shortCommit(from)} ${shortCommit(stash)}`;
  return ok([`Files in ${checkout} were changed while it was updated. They are kept in a stash: ${see}`]);
}
