/**
 * Moves branches of several repositories, all or none: each by one atomic update that names where the branch was, and
 * its checkouts follow. After a crash the same is done again, forwards or, when one of them has been moved by somebody
 * else, backwards.
 */
import { describeFailure, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { MergeJournal, Move } from '../store/merge-journal.ts';
import { type Follow, followBranch } from './follow.ts';
import type { Git } from './git.ts';
import { askOwn, isAncestor, refusal } from './run-git.ts';
import { tipOf } from './target.ts';
import { repositoryDir } from './worktrees/scratch.ts';

/** What the reflog says of the moves. */
export interface Wording {
  readonly forwards: string;
  readonly backwards: string;
}

export type Settlement = { readonly notes: readonly string[] } & (
  | { readonly outcome: 'moved' }
  /** `cause` is one or two sentences; `kept` are moves on which somebody has built already, so they stay. */
  | { readonly outcome: 'undone'; readonly cause: string; readonly kept: readonly Move[] }
);

type Place =
  | 'before'
  | 'after'
  /** Somebody went on from there. */
  | 'beyond'
  /** Somebody moved or deleted it. */
  | 'elsewhere';

/**
 * Brings the moves of the journal to an end. `toUndo` makes it last, before the first step back, that there is no way
 * forwards any more. Fails with `worktree-failed` or `write-failed` when neither is possible now; tried again, it
 * goes on.
 */
export async function settleMoves(
  git: Git,
  journal: MergeJournal,
  wording: Wording,
  toUndo: (cause: string) => Result<void>,
): Promise<Result<Settlement>> {
  const { moves } = journal;
  const notes: string[] = [];
  let cause = 'It could not be finished.';
  if (journal.step === 'moving') {
    const trouble = await forwards(git, moves, wording.forwards, notes);
    if (!trouble.ok) return trouble;
    if (trouble.value === null) return ok({ outcome: 'moved', notes });
    cause = trouble.value;
    const noted = toUndo(cause);
    if (!noted.ok) return noted;
  }
  const kept = await backwards(git, moves, wording.backwards, notes);
  return kept.ok ? ok({ outcome: 'undone', cause, kept: kept.value, notes }) : kept;
}

/** Null when all have moved, else why not: then all are to go back. */
async function forwards(
  git: Git,
  moves: readonly Move[],
  reason: string,
  notes: string[],
): Promise<Result<string | null>> {
  const open: Move[] = [];
  const reached: Move[] = [];
  for (const move of moves) {
    const place = await placeOf(git, move);
    if (!place.ok) return place;
    if (place.value === 'elsewhere') return ok(`The ${nameOf(move)} was moved or deleted by somebody else.`);
    if (place.value === 'before') open.push(move);
    if (place.value !== 'beyond') reached.push(move);
  }
  for (const move of open) {
    const moved = await update(git, move, { from: move.from, to: move.to, reason });
    if (!moved.ok) return ok(`The ${nameOf(move)} could not be moved: ${describeFailure(moved.failure)}`);
  }
  for (const move of reached) {
    const followed = await follow(git, move, { from: move.from, to: move.to });
    if (!followed.ok)
      return ok(`A checkout of the ${nameOf(move)} could not follow: ${describeFailure(followed.failure)}`);
    notes.push(...followed.value);
  }
  return ok(null);
}

/** Returns the moves that have to stay. */
async function backwards(
  git: Git,
  moves: readonly Move[],
  reason: string,
  notes: string[],
): Promise<Result<readonly Move[]>> {
  const kept: Move[] = [];
  const returned: Move[] = [];
  for (const move of moves) {
    const place = await placeOf(git, move);
    if (!place.ok) return place;
    if (place.value === 'beyond') kept.push(move);
    if (place.value === 'after') {
      const moved = await update(git, move, { from: move.to, to: move.from, reason });
      if (!moved.ok) return moved;
    }
    if (place.value === 'after' || place.value === 'before') returned.push(move);
  }
  for (const move of returned) {
    const followed = await follow(git, move, { from: move.to, to: move.from, isReturn: true });
    if (!followed.ok) return followed;
    notes.push(...followed.value);
  }
  return ok(kept);
}

async function placeOf(git: Git, { repository, into, from, to }: Move): Promise<Result<Place>> {
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
  return asked.value.exitCode === 0 ? ok(undefined) : refusal(args, asked.value);
}

async function follow(git: Git, move: Move, way: Pick<Follow, 'from' | 'to' | 'isReturn'>): Promise<Result<string[]>> {
  const notes: string[] = [];
  for (const checkout of move.checkouts) {
    const followed = await followBranch(git, move.repository, { checkout, branch: move.into, ...way });
    if (!followed.ok) return followed;
    notes.push(...followed.value);
  }
  return ok(notes);
}

function nameOf({ repository, into }: Move): string {
  return `branch ${quoted(into)} of ${repositoryDir(repository)}`;
}
