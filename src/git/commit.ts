/** Commits a session's uncommitted work onto its branch. Anything unclear stays where it is. */
import { join } from 'node:path';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import { type DiffStat, differenceOf, openConflicts, unfinishedOperation } from './diff.ts';
import type { Git } from './git.ts';
import { findRepository, gitDirOf } from './git.ts';
import { restoreBranch } from './restore-branch.ts';
import { nameFiles, runOwn } from './run-git.ts';
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
  const found = findRepository(files, path);
  const gitDir = gitDirOf(files, path);
  // Without its own git directory, git would use an enclosing repository.
  if (found?.repository !== repository || found.top !== path || gitDir === null) {
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
