/** The folder of a worktree and what the repository knows of it: added, found, forgotten without losing a commit. */
import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { askOwn, commitOf, longTimeoutMs, refusal, runOwn } from '../run-git.ts';

/** Checks the existing branch out in a new folder at the absolute path. Fails with `worktree-failed`. */
export async function addFolder(git: Git, cwd: string, path: string, branch: string): Promise<Result<void>> {
  const args = ['worktree', 'add', '--quiet', '--', path, branch];
  const added = await askOwn(git, cwd, args, { timeoutMs: longTimeoutMs });
  if (!added.ok) return added;
  if (added.value.exitCode === 0) return ok(undefined);
  if (!/missing but already registered/.test(added.value.stderr)) return refusal(args, added.value);
  // A worktree of that path was there once.
  const entry = await registrationOf(git, cwd, path);
  if (!entry.ok) return entry;
  const gone = await forgetFolder(git, cwd, path, branch, entry.value);
  if (!gone.ok) return gone;
  const again = await runOwn(git, cwd, args, { timeoutMs: longTimeoutMs });
  return again.ok ? ok(undefined) : again;
}

/** A branch that a power cut left as a file of nothing, as git before 2.36 lets it: it is in the way. */
export function dropBlankBranch({ world }: Git, { repository, branch }: { repository: string; branch: string }): void {
  const path = join(repository, 'refs', 'heads', branch);
  const info = world.files.entryKind(path) === 'file' ? world.files.info(path) : null;
  if (info?.size === 0) world.files.remove(path);
}

export interface Registration {
  /** Full id of the commit that is checked out in it. */
  readonly head?: string;
  /** Without `refs/heads/`; absent when a commit is checked out by itself. */
  readonly branch?: string;
  /** Somebody locked it; the reason, which may be empty. */
  readonly lock?: string;
}

/** What the repository knows of a worktree at the real path; null when it knows nothing. */
export async function registrationOf(git: Git, cwd: string, path: string): Promise<Result<Registration | null>> {
  const listed = await runOwn(git, cwd, ['worktree', 'list', '--porcelain', '-z']);
  if (!listed.ok) return listed;
  const entries = listed.value.split('\0\0').map((entry) => entry.split('\0'));
  const fields = entries.find((entry) => entry.includes(`worktree ${path}`));
  if (fields === undefined) return ok(null);
  const after = (start: string): string | undefined =>
    fields.find((field) => field.startsWith(start))?.slice(start.length);
  const head = after('HEAD ');
  const branch = after('branch refs/heads/');
  const lock = fields.includes('locked') ? '' : after('locked ');
  return ok({
    ...(head === undefined || /^0+$/.test(head) ? {} : { head }),
    ...defined({ branch }),
    // So git itself locks what it is making; it stays when that git was killed.
    ...(lock === undefined || lock === 'initializing' ? {} : { lock }),
  });
}

/**
 * Makes the repository forget this one worktree (`git worktree prune` would also forget those of the user's on a disk
 * that is away) and removes its folder. A commit that was checked out in it and is on no branch gets one of a name that
 * begins with `branch`. Fails with `worktree-failed`.
 */
export async function forgetFolder(
  git: Git,
  cwd: string,
  path: string,
  branch: string,
  entry: Registration | null,
): Promise<Result<void>> {
  if (entry === null) return ok(undefined);
  const kept = entry.head === undefined ? ok(undefined) : await keepAside(git, cwd, branch, entry.head);
  if (!kept.ok) return kept;
  const gone = await runOwn(git, cwd, ['worktree', 'remove', '--force', '--force', '--', path]);
  if (gone.ok) return ok(undefined);
  // A git that was told to end takes back by itself what it was making, maybe just now.
  const left = await registrationOf(git, cwd, path);
  return left.ok && left.value === null ? ok(undefined) : gone;
}

async function keepAside(git: Git, cwd: string, branch: string, head: string): Promise<Result<void>> {
  const there = await commitOf(git, cwd, head);
  if (!there.ok) return there;
  if (there.value === null) return ok(undefined);
  const counted = await runOwn(git, cwd, ['rev-list', '--count', head, '--not', '--branches', '--tags', '--remotes']);
  if (!counted.ok) return counted;
  if (counted.value.trim() === '0') return ok(undefined);
  const name = `refs/heads/${branch}-${head.slice(0, 12)}`;
  const kept = await runOwn(git, cwd, ['update-ref', '-m', 'branch: kept by claude-code-agent', name, head]);
  return kept.ok ? ok(undefined) : kept;
}
