/** The work of others with which a session's branch begins, as it is now in their branches or in their checkout. */
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition, Workspace } from '../../core/group.ts';
import { quoted, sessionLabel } from '../../core/id.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import { isOurFile } from '../../git/our-files.ts';
import { commitOf, isAncestor } from '../../git/run-git.ts';
import { changedFiles } from '../../git/worktrees/worktree.ts';

export interface Grounds {
  /** Full ids, what the session's branch begins with. */
  readonly commits: readonly string[];
  /** Some of it began in another checkout, which may lack what is checked out in this one. */
  readonly isForeign: boolean;
}

/** The work on which the session builds. Fails with `worktree-failed` when some of it is in no commit. */
export async function baseCommitsOf(
  git: Git,
  baseCommits: readonly SessionRecord[],
  checkout: string,
): Promise<Result<Grounds>> {
  const commits: string[] = [];
  let isForeign = false;
  for (const { definition, state: session, workspace } of baseCommits) {
    const recorded = session.status === 'completed' ? session.work?.commit : undefined;
    const commit =
      recorded === undefined
        ? await commitInPlace(git, definition)
        : await newestOf(git, definition, recorded, workspace);
    if (!commit.ok) return commit;
    commits.push(commit.value);
    isForeign ||= (workspace?.checkout ?? checkout) !== checkout;
  }
  return ok({ commits, isForeign });
}

/** What a person has added to the branch since counts: a conflict is resolved there. */
async function newestOf(
  git: Git,
  { projectPath }: SessionDefinition,
  recorded: string,
  workspace: Workspace | undefined,
): Promise<Result<string>> {
  if (workspace === undefined) return ok(recorded);
  const tip = await commitOf(git, projectPath, `refs/heads/${workspace.branch}`);
  if (!tip.ok) return tip;
  if (tip.value === null) return ok(recorded);
  const goesOn = await isAncestor(git, projectPath, recorded, tip.value);
  return goesOn.ok ? ok(goesOn.value ? tip.value : recorded) : goesOn;
}

/** The work of a session without a worktree is what is checked out, once nothing of it is uncommitted. */
async function commitInPlace(git: Git, { id, name, projectPath }: SessionDefinition): Promise<Result<string>> {
  const changed = await changedFiles(git, projectPath);
  if (!changed.ok) return changed;
  const who = sessionLabel(id, name);
  const next = `Commit it in ${projectPath} and retry the session, or add it anew with --isolate none.`;
  if (changed.value.some((path) => !isOurFile(path))) {
    return fail('worktree-failed', `${who} worked in ${projectPath} itself and left work uncommitted there.`, next);
  }
  const head = await commitOf(git, projectPath, 'HEAD');
  if (!head.ok) return head;
  return head.value === null ? fail('worktree-failed', `${projectPath} has no commit yet.`, next) : ok(head.value);
}

/** A conflict can be resolved where both sides are: in the worktree of the session that was completed last. */
export function withCure(failure: Failure, baseCommits: readonly SessionRecord[]): Result<never> {
  const [last, ...others] = baseCommits.flatMap(({ workspace }) => workspace ?? []).reverse();
  if (failure.reason !== 'merge-conflict' || last === undefined || others.length === 0) return { ok: false, failure };
  const branches = others.map(({ branch }) => branch).join(' ');
  const command = `git -C ${quoted(last.path)} merge ${branches}`;
  return fail(failure.reason, failure.message, `Resolve it there with \`${command}\` and commit the result.`);
}
