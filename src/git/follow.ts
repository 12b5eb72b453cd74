/**
 * Lets a checkout follow its branch after that has moved: index and files become those of the new commit, and what the
 * user has changed elsewhere stays. Also where an earlier git was cut off in the middle of it.
 */

import { dirname, join } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import { systemFailure } from '../store/system-failure.ts';

import type { Git } from './git.ts';
import { askOwn, longTimeoutMs, refusal, runOwn } from './run-git.ts';
import { type ChangedPath, changedPaths } from './target.ts';
import { listed } from './worktrees/scratch.ts';

/** The system takes only so much in one command line. */
const pathsAtOnce = 200;
const long = { timeoutMs: longTimeoutMs };
const heldOrForbidden = /\.lock': |Permission denied|Read-only file system|No space left/;

export interface Follow {
  /** Root of a worktree that had the branch checked out. */
  readonly checkout: string;
  /** Without `refs/heads/`. */
  readonly branch: string;
  /** Full ids of the commits. */
  readonly from: string;
  readonly to: string;
}

/**
 * Nothing happens when the checkout is gone, is on another branch meanwhile or is there already. Returns sentences
 * about files that stayed as they were. Fails with `worktree-failed` or `write-failed`; tried again, it goes on.
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
  // Git writes the files first and the index last, so an index that is there has everything with it.
  if (!changed.value.some(({ path }) => staged.value.has(path))) return ok([]);
  const args = ['read-tree', '-m', '-u', from, to];
  const read = await askOwn(git, checkout, args, long);
  if (!read.ok) return read;
  if (read.value.exitCode === 0) return ok([]);
  if (heldOrForbidden.test(read.value.stderr)) return refusal(args, read.value);
  return mend(git, step, changed.value);
}

/**
 * Some files are old, some are new, and some may have been changed since. A file that is exactly as in one of the two
 * commits is brought to the new one; any other is the user's and stays.
 */
async function mend(
  git: Git,
  { checkout, from, to }: Follow,
  changed: readonly ChangedPath[],
): Promise<Result<string[]>> {
  const paths = changed.map(({ path }) => path);
  const unlikeOld = await differing(git, checkout, from, paths);
  if (!unlikeOld.ok) return unlikeOld;
  const unlikeNew = await differing(git, checkout, to, paths);
  if (!unlikeNew.ok) return unlikeNew;
  const kept: string[] = [];
  const bring: string[] = [];
  for (const { path, before, after } of changed) {
    const isThere = git.world.files.entryKind(join(checkout, path)) !== null;
    if (after ? isThere && !unlikeNew.value.has(path) : !isThere) continue;
    const isOld = before ? isThere && !unlikeOld.value.has(path) : !isThere;
    if (!isOld) kept.push(path);
    else if (after) bring.push(path);
    else {
      const removed = removeFile(git, checkout, path);
      if (!removed.ok) return removed;
    }
  }
  const brought = await inPortions(git, checkout, ['checkout', '--quiet'], bring);
  if (!brought.ok) return brought;
  if (kept.length === 0) return ok([]);
  return ok([`In ${checkout} these files were changed meanwhile and stay as they are: ${listed(kept)}; see git diff.`]);
}

/** Which files are not as in the commit. The index has the commit's entries for these paths afterwards. */
async function differing(
  git: Git,
  checkout: string,
  commit: string,
  paths: readonly string[],
): Promise<Result<ReadonlySet<string>>> {
  const reset = await inPortions(git, checkout, ['reset', '--quiet', commit], paths);
  if (!reset.ok) return reset;
  return names(git, checkout, [
    'diff',
    '--name-only',
    '-z',
    '--no-ext-diff',
    '--no-renames',
    '--ignore-submodules=dirty',
  ]);
}

async function inPortions(
  git: Git,
  checkout: string,
  command: readonly string[],
  paths: readonly string[],
): Promise<Result<void>> {
  for (let at = 0; at < paths.length; at += pathsAtOnce) {
    const portion = paths.slice(at, at + pathsAtOnce);
    const done = await runOwn(git, checkout, ['--literal-pathspecs', ...command, '--', ...portion], long);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

async function names(git: Git, checkout: string, args: readonly string[]): Promise<Result<ReadonlySet<string>>> {
  const printed = await runOwn(git, checkout, args, long);
  return printed.ok ? ok(new Set(printed.value.split('\0').filter((name) => name !== ''))) : printed;
}

/** With the folders that are empty then, as git does it. */
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
