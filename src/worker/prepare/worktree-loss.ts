/** What a session lost with its worktree, as far as git can tell: said to people, and to claude in resume-prompt.ts. */
import type { Loss } from '../../claude/launch/resume-prompt.ts';
import type { Workspace } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import { runOwn } from '../../git/run-git.ts';

/** `record` is as it was when the worktree was made again. */
export async function lossOf(git: Git, record: SessionRecord, workspace: Workspace): Promise<Loss> {
  const { path, branch, base, remade } = workspace;
  const hasBegun = record.claudeSessionIds.length > 0;
  if (!hasBegun || (record.committed === true && remade?.from === 'branch')) return { branch, kept: 'all' };
  const counted = await runOwn(git, path, ['rev-list', '--count', `${base}..refs/heads/${branch}`]);
  // Unknown is not nothing: what then is said holds either way.
  const commits = counted.ok ? Number.parseInt(counted.value, 10) : null;
  return { branch, kept: commits === 0 ? 'nothing' : 'commits' };
}

/** A warning on the session. */
export function describeLoss({ branch, kept }: Loss): string {
  const what = {
    all: 'nothing of its work is lost',
    commits: 'its commits are there, what was in no commit is lost, and claude is told so',
    nothing: 'that holds no commit of the session, so what it had changed is lost, and claude is told so',
  };
  return `The worktree of the session was gone; it was made again from the branch ${branch}: ${what[kept]}.`;
}
