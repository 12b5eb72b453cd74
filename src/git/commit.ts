/**
 * Commits a session's uncommitted work onto its branch, and moves its commits there from another branch that has only
 * the session's work. Anything unclear stays where it is.
 */
import { join } from 'node:path';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import type { Files } from '../system/world.ts';
import { type DiffStat, differenceOf, openConflicts, unfinishedOperation } from './diff.ts';
import { type Git, gitDirOf, isWorktreeOf } from './git.ts';
import { askOwn, commitOf, isAncestor, longTimeoutMs, nameFiles, runOwn } from './run-git.ts';
import { commitAll, type Uncommitted, uncommittedIn } from './stage.ts';

export interface CommittedWork {
  readonly commit: string;
  readonly committed: boolean;
  readonly stat: DiffStat;
  readonly notes: readonly string[];
}

export interface CommitOptions {
  readonly leave?: boolean;
  readonly fresh?: readonly string[];
  readonly apart?: readonly string[];
}

/**
 * Commits all uncommitted files on the session's branch, except our own, and checks that branch out. The session's
 * commits are kept. Fails with `merge-conflict` when the session left a conflict, and with `worktree-failed`; then
 * nothing is lost, and a later call continues.
 */
export async function commitWork(
  git: Git,
  workspace: Workspace,
  message: string,
  { leave = false, fresh = [], apart = [] }: CommitOptions = {},
): Promise<Result<CommittedWork>> {
  const { files } = git.world;
  const { path, repository, branch, base, target } = workspace;
  const gitDir = gitDirOf(files, path);
  // Without its own git directory, git would use an enclosing repository.
  if (gitDir === null || !isWorktreeOf(files, repository, path)) {
    if (files.entryKind(path) === null) {
      const next =
        'A retry creates the worktree again from its branch. Tell claude with --prompt to check what is left.';
      return fail('worktree-failed', `The worktree ${path} is missing, so its work cannot be accepted.`, next);
    }
    const next = 'Run git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${path} is no longer a worktree of ${repository}.`, next);
  }
  const status = await uncommittedIn(git, path);
  if (!status.ok) return status;
  const { head, branch: current } = status.value;
  const problem = checkHalfDone(git, path, gitDir, status.value);
  if (!problem.ok && !leave) return problem;
  const exists = current === branch && head !== null;
  // With `leave`, remaining work is only reported.
  const unchanged = { isOnBranch: exists && problem.ok, notes: problem.ok ? [] : [problem.failure.message] };
  const restored =
    exists || !problem.ok ? ok(unchanged) : await restoreBranch(git, workspace, status.value, { gitDir, leave });
  if (!restored.ok) return restored;
  const now = restored.value === unchanged ? status : await uncommittedIn(git, path);
  if (!now.ok) return now;
  const scope = { base, fresh, apart, ...defined({ target }) };
  const commit =
    restored.value.isOnBranch && !leave ? await commitAll(git, path, message, scope, now.value) : ok(false);
  if (!commit.ok) return commit;
  const printed = await runOwn(git, path, ['rev-parse', '--verify', `refs/heads/${branch}`]);
  if (!printed.ok) return printed;
  const tip = printed.value.trim();
  const made = await differenceOf(git, path, { from: base, to: tip });
  if (!made.ok) return made;
  const { links, ...stat } = made.value;
  const { repositories, repositoriesLeft } = now.value;
  return ok({
    commit: tip,
    committed: commit.value,
    stat,
    notes: [
      ...restored.value.notes,
      ...repositoriesApart(commit.value ? repositoriesLeft : repositories, links),
      ...(stat.files > 0 ? missingHooks(git, workspace) : []),
    ],
  });
}

/** Hooks such as those of husky, whose folder an installation creates: the session's commits were made without them. */
function missingHooks({ world: { files } }: Git, { path, repository, checkout }: Workspace): readonly string[] {
  const config = files.readText(join(repository, 'config')) ?? '';
  const folder = /^\s*hooksPath\s*=\s*"?([^"\n]+?)"?\s*$/im.exec(config)?.[1];
  if (folder === undefined || checkout === undefined || /^[/~]/.test(folder)) return [];
  const isMissing = files.entryKind(join(path, folder)) === null && files.entryKind(join(checkout, folder)) !== null;
  const why = `${nameFiles([folder])} exists only in the checkout; a set-up command can create it in the worktree`;
  return isMissing ? [`Hooks of the repository did not run for the session's own commits: ${why}.`] : [];
}

