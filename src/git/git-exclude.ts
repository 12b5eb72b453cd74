/**
 * Files that a branch is not to change: what its session committed of them stays in the history, and the next commit
 * has them as the branch found them.
 */
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { askOwn, commitOf, longTimeoutMs, runOwn } from './run-git.ts';

export interface Apart {
  /** The commit from which the branch began. */
  readonly base: string;
  /** By paths from the top. */
  readonly apart?: readonly string[];
  /** Branch that the work is for, without `refs/heads/`. */
  readonly target?: string;
}

/** Puts them into the index of the worktree at `path` as they were; the files themselves stay as they are. */
export async function keepApart(git: Git, path: string, { base, apart = [], target }: Apart): Promise<Result<void>> {
  if (apart.length === 0) return ok(undefined);
  const merging = await commitOf(git, path, 'MERGE_HEAD');
  if (!merging.ok) return merging;
  const names = merging.value === null ? await changedSince(git, path, base, apart) : ok(apart);
  if (!names.ok || names.value.length === 0) return names.ok ? ok(undefined) : names;
  const heads = ['HEAD', ...(merging.value === null ? [] : [merging.value])];
  const origin = await originOf(git, path, { base, target, heads });
  if (!origin.ok) return origin;
  // Of a path that the origin does not know it takes the entry away.
  const reset = await runOwn(git, path, [
    '--literal-pathspecs',
    'reset',
    '--quiet',
    origin.value,
    '--',
    ...names.value,
  ]);
  return reset.ok ? ok(undefined) : reset;
}

async function changedSince(
  git: Git,
  path: string,
  base: string,
  apart: readonly string[],
): Promise<Result<readonly string[]>> {
  const args = ['diff', '--name-only', '--no-renames', '--no-relative', '--no-ext-diff', '-z', base, 'HEAD', '--'];
  const changed = await runOwn(git, path, ['--literal-pathspecs', ...args, ...apart], { timeoutMs: longTimeoutMs });
  return changed.ok ? ok(changed.value.split('\0').filter((name) => name !== '')) : changed;
}

interface Origin {
  readonly base: string;
  readonly target: string | undefined;
  readonly heads: readonly string[];
}

/** What a merge will compare with: the session may have merged its target, with changes of other people, meanwhile. */
async function originOf(git: Git, path: string, { base, target, heads }: Origin): Promise<Result<string>> {
  const tip = target === undefined ? ok(null) : await commitOf(git, path, `refs/heads/${target}`);
  if (!tip.ok) return tip;
  if (tip.value === null) return ok(base);
  const parted = await askOwn(git, path, ['merge-base', tip.value, ...heads]);
  if (!parted.ok) return parted;
  return ok(parted.value.exitCode === 0 ? parted.value.stdout.trim() : base);
}
