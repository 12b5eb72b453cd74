/** Puts what a session left in its worktree onto its branch. Whatever is not understood stays where it is. */
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import type { Git } from './git.ts';
import { halfDoneSeries, openConflicts } from './half-done.ts';
import { findRepository, gitDirOf } from './repository.ts';
import { bringHome } from './restore-branch.ts';
import { longTimeoutMs, nameFiles, runOwn } from './run-git.ts';
import { commitAll, uncommittedIn } from './stage.ts';

export interface CommittedWork {
  /** Full id of the branch's last commit. */
  readonly commit: string;
  /** Whether this call made a commit. */
  readonly committed: boolean;
  /** Sentences for people: what is not part of the branch. */
  readonly notes: readonly string[];
}

export interface CommitOptions {
  /** Uncommitted work stays uncommitted. */
  readonly leave?: boolean;
  /** As in CommitScope. */
  readonly fresh?: readonly string[];
  readonly apart?: readonly string[];
}

/**
 * Commits all that is uncommitted on the session's branch, except our own files, and makes that branch the one that is
 * checked out. Commits of the session stay as they are. Fails with `merge-conflict` when the session left a conflict,
 * and with `worktree-failed`; then nothing is lost, and a later call goes on.
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
  // Without its own git directory git would work in whatever repository lies further up.
  if (found?.repository !== repository || found.top !== path || gitDir === null) {
    if (files.entryKind(path) === null) {
      const next =
        'A retry makes the worktree again from its branch; say with --prompt that it is to look at what is left.';
      return fail('worktree-failed', `The worktree ${path} is gone, so its work cannot be judged.`, next);
    }
    const next = 'Try git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${path} is no longer a worktree of ${repository}.`, next);
  }
  const trouble = await checkHalfDone(git, path, gitDir);
  if (!trouble.ok && !leave) return trouble;
  // What is left as it is may be told of, but is no reason to fail.
  const away = { isHome: false, notes: trouble.ok ? [] : [trouble.failure.message], committed: false };
  const home = trouble.ok ? await bringHome(git, workspace, { gitDir, message, leave }) : ok(away);
  if (!home.ok) return home;
  const scope = { base, fresh, apart, ...(target === undefined ? {} : { target }) };
  const commit = home.value.isHome && !leave ? await commitAll(git, path, message, scope) : ok(null);
  if (!commit.ok) return commit;
  const tip = await runOwn(git, path, ['rev-parse', '--verify', `refs/heads/${branch}`]);
  if (!tip.ok) return tip;
  const within = await repositoriesApart(git, workspace);
  if (!within.ok) return within;
  return ok({
    commit: tip.value.trim(),
    committed: home.value.committed || commit.value !== null,
    notes: [...home.value.notes, ...within.value],
  });
}

async function checkHalfDone(git: Git, path: string, gitDir: string): Promise<Result<void>> {
  const series = halfDoneSeries(git, gitDir);
  if (series !== null) {
    const message = `The session left ${series.what} half done in ${path}.`;
    return fail('worktree-failed', message, `End it there (${series.cure}), then retry the session.`);
  }
  const conflicts = await openConflicts(git, path);
  if (!conflicts.ok || conflicts.value.length === 0) return conflicts.ok ? ok(undefined) : conflicts;
  const message = `The session left conflicts of a merge in ${path}: ${nameFiles(conflicts.value)}.`;
  return fail('merge-conflict', message, 'Settle them there and git add them, then retry the session.');
}

/** Of a repository within the worktree git keeps at most the id of a commit, so its contents are nowhere else. */
async function repositoriesApart(git: Git, { path, base, branch }: Workspace): Promise<Result<readonly string[]>> {
  const notes: string[] = [];
  const uncommitted = await uncommittedIn(git, path);
  if (!uncommitted.ok) return uncommitted;
  const { repositories } = uncommitted.value;
  if (repositories.length > 0) {
    notes.push(`Not committed, because git keeps no files of repositories within one: ${nameFiles(repositories)}.`);
  }
  const args = ['diff', '--raw', '-z', '--no-renames', '--no-relative', '--no-ext-diff', '--ignore-submodules=none'];
  const raw = await runOwn(git, path, [...args, base, `refs/heads/${branch}`], { timeoutMs: longTimeoutMs });
  if (!raw.ok) return raw;
  const fields = raw.value.split('\0');
  const linked = fields.flatMap((field, index) => (/^:\d{6} 160000 /.test(field) ? [fields[index + 1] ?? ''] : []));
  if (linked.length > 0) {
    notes.push(
      `The branch names commits of repositories within it (${nameFiles(linked)}), which may be in this worktree ` +
        'alone: push them from there.',
    );
  }
  return ok(notes);
}
