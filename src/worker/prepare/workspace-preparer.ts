/** worker/prepare/: the folder of an attempt, which is the project folder itself or a git worktree. */
import { join } from 'node:path';
import { attemptMark } from '../../claude/launch/attempt-mark.ts';
import type { Warning } from '../../core/event.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Base } from '../../core/state.ts';
import type { Git } from '../../git/git.ts';
import type { Inventory } from '../../git/unexpected-changes.ts';
import type { SessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { CommandSlots } from '../attempt/command-slots.ts';
import { type PreparedWorkspace, stoppedWaiting, type WorkspaceInput } from '../host.ts';

export interface WorkspacePreparer {
  /** Fails with `project-missing`, `worktree-failed`, `merge-conflict` or `setup-failed`. */
  workspaceFor(input: WorkspaceInput): Promise<Result<PreparedWorkspace>>;
}

/** Worktrees of a repository are created one after another: the first one fixes the base of the others. */
export function createWorkspacePreparer(
  world: World,
  git: Git,
  slots: CommandSlots,
  worktrees: string,
): WorkspacePreparer {
  const bases = new Map<string, Base>();
  return {
    workspaceFor: async (input) => {
      const { projectPath, repository } = input.record.definition;
      if (input.isElsewhere !== true) await noteBranchesBefore(git, input, worktrees);
      if (input.record.isolated !== true) {
        if (world.files.info(projectPath)?.kind !== 'folder') return projectMissing(projectPath);
        await noteBegin(world, git, input);
        return ok({ folder: projectPath });
      }
      if (repository === undefined) return noRepository(projectPath);
      // Request the turn before the import completes, so that the order is kept.
      const place = import('./worktree-setup.ts');
      // A failed import is reported below. Unhandled until then, it would end the whole run.
      place.catch(() => {});
      // Marked, so that the next runner can end a git process that outlives this one.
      const marked = { ...git, mark: { [attemptMark]: input.attempt.id } };
      const { definition, workspace } = input.record;
      const options = {
        sessionId: definition.id,
        command: 'checkout',
        turn: repository,
        onStop: input.onStop,
      } as const;
      const isLight = workspace !== undefined && world.files.info(workspace.path)?.kind === 'folder';
      const made = await slots.take({ ...options, isLight }, async () =>
        (await place).isolate(marked, input, { repository, worktrees, bases }),
      );
      if (made === null) return stoppedWaiting;
      if (!made.ok) return made;
      return (await place).setUp(world, git, input, { ...made.value, slots });
    },
  };
}

/** Records the state before the first attempt without a worktree, for a later diff. */
async function noteBegin(world: World, git: Git, { record, paths }: WorkspaceInput): Promise<void> {
  const { repository, projectPath } = record.definition;
  if (repository === undefined || world.files.info(paths.begin) !== null) return;
  const { stateNow } = await import('../../git/diff.ts');
  const begin = await stateNow(git, projectPath);
  // On failure only the diff is missing.
  if (begin.ok && begin.value !== null) world.files.writeAtomic(paths.begin, begin.value);
}

async function noteBranchesBefore(git: Git, { record, paths }: WorkspaceInput, worktrees: string): Promise<void> {
  const inventory = branchInventory(record, paths, worktrees);
  if (inventory !== null) await (await import('../../git/unexpected-changes.ts')).noteBranches(git, inventory);
}

/** At the end of an attempt: unexpected changes in its repository and in linked ones. */
export async function branchWarnings(
  { git, worktrees }: { readonly git: Git; readonly worktrees: string },
  record: SessionRecord,
  paths: SessionPaths,
): Promise<Warning[]> {
  const linked =
    record.isolated === true
      ? await (await import('./workspace-links.ts')).changedLinked(git, paths, 'the session')
      : [];
  const inventory = branchInventory(record, paths, worktrees);
  if (inventory === null) return linked;
  const messages = await (await import('../../git/unexpected-changes.ts')).changesInRepository(git, inventory);
  return [...linked, ...messages.map((message): Warning => ({ code: 'workspace', message }))];
}

function branchInventory({ definition }: SessionRecord, paths: SessionPaths, worktrees: string): Inventory | null {
  const { repository } = definition;
  if (repository === undefined) return null;
  // <data root>/session-groups/<group>/sessions/<session>
  const root = join(paths.folder, '..', '..', '..', '..');
  return { repository, file: paths.branchesBefore, ownFolders: [root, worktrees] };
}

function projectMissing(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'project-missing',
    `The project folder ${projectPath} no longer exists or is not a folder.`,
    'Restore it and retry the session, or remove the session and its dependents.',
  );
}

function noRepository(projectPath: string): { readonly ok: false; readonly failure: Failure } {
  return fail(
    'worktree-failed',
    `${projectPath} was not in a git repository when the session was added, so the session cannot have a worktree.`,
    'Remove the session and add it again. Add it with --isolate none to work in the folder itself.',
  );
}