function checkHalfDone(git: Git, path: string, gitDir: string, { unmerged }: Uncommitted): Result<void> {
  const unfinishedSeries = unfinishedOperation(git, gitDir);
  if (unfinishedSeries !== null) {
    const message = `The session left ${unfinishedSeries.what} unfinished in ${path}.`;
    return fail('worktree-failed', message, `Finish it there (${unfinishedSeries.command}), then retry the session.`);
  }
  const conflicts = openConflicts(git, path, unmerged);
  if (conflicts.length === 0) return ok(undefined);
  const message = `The session left merge conflicts in ${path}: ${nameFiles(conflicts)}.`;
  return fail('merge-conflict', message, 'Resolve them there and git add them, then retry the session.');
}

/** For a nested repository git keeps at most a commit id, so its contents exist nowhere else. */
function repositoriesApart(repositories: readonly string[], links: readonly string[]): readonly string[] {
  const notes: string[] = [];
  if (repositories.length > 0) {
    notes.push(`Not committed, because git does not track files of nested repositories: ${nameFiles(repositories)}.`);
  }
  if (links.length > 0) {
    notes.push(
      `The branch refers to commits of nested repositories (${nameFiles(links)}) that may exist only in this ` +
        'worktree: push them from there.',
    );
  }
  return notes;
}

// Moves a session's commits from another branch to its own, if that branch has only the session's work.

export interface BranchRestoration {
  /** The branch is checked out, so that uncommitted files can be committed on it. */
  readonly isOnBranch: boolean;
  readonly notes: readonly string[];
}

interface BranchContext {
  readonly workspace: Workspace;
  readonly made: readonly string[];
  readonly tip: string;
  readonly head: string;
  readonly current: string | null;
}

const ref = ({ branch }: Workspace): string => `refs/heads/${branch}`;

/**
 * For a session that is not on its branch, or whose branch has no commit. Fails with `worktree-failed`, or with
 * `merge-conflict` when both branches advanced; `leave`: the work is only reported.
 */
export async function restoreBranch(
  git: Git,
  workspace: Workspace,
  { head, branch: current }: Pick<Uncommitted, 'head' | 'branch'>,
  { gitDir, leave }: { readonly gitDir: string; readonly leave: boolean },
): Promise<Result<BranchRestoration>> {
  const { path, branch, base } = workspace;
  const found = await commitOf(git, path, ref(workspace));
  if (!found.ok) return found;
  // The commits that were made in the worktree, in order.
  const made = readLog(git.world.files, gitDir).flatMap((line) => madeCommit.exec(line)?.[1] ?? []);
  const tip = found.value ?? made.at(-1) ?? base;
  const args = ['update-ref', '-m', 'branch: restored by claude-code-agent', ref(workspace), tip, ''];
  const restored = found.value === null ? await runOwn(git, path, args) : ok('');
  if (!restored.ok) return restored;
  const notes =
    found.value === null ? [`The branch ${branch} was missing and was restored at ${tip.slice(0, 12)}.`] : [];
  const context = { workspace, made, tip, head: head ?? tip, current };
  // On a branch without commits nothing is checked out, so all files count as new on any branch.
  const home = head === null ? await attach(git, context) : await restoreOrReport(git, context, leave);
  return home.ok ? ok({ ...home.value, notes: [...notes, ...home.value.notes] }) : home;
}

