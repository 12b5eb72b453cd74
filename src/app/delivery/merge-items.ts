/**
 * The work of single sessions, as a hand-over finds it: what of it is on a branch, what is only in a worktree, and what
 * is in the target already.
 */
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId, Work, Workspace } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import { findRepository } from '../../git/git.ts';
import { isAncestor, nameFiles } from '../../git/run-git.ts';
import { uncommittedIn } from '../../git/stage.ts';
import { tipOf } from '../../git/target.ts';
import { listed, repositoryDir } from '../../git/worktrees/scratch.ts';
import { sessionTitle } from '../../view/wording.ts';

export interface MergeItem {
  readonly record: SessionRecord;
  readonly workspace: Workspace;
  readonly work: Work;
  readonly source: string;
  /** The branch that it is for unless the user names one; absent = none was checked out. */
  readonly target?: string;
  /** Paths of what its worktree holds besides, where the session was told to leave its work uncommitted. */
  readonly uncommitted: readonly string[];
  /** Paths of changed files from which claude or this program starts commands; filled in by the plan. */
  readonly programs?: readonly string[];
}

export interface LeftOut {
  readonly sessionId: SessionId;
  readonly title: string;
  readonly why: string;
  /** `none`: nothing to merge. `elsewhere`: no hand-over takes it. `uncommitted`: its user has to commit it. */
  readonly work: 'none' | 'elsewhere' | 'uncommitted';
}

export function programsSentence(files: readonly string[]): string | null {
  if (files.length === 0) return null;
  return `Review before you run anything there: it changes ${listed(files)}, from which programs are started.`;
}

export function titleOfItem({ record }: Pick<MergeItem, 'record'>): string {
  return sessionTitle(record.definition.id, record.definition.name);
}

/** Of a session that nothing was merged of yet. Fails with git's reason, or when its work is gone. */
export async function mergeItemOf(git: Git, record: SessionRecord): Promise<Result<MergeItem | LeftOut>> {
  const { state, workspace, isolated } = record;
  const leave = (why: string, waits: LeftOut['work']) => ok(leaveOut(record, why, waits));
  if (state.status !== 'completed') {
    return leave(`is ${state.status}`, state.status === 'pending' ? 'none' : 'elsewhere');
  }
  if (isolated !== true) return leave('worked in the project folder itself', 'elsewhere');
  if (workspace === undefined) return leave('has no worktree and no branch any more', 'none');
  const { work } = state;
  if (work === undefined) return leave('left no commit', 'none');
  const source = await sourceOf(git, record, workspace, work);
  if (!source.ok) return source;
  const isEmpty = source.value === workspace.base;
  const uncommitted = isEmpty || record.definition.commit === false ? await uncommittedOf(git, workspace) : ok([]);
  if (!uncommitted.ok) return uncommitted;
  if (isEmpty && uncommitted.value.length > 0) return leave(holding(uncommitted.value), 'uncommitted');
  const goal = defined({ target: workspace.target });
  return ok({ record, workspace, work, source: source.value, uncommitted: uncommitted.value, ...goal });
}

function leaveOut(record: SessionRecord, why: string, work: LeftOut['work']): LeftOut {
  return { sessionId: record.definition.id, title: titleOfItem({ record }), why, work };
}

/** What a merged session has new for `into`; null: nothing, `elsewhere`: only the branch it was merged into has it. */
export async function mergeItemSince(
  git: Git,
  record: SessionRecord,
  into: string,
): Promise<Result<MergeItem | LeftOut | 'elsewhere' | null>> {
  const { state, workspace, definition, mergedInto } = record;
  const isThere = into === mergedInto;
  const repository = workspace?.repository ?? definition.repository;
  const work = state.status === 'completed' ? state.work : undefined;
  if (work === undefined || repository === undefined) return ok(null);
  if (isGone(git, repository)) return ok(isThere ? null : 'elsewhere');
  const target = await tipOf(git, repository, into);
  if (!target.ok) return target;
  // Where the branch is gone that it was merged into, nobody wants it there any more.
  if (target.value === null && isThere) return ok(null);
  const tip = workspace === undefined ? ok(null) : await tipOf(git, repository, workspace.branch);
  if (!tip.ok) return tip;
  if (workspace === undefined || tip.value === null) {
    const known = isThere ? ok(true) : await holds(git, repository, target.value, work.commit);
    return known.ok ? ok(known.value ? null : 'elsewhere') : known;
  }
  const uncommitted = definition.commit === false ? await uncommittedOf(git, workspace) : ok([]);
  if (!uncommitted.ok) return uncommitted;
  const known = await holds(git, repository, target.value, tip.value);
  if (!known.ok) return known;
  if (!known.value)
    return ok({ record, workspace, work, source: tip.value, uncommitted: uncommitted.value, target: into });
  return ok(uncommitted.value.length === 0 ? null : leaveOut(record, holding(uncommitted.value), 'uncommitted'));
}

/** A repository that has lost the commit cannot say, so then it is not there. */
async function holds(git: Git, repository: string, tip: string | null, commit: string): Promise<Result<boolean>> {
  if (tip === null) return ok(false);
  const known = await isAncestor(git, repositoryDir(repository), commit, commit);
  return known.ok ? isAncestor(git, repositoryDir(repository), commit, tip) : ok(false);
}

export function isGone({ world }: Git, repository: string): boolean {
  return world.files.info(repository)?.kind !== 'folder';
}

export function holding(files: readonly string[]): string {
  return `holds uncommitted work: ${nameFiles(files)}; commit it on its branch and merge again`;
}

/** Paths from the top of the worktree, without our own files; none when there is no worktree any more. */
export async function uncommittedOf(git: Git, workspace: Workspace): Promise<Result<readonly string[]>> {
  if (!isWorktree(git, workspace)) return ok([]);
  const uncommitted = await uncommittedIn(git, workspace.path);
  return uncommitted.ok ? ok([...uncommitted.value.files, ...uncommitted.value.repositories]) : uncommitted;
}

/** Whether its worktree is there. Without its link git would tell of whatever repository lies further up. */
export function isWorktree({ world: { files } }: Git, { path, repository }: Workspace): boolean {
  const found = findRepository(files, path);
  return found?.repository === repository && found.top === files.realPath(path);
}

/** Its branch as it is now, because people correct conflicts there; its commit when the branch is gone or behind. */
async function sourceOf(
  git: Git,
  record: SessionRecord,
  { repository, branch }: Workspace,
  { commit }: Work,
): Promise<Result<string>> {
  const tip = await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  if (tip.value === commit) return ok(commit);
  if (tip.value === null) {
    const known = await isAncestor(git, repositoryDir(repository), commit, commit);
    if (known.ok) return ok(commit);
    return fail(
      'worktree-failed',
      `The branch ${branch} of ${titleOfItem({ record })} and its commit ${commit} are gone.`,
      `Look for it with "git -C ${repositoryDir(repository)} fsck --lost-found", or remove the session.`,
    );
  }
  const isBehind = await isAncestor(git, repositoryDir(repository), tip.value, commit);
  if (!isBehind.ok) return isBehind;
  return ok(isBehind.value ? commit : tip.value);
}
