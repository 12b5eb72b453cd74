/**
 * Moves branches of several repositories, all or none, and their checkouts; after a crash it continues or rolls back.
 */
import { dirname, join } from 'node:path';
import { describeFailure, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { MergeJournal, Move } from '../store/merge-journal.ts';
import { systemFailure } from '../store/system-failure.ts';
import type { Git } from './git.ts';
import { askOwn, gitFailure, isAncestor, longTimeoutMs, runOwn } from './run-git.ts';
import { inParts } from './stage.ts';
import { type ChangedPath, changedPaths, tipOf } from './target.ts';
import { quotedNames, repositoryDir } from './worktrees/scratch.ts';

export interface Wording {
  readonly forwards: string;
  readonly backwards: string;
}

export type Settlement = { readonly notes: readonly string[] } & (
  | { readonly outcome: 'moved' }
  /** `cause` is one or two sentences; `kept` are moves that other commits already build on, so they stay. */
  | { readonly outcome: 'undone'; readonly cause: string; readonly kept: readonly Move[] }
);

type RefPosition =
  | 'before'
  | 'after'
  /** Another process added commits on top. */
  | 'beyond'
  /** Another process moved or deleted it. */
  | 'elsewhere';

/**
 * Finishes the moves of the journal. `toUndo` records durably, before the first rollback step, that they must be
 * undone. Fails with `worktree-failed` or `write-failed` when neither is possible now; a retry continues.
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
    const problem = await forwards(git, moves, wording.forwards, notes);
    if (!problem.ok) return problem;
    if (problem.value === null) return ok({ outcome: 'moved', notes });
    cause = problem.value;
    const noted = toUndo(cause);
    if (!noted.ok) return noted;
  }
  const kept = await backwards(git, moves, wording.backwards, notes);
  return kept.ok ? ok({ outcome: 'undone', cause, kept: kept.value, notes }) : kept;
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

/** Returns the moves that must stay. */
async function backwards(
  git: Git,
  moves: readonly Move[],
  reason: string,
  notes: string[],
): Promise<Result<readonly Move[]>> {
  const kept: Move[] = [];
  const returned: Move[] = [];
  for (const move of moves) {
    const position = await positionOf(git, move);
    if (!position.ok) return position;
    if (position.value === 'beyond') kept.push(move);
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
  return ok(kept);
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
    const followed = await followBranch(git, move.repository, { checkout, branch: move.into, ...way });
    if (!followed.ok) return followed;
    notes.push(...followed.value);
  }
  return ok(notes);
}

function nameOf({ repository, into }: Move): string {
  return `branch ${quoted(into)} of ${repositoryDir(repository)}`;
}

// Updates a checkout after its branch has moved. The user's changes to other files are kept. An update that a crash
// interrupted is continued.

const long = { timeoutMs: longTimeoutMs };
const heldOrForbidden = /\.lock': |Permission denied|Read-only file system|No space left|Out of diskspace/;

export interface Follow {
  readonly checkout: string;
  readonly branch: string;
  readonly from: string;
  readonly to: string;
  /** An interrupted update from `to` to `from`: files can be ahead of the index. */
  readonly isReturn?: boolean;
}

/**
 * No effect when the checkout is missing, on another branch or already updated. Returns notes about files that were
 * kept. Fails with `worktree-failed` or `write-failed`; a retry continues.
 */
export async function followBranch(git: Git, repository: string, step: Follow): Promise<Result<string[]>> {
  const { checkout, branch, from, to } = step;
  if (git.world.files.info(checkout)?.kind !== 'folder') return ok([]);
  const head = await askOwn(git, checkout, ['symbolic-ref', '--quiet', 'HEAD']);
  if (!head.ok) return head;
  if (head.value.stdout.trim() !== `refs/heads/${branch}`) return ok([]);
  const changed = await changedPaths(git, repository, from, to);
  if (!changed.ok) return changed;
  const staged = await names(git, checkout, ['diff-index', '--cached', '--name-only', '-z', '--no-renames', to, '--']);
  if (!staged.ok) return staged;
  // Git writes the files first and the index last, so an index entry implies its file.
  if (!changed.value.some(({ path }) => staged.value.has(path))) {
    return step.isReturn === true ? repairFiles(git, step, changed.value, { hasOldIndex: false }) : ok([]);
  }
  const args = ['read-tree', '-m', '-u', from, to];
  for (const isLast of [false, true]) {
    const read = await askOwn(git, checkout, args, long);
    if (!read.ok) return read;
    if (read.value.exitCode === 0) return ok([]);
    if (heldOrForbidden.test(read.value.stderr)) return gitFailure(args, read.value);
    // A touched but unchanged file counts as changed until the index is refreshed.
    if (!isLast) await askOwn(git, checkout, ['update-index', '-q', '--refresh'], long);
  }
  return repairFiles(git, step, changed.value, { hasOldIndex: true });
}

/** Updates files that match one of the commits, or are partial; others are the user's and stay. */
async function repairFiles(
  git: Git,
  step: Follow,
  changed: readonly ChangedPath[],
  { hasOldIndex }: { readonly hasOldIndex: boolean },
): Promise<Result<string[]>> {
  const { files } = git.world;
  const { checkout, from, to } = step;
  const sparse = await names(git, checkout, ['ls-files', '-t', '-z', '--full-name']);
  if (!sparse.ok) return sparse;
  const kept: string[] = [];
  const toCheckOut: string[] = [];
  for (const { path, before, after } of changed) {
    // Excluded from the checkout by the user.
    if (sparse.value.has(`S ${path}`)) continue;
    const exists = files.entryKind(join(checkout, path)) !== null;
    const commits = [...(before ? [from] : []), ...(after ? [to] : [])];
    if (exists && !(await isPartOf(git, checkout, path, commits))) kept.push(path);
    else if (after) toCheckOut.push(path);
    else if (exists) {
      const removed = removeFile(git, checkout, path);
      if (!removed.ok) return removed;
    }
  }
  const brought = await inParts(git, checkout, ['checkout', '--quiet', to, '--'], toCheckOut);
  if (!brought.ok) return brought;
  const stale = hasOldIndex ? changed.map(({ path }) => path) : [];
  const reset = await inParts(git, checkout, ['reset', '--quiet', to, '--'], stale);
  if (!reset.ok || kept.length === 0) return reset.ok ? ok([]) : reset;
  return ok([
    `In ${checkout} these files were changed during the merge and were kept: ${quotedNames(kept)}. See git diff.`,
  ]);
}

/** The file matches one of the commits, or is the beginning of one, as after a kill or on a full disk. */
async function isPartOf(git: Git, checkout: string, path: string, commits: readonly string[]): Promise<boolean> {
  const { files } = git.world;
  const file = join(checkout, path);
  if (files.entryKind(file) !== 'file') return false;
  const there = Buffer.from(files.readBytes(file, 0, files.info(file)?.size ?? 0)).toString('latin1');
  const hashed = await askOwn(git, checkout, ['hash-object', `--path=${path}`, '--', file], long);
  for (const commit of commits) {
    const revision = `${commit}:${path}`;
    const id = await askOwn(git, checkout, ['rev-parse', '--verify', '--quiet', revision]);
    if (hashed.ok && id.ok && hashed.value.stdout === id.value.stdout) return true;
    const blob = await runOwn(git, checkout, ['cat-file', 'blob', revision], { ...long, encoding: 'latin1' });
    if (blob.ok && blob.value.startsWith(there)) return true;
  }
  return false;
}

async function names(git: Git, checkout: string, args: readonly string[]): Promise<Result<ReadonlySet<string>>> {
  const printed = await runOwn(git, checkout, args, long);
  return printed.ok ? ok(new Set(printed.value.split('\0').filter((name) => name !== ''))) : printed;
}

/** Including folders that become empty, as git does. */
function removeFile({ world: { files } }: Git, checkout: string, path: string): Result<void> {
  try {
    files.remove(join(checkout, path));
    for (let above = dirname(path); above !== '.'; above = dirname(above)) {
      if (files.list(join(checkout, above)).length > 0) break;
      files.remove(join(checkout, above));
    }
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(`${checkout}, ${quoted(path)}`, error) };
  }
}
