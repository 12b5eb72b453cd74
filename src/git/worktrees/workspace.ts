/**
 * git/worktrees/: worktrees of sessions, from their making to their end. This file: the worktree of an isolated
 * session, made on a branch of its own, found again after a crash.
 */
import { basename, dirname, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Git } from '../git.ts';
import { findRepository } from '../git.ts';
import { askOwn, commitOf, isAncestor, longTimeoutMs, refusal, runOwn } from '../run-git.ts';
import { repositoryDir } from './scratch.ts';
import {
  addFolder,
  checkFolder,
  dropBlankBranch,
  forgetFolder,
  type MadeWorkspace,
  makeNew,
  readIntent,
  registrationOf,
  remadeNow,
  sayMade,
  takeBack,
  type WorkspaceIntent,
  type WorkspacePlan,
  workspaceOf,
  writeIntent,
} from './workspace-make.ts';

/** `cca/<group-slug>/<NNN>-<name>`, whatever the name holds; without a name only the number. */
export function branchName(groupSlug: string, sessionId: SessionId, name: string | undefined): string {
  const number = String(sessionNumber(sessionId)).padStart(3, '0');
  const word = (name ?? '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|(?:\.lock|[.-])+$/gi, '');
  return `cca/${groupSlug}/${number}${word === '' ? '' : `-${word}`}`;
}

/**
 * The session's worktree: the one that was made before, or a new one on a new branch. Safe to call again after a crash
 * at any moment. Fails with `merge-conflict` when the parents do not go together, `project-missing` and
 * `worktree-failed`; then nothing new is left behind.
 */
export async function makeWorkspace(git: Git, wanted: WorkspacePlan): Promise<Result<MadeWorkspace>> {
  const { files } = git.world;
  const parent = files.realPath(dirname(wanted.path)) ?? dirname(wanted.path);
  const plan = { ...wanted, path: join(parent, basename(wanted.path)) };
  try {
    const intent = readIntent(files, plan.intentFile);
    if (intent !== null && (intent.path !== plan.path || intent.repository !== plan.repository)) {
      const message = `${plan.intentFile} speaks of another worktree: ${intent.path}.`;
      return fail('worktree-failed', message, 'Move that file away if that worktree is no longer needed.');
    }
    if (intent?.state === 'making') {
      const gone = await takeBack(git, plan.intentFile, intent);
      if (!gone.ok) return gone;
    } else if (intent !== null) {
      const found = await findAgain(git, plan, intent);
      if (!found.ok) return found;
      if (found.value !== null) return { ok: true, value: found.value };
    }
    if (files.entryKind(plan.path) !== null) {
      const message = `There is something at ${plan.path} already, and it is not known as a worktree of the session.`;
      return fail('worktree-failed', message, 'Move it away, then retry the session.');
    }
    return await makeNew(git, plan);
  } catch (error) {
    return { ok: false, failure: { ...systemFailure(plan.path, error), reason: 'worktree-failed' } };
  }
}

// Finds the worktree that a session had, and brings it back from its branch when its folder is gone.

/**
 * Null when nothing is left of it, so that a new one has to be made. Fails with `worktree-failed`, and then changes
 * nothing that holds work.
 */
export async function findAgain(
  git: Git,
  plan: WorkspacePlan,
  intent: WorkspaceIntent,
): Promise<Result<MadeWorkspace | null>> {
  const { files } = git.world;
  const { path, repository } = intent;
  if (intent.state === 'made' && files.entryKind(path) !== null) {
    const found = findRepository(files, path);
    const isWorktree = found?.repository === repository && found.top === path;
    const isEmptied = await hasLostItsFiles(git, path, isWorktree);
    if (!isEmptied.ok) return isEmptied;
    if (!isEmptied.value && isWorktree) return ok({ workspace: workspaceOf(intent), notes: [], isNew: false });
    if (!isEmptied.value) {
      const message = `${path} is no longer a worktree of ${repository}.`;
      // That is what a power cut leaves of a file that was just made, and git cannot repair it.
      const isBlank = files.info(join(path, '.git'))?.size === 0;
      const repair = isBlank
        ? 'Its file .git is empty, as after a power cut. Save'
        : 'Try git worktree repair; or save';
      return fail('worktree-failed', message, `${repair} its files and remove it, then retry.`);
    }
  }
  return restore(git, plan, intent);
}

/**
 * Nothing is in the folder any more, or only the file that makes it a worktree, while files are checked out in it:
 * whoever emptied it, the next commit of the session would delete all that the repository holds.
 */
async function hasLostItsFiles(git: Git, path: string, isWorktree: boolean): Promise<Result<boolean>> {
  const { files } = git.world;
  if (files.entryKind(path) !== 'folder') return ok(false);
  const names = files.list(path);
  if (names.length === 0) return ok(true);
  if (!isWorktree || names.some((name) => name !== '.git')) return ok(false);
  const missing = await runOwn(git, path, ['ls-files', '--deleted', '-z'], { timeoutMs: longTimeoutMs });
  return missing.ok ? ok(missing.value !== '') : missing;
}

async function restore(git: Git, plan: WorkspacePlan, intent: WorkspaceIntent): Promise<Result<MadeWorkspace | null>> {
  const { files } = git.world;
  const { path, branch, base } = intent;
  const repository = repositoryDir(intent.repository);
  dropBlankBranch(git, intent);
  const entry = await registrationOf(git, repository, path);
  if (!entry.ok) return entry;
  if (entry.value?.lock !== undefined) {
    const message = `The worktree ${path} is gone, but somebody locked it: ${entry.value.lock || 'no reason given'}.`;
    return fail('worktree-failed', message, `Put its folder back, or give it up: git worktree unlock '${path}'`);
  }
  // What is left of it holds nothing: it was emptied, or this program was filling it from the branch.
  files.remove(path);
  const tip = await commitOf(git, repository, `refs/heads/${branch}`);
  if (!tip.ok) return tip;
  const last = await lastCommit(git, repository, tip.value, entry.value?.head);
  if (!last.ok) return last;
  const commit = last.value;
  const isSamePlan = JSON.stringify(plan.parents) === JSON.stringify(intent.parents);
  const hasBase = commit === null ? await commitOf(git, repository, base) : ok(base);
  if (!hasBase.ok) return hasBase;
  if (commit === null && (!isSamePlan || hasBase.value === null)) {
    const gone = await forgetFolder(git, repository, path, branch, entry.value);
    if (!gone.ok) return gone;
    files.remove(plan.intentFile);
    return ok(null);
  }
  // One that was begun before a crash is the same one.
  const remade =
    intent.state === 'restoring' && intent.remade !== undefined
      ? intent.remade
      : remadeNow(git, commit === null ? 'base' : 'branch');
  const again: WorkspaceIntent = { ...intent, state: 'restoring', remade };
  const written = writeIntent(files, plan.intentFile, again);
  if (!written.ok) return written;
  const moved = await setBranch(git, repository, branch, commit ?? base, tip.value);
  if (!moved.ok) return moved;
  const gone = await forgetFolder(git, repository, path, branch, entry.value);
  if (!gone.ok) return gone;
  return refill(git, plan, again);
}

async function refill(git: Git, plan: WorkspacePlan, intent: WorkspaceIntent): Promise<Result<MadeWorkspace>> {
  const added = await addFolder(git, repositoryDir(intent.repository), intent.path, intent.branch);
  if (!added.ok) return added;
  const checked = checkFolder(git, intent);
  if (!checked.ok) return checked;
  const made = await sayMade(git, plan, intent);
  return made.ok ? ok({ workspace: workspaceOf(made.value), notes: [], isNew: true }) : made;
}

/** The later one of the branch's commit and the one that was checked out; null when neither is there. */
async function lastCommit(
  git: Git,
  repository: string,
  tip: string | null,
  head: string | undefined,
): Promise<Result<string | null>> {
  if (head === undefined || head === tip) return ok(tip);
  const there = await commitOf(git, repository, head);
  if (!there.ok || there.value === null || tip === null) return there.ok ? ok(tip ?? there.value) : there;
  const isBehind = await isAncestor(git, repository, tip, head);
  return isBehind.ok ? ok(isBehind.value ? head : tip) : isBehind;
}

async function setBranch(
  git: Git,
  repository: string,
  branch: string,
  commit: string,
  tip: string | null,
): Promise<Result<void>> {
  if (commit === tip) return ok(undefined);
  const args = ['update-ref', '-m', 'branch: restored by claude-code-agent', `refs/heads/${branch}`, commit, tip ?? ''];
  const moved = await askOwn(git, repository, args);
  if (!moved.ok) return moved;
  return moved.value.exitCode === 0 ? ok(undefined) : refusal(args, moved.value);
}
