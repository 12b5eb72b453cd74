/**
 * git/worktrees/: worktrees of sessions, from their making to their end. This file: the worktree of an isolated
 * session, made on a branch of its own, found again after a crash.
 */
import { basename, dirname, join } from 'node:path';
import { fail, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Git } from '../git.ts';
import { type MadeWorkspace, readIntent, type WorkspacePlan } from './workspace-intent.ts';
import { makeNew, takeBack } from './workspace-make.ts';
import { findAgain } from './workspace-restore.ts';

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
