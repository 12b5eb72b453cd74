/** Finds work that exists only in a worktree or its branch, and removes both. When in doubt, the worktree stays. */
import { join } from 'node:path';
import { ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { leftDetached } from '../commit.ts';
import type { Git } from '../git.ts';
import { gitDirOf, isWorktreeOf } from '../git.ts';
import { askOwn, commitOf, nameFiles, runOwn } from '../run-git.ts';
import { commitAll, isOurFile, uncommittedIn } from '../stage.ts';
import { tipOf } from '../target.ts';
import { changedFiles, listWorktrees, removeWorktree, repositoryDir, type Worktree } from './worktree.ts';

export interface RemovalCandidate {
  readonly repository: string;
  readonly path: string;
  /** Absent = unknown, so only the worktree is removed. */
  readonly branch?: string;
  /** The commit from which the branch started; earlier history is not the branch's own work. */
  readonly base?: string;
  /** Files of our own that here count as the session's work; paths relative to the worktree. */
  readonly fresh?: readonly string[];
  /**
   * A commit contained in one of these branches, or in a remote one, counts as merged. Empty = the user's current
   * branch.
   */
  readonly into: readonly string[];
}

export interface WorktreeState {
  readonly registered: Worktree | null;
  readonly exists: boolean;
  /** It is a worktree of the repository, so that git can report uncommitted files. */
  readonly isReadable: boolean;
  readonly tip: string | null;
  readonly elsewhere: string | null;
  /** Commits of the branch that are neither in `base` nor merged. */
  readonly unmerged: number;
  /** Number of commits made in it that are on no branch; `looseTips` are the heads of those commits. */
  readonly loose: number;
  readonly looseTips: readonly string[];
  /** Changed and new files, relative to its top folder; neither ignored files nor our own. */
  readonly uncommitted: readonly string[];
  /** It has submodule repositories with commits not known to be on any of their remotes. */
  readonly submodules: boolean;
}

/** Local branches whose names begin with `start`, which ends in a slash. Fails with git's reason. */
export async function listBranches(git: Git, repository: string, start: string): Promise<Result<readonly string[]>> {
  const args = ['for-each-ref', '--format=%(refname)', `refs/heads/${start}`];
  const listed = await runOwn(git, repositoryDir(repository), args);
  if (!listed.ok) return listed;
  const names = listed.value.split('\n').filter((name) => name !== '');
  return ok(names.map((name) => name.slice('refs/heads/'.length)));
}

/**
 * Checks everything that could be lost. Fails with git's reason, for example a damaged repository; there is no partial
 * result.
 */
export async function inspectWorktree(git: Git, candidate: RemovalCandidate): Promise<Result<WorktreeState>> {
  const { files } = git.world;
  const { repository, path, branch } = candidate;
  const listed = await listWorktrees(git, repositoryDir(repository));
  if (!listed.ok) return listed;
  const registered = listed.value.find((worktree) => worktree.path === path) ?? null;
  const others = listed.value.filter((worktree) => worktree !== registered);
  const exists = files.entryKind(path) !== null;
  const isReadable = exists && isWorktreeOf(files, repository, path);
  const tip = branch === undefined ? ok(null) : await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  const into = candidate.into.length > 0 ? candidate.into : [listed.value[0]?.branch ?? ''];
  const unmerged = tip.value === null ? ok(0) : await countUnmerged(git, { ...candidate, into }, tip.value);
  if (!unmerged.ok) return unmerged;
  const tips = looseTips(git, path, registered);
  const loose = await countLoose(git, repository, tips);
  if (!loose.ok) return loose;
  const changed = isReadable ? await changedFiles(git, path) : ok([]);
  if (!changed.ok) return changed;
  return ok({
    registered,
    exists,
    isReadable,
    tip: tip.value,
    elsewhere: branch === undefined ? null : (others.find((other) => other.branch === branch)?.path ?? null),
    unmerged: unmerged.value,
    loose: loose.value,
    looseTips: loose.value === 0 ? [] : tips,
    uncommitted: changed.value.filter((name) => !isOurFile(name) || candidate.fresh?.includes(name)),
    submodules: isReadable && (await hasOwnSubmodules(git, path)),
  });
}

async function countUnmerged(
  git: Git,
  { repository, branch, base, into }: RemovalCandidate,
  tip: string,
): Promise<Result<number>> {
  const merged: string[] = [];
  for (const name of new Set(into.filter((text) => text !== '' && text !== branch))) {
    const found = await tipOf(git, repository, name);
    if (!found.ok) return found;
    if (found.value !== null) merged.push(found.value);
  }
  const known = base === undefined ? ok(null) : await commitOf(git, repositoryDir(repository), base);
  if (!known.ok) return known;
  if (known.value !== null) merged.push(known.value);
  return countCommits(git, repository, [tip, '--not', ...merged, '--remotes']);
}

/** Detached HEADs, current and earlier; only the worktree's own reflog names the earlier ones. */
function looseTips({ world: { files } }: Git, path: string, registered: Worktree | null): readonly string[] {
  const gitDir = gitDirOf(files, path);
  const left = gitDir === null ? [] : leftDetached(files, gitDir);
  const { head, branch } = registered ?? {};
  // Commits on a branch are checked with that branch.
  return head === undefined || branch !== undefined ? left : [...new Set([head, ...left])];
}

async function countLoose(git: Git, repository: string, tips: readonly string[]): Promise<Result<number>> {
  if (tips.length === 0) return ok(0);
  return countCommits(git, repository, ['--ignore-missing', ...tips, '--not', '--branches', '--tags', '--remotes']);
}

async function countCommits(git: Git, repository: string, range: readonly string[]): Promise<Result<number>> {
  const counted = await runOwn(git, repositoryDir(repository), ['rev-list', '--count', ...range]);
  return counted.ok ? ok(Number.parseInt(counted.value, 10)) : counted;
}

const madeHere = /\t(?:commit|merge|cherry-pick|revert|rebase|am|pull)\b/;

/** A worktree keeps the repositories of its submodules in its own part of the git folder. */
async function hasOwnSubmodules(git: Git, path: string): Promise<boolean> {
  const { files } = git.world;
  const gitDir = gitDirOf(files, path);
  const folders = gitDir === null ? [] : [join(gitDir, 'modules')];
  for (const folder of folders) {
    if (files.entryKind(join(folder, 'HEAD')) === null) {
      // A submodule's name may contain slashes, and a submodule may have submodules of its own.
      folders.push(...files.list(folder).map((name) => join(folder, name)));
      continue;
    }
    // A shallow submodule may have no remote-tracking branch, but its reflog shows that nothing was committed there.
    const isUntouched = !madeHere.test(files.readText(join(folder, 'logs', 'HEAD')) ?? '\tcommit');
    const tips = ['HEAD', '--branches', '--not', '--remotes', '--tags'];
    const counted = isUntouched ? ok('0') : await runOwn(git, folder, ['--git-dir=.', 'rev-list', '--count', ...tips]);
    if (!counted.ok || counted.value.trim() !== '0') return true;
    if (files.entryKind(join(folder, 'modules')) !== null) folders.push(join(folder, 'modules'));
  }
  return false;
}

/**
 * Removes the worktree, and with `withBranch` its branch, unless the branch has moved since. The caller has checked
 * `status` and decided to remove; null = the repository is gone. If a crash interrupts this, a second call finishes it.
 * Fails with git's reason or `write-failed`.
 */
export async function discard(
  git: Git,
  { repository, path, branch }: Pick<RemovalCandidate, 'repository' | 'path' | 'branch'>,
  status: WorktreeState | null,
  { withBranch }: { readonly withBranch: boolean },
): Promise<Result<void>> {
  const { files } = git.world;
  const aside = partlyRemoved(path);
  try {
    // In one step: after a crash, a half-deleted worktree would look as if its session had deleted files.
    if (files.entryKind(path) !== null) {
      files.remove(aside);
      files.rename(path, aside);
    }
    // Remove only this entry: `git worktree prune` would also remove entries of worktrees on an unmounted disk.
    const { registered = null, tip = null } = status ?? {};
    const forgotten =
      registered === null ? ok(undefined) : await removeWorktree(git, repositoryDir(repository), registered.path);
    if (!forgotten.ok) return forgotten;
    const isLeft = withBranch && branch !== undefined && tip !== null;
    const gone = isLeft ? await deleteBranch(git, repository, branch, tip) : ok(undefined);
    if (gone.ok) files.remove(aside);
    return gone;
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

/** The path of a worktree while it is being removed. */
export function partlyRemoved(path: string): string {
  return `${path}.removed`;
}

async function deleteBranch(git: Git, repository: string, branch: string, tip: string): Promise<Result<void>> {
  const gone = await runOwn(git, repositoryDir(repository), ['update-ref', '-d', `refs/heads/${branch}`, tip]);
  if (!gone.ok) return gone;
  // Also drop the branch's config section (its upstream), which usually does not exist.
  await askOwn(git, repositoryDir(repository), ['config', '--local', '--remove-section', `branch.${branch}`]);
  return ok(undefined);
}

interface Rescued {
  readonly status: WorktreeState;
  /** Sentences: what was committed to which branch, and what git cannot keep. */
  readonly notes: readonly string[];
}

/** Fails with `worktree-failed`; then the worktree must stay. `title`: the session's title for the sentences. */
export async function rescue(
  git: Git,
  candidate: RemovalCandidate,
  { uncommitted }: WorktreeState,
  title: string,
): Promise<Result<Rescued>> {
  const saved = uncommitted.length > 0 ? await saveFiles(git, candidate, uncommitted, title) : ok([]);
  if (!saved.ok) return saved;
  const now = await inspectWorktree(git, candidate);
  if (!now.ok) return now;
  const status = now.value;
  const kept = await keepLoose(git, candidate, status.looseTips, title);
  if (!kept.ok) return kept;
  const lost = [
    ...(status.uncommitted.length > 0 ? [`nested repositories (${nameFiles(status.uncommitted)})`] : []),
    ...(status.submodules ? ['the repositories of its submodules'] : []),
    ...(status.exists && !status.isReadable ? ['its folder, which is no longer a worktree'] : []),
  ];
  const loss = lost.length === 0 ? [] : [`Deleted with the worktree of ${title}: ${lost.join(' and ')}.`];
  return ok({ status, notes: [...saved.value, ...kept.value, ...loss] });
}

/** Commits all but nested repositories, on the session's branch or on none. */
async function saveFiles(
  git: Git,
  { path, branch, fresh = [] }: RemovalCandidate,
  uncommitted: readonly string[],
  title: string,
): Promise<Result<readonly string[]>> {
  const found = await uncommittedIn(git, path);
  if (!found.ok) return found;
  const { head, branch: current } = found.value;
  const isOnBranch = current === branch;
  const detached =
    isOnBranch || head === null ? ok('') : await runOwn(git, path, ['update-ref', '--no-deref', 'HEAD', head]);
  if (!detached.ok) return detached;
  const message = `Uncommitted work of ${title}\n\nCommitted by claude-code-agent before the worktree was deleted.`;
  const made = await commitAll(git, path, message, { base: head ?? '', fresh }, found.value);
  if (!made.ok || !made.value) return made.ok ? ok([]) : made;
  const commit = await runOwn(git, path, ['rev-parse', 'HEAD']);
  if (!commit.ok) return commit;
  const where = isOnBranch ? `Committed on ${branch}, ${short(commit.value)}` : `Committed as ${short(commit.value)}`;
  return ok([
    `${where}: uncommitted changes of ${title} (${nameFiles(uncommitted.filter((name) => !name.endsWith('/')))}).`,
  ]);
}

/** Creates branches for commits that are on none. */
async function keepLoose(
  git: Git,
  { repository, branch = 'cca/kept' }: RemovalCandidate,
  tips: readonly string[],
  title: string,
): Promise<Result<readonly string[]>> {
  const notes: string[] = [];
  for (const tip of tips) {
    // A branch created just now may contain it.
    const loose = await countLoose(git, repository, [tip]);
    if (!loose.ok) return loose;
    if (loose.value === 0) continue;
    const name = `${branch}-${short(tip)}`;
    const args = ['update-ref', '-m', 'branch: kept by claude-code-agent', `refs/heads/${name}`, tip, ''];
    const made = await runOwn(git, repositoryDir(repository), args);
    if (!made.ok) return made;
    notes.push(`Kept on ${name}, ${short(tip)}: commits of ${title} that were on no branch.`);
  }
  return ok(notes);
}

const short = (commit: string): string => commit.slice(0, 12);