async function restoreOrReport(git: Git, context: BranchContext, leave: boolean): Promise<Result<BranchRestoration>> {
  const { workspace, made, tip, head, current } = context;
  const { path, branch } = workspace;
  const isAhead = await isAncestor(git, path, tip, head);
  if (!isAhead.ok) return isAhead;
  const isBehind = await isAncestor(git, path, head, tip);
  if (!isBehind.ok) return isBehind;
  const apart = await runOwn(git, path, ['rev-list', '--first-parent', head, '--not', tip]);
  if (!apart.ok) return apart;
  const isOwn = apart.value.split('\n').every((commit) => commit === '' || made.includes(commit));
  if (isOwn && isAhead.value) {
    const home = await attach(git, context);
    if (!home.ok || head === tip || current === null) return home;
    const note = `The session committed on the branch ${current}; ${branch} was moved to the same commit.`;
    return ok({ ...home.value, notes: [note] });
  }
  if (isBehind.value || !made.includes(head)) {
    // Git carries uncommitted changes over, or refuses and changes nothing.
    const back = await askOwn(git, path, ['checkout', '--quiet', branch, '--'], { timeoutMs: longTimeoutMs });
    if (!back.ok) return back;
    if (back.value.exitCode === 0) return ok({ isOnBranch: true, notes: [] });
  }
  if (!isOwn || leave) return reportWorkElsewhere(git, context);
  const commit = head.slice(0, 12);
  const message = `The session left its branch ${branch}, and both that branch and ${commit} have new commits.`;
  const next = `Merge it by hand in ${path} (git checkout ${branch}, git merge ${commit}), then retry the session.`;
  return fail('merge-conflict', message, next);
}

/** Moves the branch to HEAD and makes it the current one; no file changes. */
async function attach(git: Git, { workspace, tip, head }: BranchContext): Promise<Result<BranchRestoration>> {
  const { path } = workspace;
  if (head !== tip) {
    const why = 'branch: moved by claude-code-agent to the commit of the session';
    const moved = await runOwn(git, path, ['update-ref', '-m', why, ref(workspace), head, tip]);
    if (!moved.ok) return moved;
  }
  const attached = await runOwn(git, path, ['symbolic-ref', 'HEAD', ref(workspace)]);
  return attached.ok ? ok({ isOnBranch: true, notes: [] }) : attached;
}

async function reportWorkElsewhere(git: Git, context: BranchContext): Promise<Result<BranchRestoration>> {
  const { workspace, tip, head, current } = context;
  const { path, branch } = workspace;
  const counted = await runOwn(git, path, ['rev-list', '--count', head, '--not', tip]);
  if (!counted.ok) return counted;
  const count = counted.value.trim();
  const uncommitted = await uncommittedIn(git, path);
  if (!uncommitted.ok) return uncommitted;
  const { files } = uncommitted.value;
  const where = current === null ? `the commit ${head.slice(0, 12)}` : `the branch ${current}`;
  const apart = [
    ...(count === '0' ? [] : [count === '1' ? '1 commit' : `${count} commits`]),
    ...(files.length === 0 ? [] : [`uncommitted changes (${nameFiles(files)})`]),
  ];
  const rest = apart.length === 0 ? '' : ` Not part of its work: ${apart.join(' and ')}.`;
  const note = `The session left its branch ${branch} for ${where}.${rest}`;
  const fix = current === null && count !== '0' ? ` Keep them with: git branch NAME ${head.slice(0, 12)}` : '';
  return ok({ isOnBranch: false, notes: [`${note}${fix}`] });
}

/** Commits at which a detached HEAD was left. */
export function leftDetached(files: Files, gitDir: string): readonly string[] {
  const left = readLog(files, gitDir).flatMap((line) => leaving.exec(line)?.[1] ?? []);
  return [...new Set(left)];
}

/** For a detached HEAD git writes the commit instead of a name. */
const leaving = /^([0-9a-f]{40,64}) [^\t]*\tcheckout: moving from [0-9a-f]{40,64} to /;

/**
 * Lines of the commits that were made in the worktree; git does not make those that a rebase starts from, or to which a
 * branch is forwarded. After the colon of a commit its subject follows, which may have any words.
 */
const madeCommit = new RegExp(
  [
    /^\w+ (\w+) [^\t]*\t/,
    /(?![^:]*\(start\)|(?:merge|pull)[^:]*: fast-forward)/,
    /(?:commit|merge|cherry-pick|revert|rebase|am|pull)\b/,
  ]
    .map(({ source }) => source)
    .join(''),
  'i',
);

/** None when git keeps no reflog. */
function readLog(files: Files, gitDir: string): readonly string[] {
  return files.readText(join(gitDir, 'logs', 'HEAD'))?.split('\n') ?? [];
}
