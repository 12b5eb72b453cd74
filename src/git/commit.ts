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
        'A retry makes the worktree again from its branch; say with --prompt that it is to look at what is left.';
      return fail('worktree-failed', `The worktree ${path} is gone, so its work cannot be judged.`, next);
    }
    const next = 'Try git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${path} is no longer a worktree of ${repository}.`, next);
  }
  const looked = await uncommittedIn(git, path);
  if (!looked.ok) return looked;
  const { head, branch: current } = looked.value;
  const trouble = checkHalfDone(git, path, gitDir, looked.value);
  if (!trouble.ok && !leave) return trouble;
  const isThere = current === branch && head !== null;
  // Work that stays behind may be reported, but is no failure.
  const stays = { isHome: isThere && trouble.ok, notes: trouble.ok ? [] : [trouble.failure.message] };
  const home =
    isThere || !trouble.ok ? ok(stays) : await restoreBranch(git, workspace, looked.value, { gitDir, leave });
  if (!home.ok) return home;
  const now = home.value === stays ? looked : await uncommittedIn(git, path);
  if (!now.ok) return now;
  const scope = { base, fresh, apart, ...defined({ target }) };
  const commit = home.value.isHome && !leave ? await commitAll(git, path, message, scope, now.value) : ok(false);
  if (!commit.ok) return commit;
  const printed = await runOwn(git, path, ['rev-parse', '--verify', `refs/heads/${branch}`]);
  if (!printed.ok) return printed;
  const tip = printed.value.trim();
  const made = await differenceOf(git, path, base, tip);
  if (!made.ok) return made;
  const { links, ...stat } = made.value;
  const { repositories, repositoriesLeft } = now.value;
  return ok({
    commit: tip,
    committed: commit.value,
    stat,
    notes: [
      ...home.value.notes,
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
  const why = `${nameFiles([folder])} is in the checkout alone; a set-up command can make it in the worktree, too`;
  return isMissing ? [`Hooks of the repository did not run for the session's own commits: ${why}.`] : [];
}

function checkHalfDone(git: Git, path: string, gitDir: string, { unmerged }: Uncommitted): Result<void> {
  const series = unfinishedOperation(git, gitDir);
  if (series !== null) {
    const message = `The session left ${series.what} half done in ${path}.`;
    return fail('worktree-failed', message, `End it there (${series.cure}), then retry the session.`);
  }
  const conflicts = openConflicts(git, path, unmerged);
  if (conflicts.length === 0) return ok(undefined);
  const message = `The session left conflicts of a merge in ${path}: ${nameFiles(conflicts)}.`;
  return fail('merge-conflict', message, 'Settle them there and git add them, then retry the session.');
}

/** For a nested repository git keeps at most a commit id, so its contents exist nowhere else. */
function repositoriesApart(repositories: readonly string[], links: readonly string[]): readonly string[] {
  const notes: string[] = [];
  if (repositories.length > 0) {
    notes.push(`Not committed, because git keeps no files of repositories within one: ${nameFiles(repositories)}.`);
  }
  if (links.length > 0) {
    notes.push(
      `The branch names commits of repositories within it (${nameFiles(links)}), which may be in this worktree ` +
        'alone: push them from there.',
    );
  }
  return notes;
}
