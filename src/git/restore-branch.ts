/** Moves a session's commits from another branch to its own, if that branch has only the session's work. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import type { Files } from '../system/world.ts';
import type { Git } from './git.ts';
import { askOwn, commitOf, isAncestor, longTimeoutMs, nameFiles, runOwn } from './run-git.ts';
import { type Uncommitted, uncommittedIn } from './stage.ts';
import { listWorktrees } from './worktrees/worktree.ts';

export interface BranchRestoration {
  /** The branch is checked out, so that uncommitted files can be committed on it. */
  readonly isOnBranch: boolean;
  readonly notes: readonly string[];
}

interface BranchContext {
  readonly workspace: Workspace;
  readonly gitDir: string;
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
  const { path, branch } = workspace;
  const tip = await commitOf(git, path, ref(workspace));
  if (!tip.ok) return tip;
  const free = await checkFree(git, workspace);
  if (!free.ok) return free;
  const restored = tip.value === null ? await recreateBranch(git, workspace, gitDir) : ok(tip.value);
  if (!restored.ok) return restored;
  const notes =
    tip.value === null ? [`The branch ${branch} was missing and was restored at ${restored.value.slice(0, 12)}.`] : [];
  // On a branch without commits nothing is checked out, so all files count as new on any branch.
  const there = head ?? restored.value;
  const context = { workspace, gitDir, tip: restored.value, head: there, current };
  const home = head === null ? await attach(git, context, there) : await restoreOrReport(git, context, leave);
  return home.ok ? ok({ ...home.value, notes: [...notes, ...home.value.notes] }) : home;
}

/** Moving a branch that is checked out elsewhere would make that checkout stale. */
async function checkFree(git: Git, { path, branch }: Workspace): Promise<Result<void>> {
  const listed = await listWorktrees(git, path);
  if (!listed.ok) return listed;
  const other = listed.value.find((worktree) => worktree.branch === branch && worktree.path !== path);
  if (other === undefined) return ok(undefined);
  const message = `The branch ${branch} of the session is checked out in ${other.path}.`;
  return fail('worktree-failed', message, 'Check out another branch there, then retry the session.');
}

/** At the last commit known to have been on it. */
async function recreateBranch(git: Git, workspace: Workspace, gitDir: string): Promise<Result<string>> {
  const { path, branch, base } = workspace;
  const { tip } = readHeadLog(git.world.files, gitDir, branch);
  const known = tip === undefined ? ok(null) : await commitOf(git, path, tip);
  if (!known.ok) return known;
  const commit = known.value ?? base;
  const args = ['update-ref', '-m', 'branch: restored by claude-code-agent', ref(workspace), commit, ''];
  const made = await runOwn(git, path, args);
  return made.ok ? ok(commit) : made;
}

async function restoreOrReport(git: Git, context: BranchContext, leave: boolean): Promise<Result<BranchRestoration>> {
  const relation = await relationOf(git, context);
  if (!relation.ok) return relation;
  const { isOwn, isAhead, isBehind, isLoose, isUnmoved } = relation.value;
  const { workspace, tip, head, current } = context;
  const { path, branch } = workspace;
  if (isOwn && isAhead) {
    const home = await attach(git, context, head);
    if (!home.ok || head === tip || current === null) return home;
    const note = `The session committed on the branch ${current}; ${branch} was moved to the same commit.`;
    return ok({ ...home.value, notes: [note] });
  }
  if (isBehind || (isUnmoved && !isLoose)) {
    // Git carries uncommitted changes over, or refuses and changes nothing.
    const back = await askOwn(git, path, ['checkout', '--quiet', branch, '--'], { timeoutMs: longTimeoutMs });
    if (!back.ok) return back;
    if (back.value.exitCode === 0) return ok({ isOnBranch: true, notes: [] });
  }
  if (!isOwn || leave) return reportWorkElsewhere(git, context, isLoose);
  const commit = head.slice(0, 12);
  const message = `The session left its branch ${branch}, and both that branch and ${commit} have new commits.`;
  const next = `Merge it by hand in ${path} (git checkout ${branch}, git merge ${commit}), then retry the session.`;
  return fail('merge-conflict', message, next);
}

interface BranchRelation {
  /** HEAD has only the session's work besides the branch's own history. */
  readonly isOwn: boolean;
  /** HEAD contains the whole branch, or the branch contains HEAD. */
  readonly isAhead: boolean;
  readonly isBehind: boolean;
  /** Some of it is on no branch and no tag. */
  readonly isLoose: boolean;
  /** Nothing was committed since the branch was left. */
  readonly isUnmoved: boolean;
}

async function relationOf(git: Git, { workspace, gitDir, tip, head }: BranchContext): Promise<Result<BranchRelation>> {
  const { path, branch } = workspace;
  const holds = (commit: string, of: string): Promise<Result<boolean>> => isAncestor(git, path, commit, of);
  const isAhead = await holds(tip, head);
  if (!isAhead.ok) return isAhead;
  const isBehind = await holds(head, tip);
  if (!isBehind.ok) return isBehind;
  const all = await countCommits(git, path, [head, '--not', tip]);
  if (!all.ok) return all;
  const loose = await countCommits(git, path, [head, '--not', tip, '--branches', '--tags', '--remotes']);
  if (!loose.ok) return loose;
  const leftAt = await leftAtCommit(git, path, gitDir, branch);
  const began = leftAt === undefined ? isAhead : await holds(leftAt, tip);
  if (!began.ok) return began;
  // It checked out something else, returned, and continued from the branch.
  const still = leftAt === undefined || !isAhead.value ? ok(true) : await holds(leftAt, head);
  if (!still.ok) return still;
  return ok({
    isOwn: isBehind.value || began.value || !still.value || (loose.value > 0 && loose.value === all.value),
    isAhead: isAhead.value,
    isBehind: isBehind.value,
    isLoose: loose.value > 0,
    isUnmoved: leftAt === head,
  });
}

