/** What a session wrote into the resume files of its worktree, when the worktree is to go. */
import { join, relative } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Git } from '../../git/git.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { carryBack, copiesOf, freshFiles, type HandoverCopies } from '../../worker/prepare/handover.ts';

/** Brings it into the project. Fails with `illegal-transition` when that is impossible, and it would be lost. */
export async function keepHandover(
  git: Git,
  record: SessionRecord | undefined,
  paths: SessionPaths,
): Promise<Result<void>> {
  const copies = copiesIn(git, record, paths);
  const [trouble] = copies === null ? [] : (await carryBack(git, copies)).troubles;
  if (trouble === undefined) return ok(undefined);
  const message = `What the session wrote for the next one cannot be kept: ${trouble}`;
  return fail('illegal-transition', message, `See the files in ${paths.worktree}; what is to go can be removed there.`);
}

/** Files of projects that the session began, by paths from the top of the worktree. */
export function freshHandover(git: Git, record: SessionRecord | undefined, paths: SessionPaths): readonly string[] {
  const copies = copiesIn(git, record, paths);
  return copies === null ? [] : freshFiles(git, copies);
}

/** Null when the worktree is gone, or was never known. The data root may have been moved since it was made. */
function copiesIn(
  { world: { files } }: Git,
  record: SessionRecord | undefined,
  paths: SessionPaths,
): HandoverCopies | null {
  const path = files.realPath(paths.worktree);
  if (record?.workspace === undefined || path === null) return null;
  const { workspace } = record;
  const folder = join(path, relative(workspace.path, workspace.folder));
  if (files.info(folder)?.kind !== 'folder') return null;
  return copiesOf(record, paths, { path, folder, base: workspace.base });
}
