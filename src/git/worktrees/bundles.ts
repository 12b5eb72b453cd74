/** Commits as files that another repository takes in, and refs that keep them. */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { askOwn, gitFailure, longTimeoutMs, runOwn } from '../run-git.ts';

const long = { timeoutMs: longTimeoutMs };

export const keepingRefs = 'refs/claude-code-agent';

/** What keeps commits of a session while no branch does; `name` is unique among those of the session. */
export function keepingRef(sessionId: string, name: string): string {
  return `${keepingRefs}/${sessionId}/${name}`;
}

export type RefChanges = readonly (readonly [ref: string, commit: string | null])[];

/** Sets the refs to these commits, null = removes them: all of them or none. */
export async function setRefs(git: Git, repository: string, changes: RefChanges): Promise<Result<void>> {
  const lines = changes.map(([ref, commit]) => (commit === null ? `delete ${ref}\n` : `update ${ref} ${commit}\n`));
  const set = await runOwn(git, repository, ['update-ref', '--stdin'], { input: lines.join('') });
  return set.ok ? ok(undefined) : set;
}

/** Commits of the session's refs, by what their names end with. Fails with `worktree-failed`. */
export async function keptCommits(
  git: Git,
  repository: string,
  sessionId: string,
): Promise<Result<ReadonlyMap<string, string>>> {
  const folder = keepingRef(sessionId, '');
  const listed = await runOwn(git, repository, ['for-each-ref', '--format=%(objectname) %(refname)', folder]);
  if (!listed.ok) return listed;
  const lines = listed.value.split('\n').filter((line) => line !== '');
  return ok(
    new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1 + folder.length), line.split(' ')[0] ?? ''])),
  );
}

/** A bundle of the refs without what the other end has, for the caller to remove; null when there is nothing. */
export async function makeBundle(
  git: Git,
  repository: string,
  {
    refs,
    without,
    folder,
  }: { readonly refs: readonly string[]; readonly without: readonly string[]; readonly folder: string },
): Promise<Result<string | null>> {
  const revisions = [...refs, ...without.map((commit) => `^${commit}`)];
  const path = join(folder, `outgoing-${git.world.random.uuid()}.bundle`);
  const args = ['bundle', 'create', '--quiet', path, ...revisions];
  const made = await askOwn(git, repository, args, long);
  if (!made.ok) return made;
  if (made.value.exitCode === 0) return ok(path);
  return /empty bundle/.test(made.value.stderr) ? ok(null) : gitFailure(args, made.value);
}

/** Takes in the commits of a bundle; nothing refers to them yet, and parents may be missing (`checkWhole`). */
export async function takeBundle(
  git: Git,
  repository: string,
  bytes: Uint8Array,
  folder: string,
): Promise<Result<void>> {
  const { files, random } = git.world;
  const path = join(folder, `incoming-${random.uuid()}.bundle`);
  try {
    files.writeBytes(path, bytes);
    const taken = await runOwn(git, repository, ['bundle', 'unbundle', path], long);
    return taken.ok ? ok(undefined) : taken;
  } finally {
    files.remove(path);
  }
}

/**
 * Whether all is there that these commits hold and lean on: that one is there itself says nothing, for a git that was
 * ended may have brought it alone. What hangs on refs below `refs`, or on `known` ones, is taken for whole, so this
 * comes before `setRefs`. Other refs of a user's repository may be broken. Fails with `worktree-failed`.
 */
export async function checkWhole(
  git: Git,
  repository: string,
  commits: readonly string[],
  refs: string,
  known: readonly string[] = [],
): Promise<Result<void>> {
  const args = ['rev-list', '--quiet', '--objects', ...commits, '--not', ...known, `--glob=${refs}`];
  const checked = await runOwn(git, repository, args, long);
  return checked.ok ? ok(undefined) : checked;
}
