/**
 * Moves branches of several repositories, all or none, and their checkouts; after a crash a second call finishes.
 */
import { shellWord } from '../core/advice.ts';
import { describeFailure, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { Move } from '../store/merge-journal.ts';
import type { Git } from './git.ts';
import { askOwn, currentBranch, gitFailure, identityOptions, isAncestor, longTimeoutMs, runOwn } from './run-git.ts';
import { checkoutStates } from './stage.ts';
import { tipOf } from './target.ts';
import { repositoryDir, shortCommit } from './worktrees/scratch.ts';

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