/** Undefined even when that commit is gone. */
async function leftAtCommit(git: Git, path: string, gitDir: string, branch: string): Promise<string | undefined> {
  const { leftAt } = readHeadLog(git.world.files, gitDir, branch);
  const there = leftAt === undefined ? null : await commitOf(git, path, leftAt);
  return there?.ok && there.value !== null ? leftAt : undefined;
}

async function countCommits(git: Git, path: string, range: readonly string[]): Promise<Result<number>> {
  const counted = await runOwn(git, path, ['rev-list', '--count', ...range]);
  return counted.ok ? ok(Number.parseInt(counted.value, 10)) : counted;
}

/** Moves the branch to HEAD and makes it the current one; no file changes. */
async function attach(
  git: Git,
  { workspace, tip, head, current }: BranchContext,
  commit: string,
): Promise<Result<BranchRestoration>> {
  const { path, branch } = workspace;
  if (commit !== tip) {
    const why = 'branch: moved by claude-code-agent to the commit of the session';
    const moved = await runOwn(git, path, ['update-ref', '-m', why, ref(workspace), commit, tip]);
    if (!moved.ok) return moved;
  }
  // In git's own wording, because the reflog of HEAD is parsed by it.
  const message = `checkout: moving from ${current ?? head} to ${branch}`;
  const attached = await runOwn(git, path, ['symbolic-ref', '-m', message, 'HEAD', ref(workspace)]);
  return attached.ok ? ok({ isOnBranch: true, notes: [] }) : attached;
}

async function reportWorkElsewhere(
  git: Git,
  context: BranchContext,
  isLoose: boolean,
): Promise<Result<BranchRestoration>> {
  const { workspace, tip, head, current } = context;
  const { path, branch } = workspace;
  const count = await countCommits(git, path, [head, '--not', tip]);
  if (!count.ok) return count;
  const uncommitted = await uncommittedIn(git, path);
  if (!uncommitted.ok) return uncommitted;
  const { files } = uncommitted.value;
  const where = current === null ? `the commit ${head.slice(0, 12)}` : `the branch ${current}`;
  const apart = [
    ...(count.value === 0 ? [] : [count.value === 1 ? '1 commit' : `${count.value} commits`]),
    ...(files.length === 0 ? [] : [`uncommitted changes (${nameFiles(files)})`]),
  ];
  const rest = apart.length === 0 ? '' : ` Not part of its work: ${apart.join(' and ')}.`;
  const note = `The session left its branch ${branch} for ${where}.${rest}`;
  const fix = isLoose ? ` Its commits are on no branch. Keep them with: git branch NAME ${head.slice(0, 12)}` : '';
  return ok({ isOnBranch: false, notes: [`${note}${fix}`] });
}

/** Commits at which a detached HEAD was left. */
export function leftDetached(files: Files, gitDir: string): readonly string[] {
  const left = readLog(files, gitDir).flatMap((line) => leaving.exec(line)?.[1] ?? []);
  return [...new Set(left)];
}

/** For a detached HEAD git writes the commit instead of a name. */
const leaving = /^([0-9a-f]{40,64}) [^\t]*\tcheckout: moving from [0-9a-f]{40,64} to /;

interface HeadLog {
  /** The last commit that was checked out on the branch, according to the reflog. */
  readonly tip?: string;
  /** The commit checked out when the branch was last left; absent = never left, or unknown. */
  readonly leftAt?: string;
}

/** A session makes few commits; the end of a longer reflog is enough. */
const bytesMax = 4 * 1024 * 1024;
const linePattern = /^[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t]*\t(.*)$/;

/** Lines; none when git keeps no reflog. */
function readLog(files: Files, gitDir: string): readonly string[] {
  const path = join(gitDir, 'logs', 'HEAD');
  const info = files.info(path);
  if (info?.kind !== 'file') return [];
  return new TextDecoder().decode(files.readBytes(path, Math.max(0, info.size - bytesMax), bytesMax)).split('\n');
}

function readHeadLog(files: Files, gitDir: string, branch: string): HeadLog {
  let isOnBranch = true;
  let log: { tip?: string; leftAt?: string } = {};
  for (const line of readLog(files, gitDir)) {
    const [, commit, message] = linePattern.exec(line) ?? [];
    // While a branch is renamed it has no commit for a moment.
    if (commit === undefined || message === undefined || /^0+$/.test(commit)) continue;
    const move = moveIn(message);
    if (move !== null) {
      if (isOnBranch && move !== branch) log = { ...log, leftAt: commit };
      isOnBranch = move === branch;
    }
    if (isOnBranch) log = { tip: commit };
  }
  return log;
}

/** The branch, or other revision, checked out from then on; null = unchanged. */
function moveIn(message: string): string | null {
  const moved = /^checkout: moving from .* to (.*)$/.exec(message)?.[1];
  if (moved !== undefined) return moved;
  const renamed = /^Branch: renamed refs\/heads\/.* to refs\/heads\/(.*)$/.exec(message)?.[1];
  if (renamed !== undefined) return renamed;
  if (/^(?:rebase|pull)\b.*\(start\)/.test(message)) return '';
  return /\(finish\): returning to refs\/heads\/(.*)$/.exec(message)?.[1] ?? null;
}
