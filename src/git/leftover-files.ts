/** Files that a user's command leaves in a worktree, such as test reports; they are not the session's work. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { findRepository } from './git.ts';
import { longTimeoutMs, runOwn, together } from './run-git.ts';
import { isOurFile } from './stage.ts';

/** Files and links that git neither tracks nor ignores, by paths from `folder`, the top of the worktree. */
export async function untrackedFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const { files } = git.world;
  // Without its own link to git, which a command may have removed, another repository further up would answer.
  if (findRepository(files, folder)?.top !== folder || files.entryKind(join(folder, '.git')) !== 'file') {
    const next = 'Try git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${folder} is no worktree of its repository any more.`, next);
  }
  const args = ['ls-files', '-z', '--others', '--exclude-standard', '--full-name'];
  const listed = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!listed.ok) return listed;
  const names = listed.value.split('\0').filter((name) => name !== '' && !name.endsWith('/'));
  return ok(names.filter((name) => !isOurFile(name)));
}

/**
 * Removes what is among `untrackedFiles` now and is not in `before`: regular files, and links themselves, never what
 * they lead to. Folders stay, and so does whatever git tracks or ignores. Fails with `worktree-failed`; then some of
 * it may be left, and a further call removes it.
 */
export async function clearNewFiles(git: Git, folder: string, before: readonly string[]): Promise<Result<void>> {
  const now = await untrackedFiles(git, folder);
  if (!now.ok) return now;
  const old = new Set(before);
  const added = now.value.filter((name) => !old.has(name));
  if (added.length === 0) return ok(undefined);
  const committed = await runOwn(git, folder, ['ls-tree', '-r', '-z', '--name-only', 'HEAD']);
  if (!committed.ok) return committed;
  // A command that empties the index makes them look new.
  const kept = new Set(committed.value.split('\0'));
  const { files } = git.world;
  for (const name of added) {
    const path = join(folder, name);
    const kind = files.entryKind(path);
    if (kept.has(name) || (kind !== 'file' && kind !== 'link') || !leadsThroughFolders(git, folder, name)) continue;
    try {
      files.remove(path);
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (typeof code !== 'string') throw error;
      const message = `The file ${path}, which a command left behind, cannot be removed: ${code}.`;
      return fail('worktree-failed', message, 'Remove it, then retry the session.');
    }
  }
  return ok(undefined);
}

/** Git does not look behind links; this holds also when one took a folder's place since. */
function leadsThroughFolders({ world: { files } }: Git, folder: string, name: string): boolean {
  const folders = name.split('/').slice(0, -1);
  return folders.every((_, index) => files.entryKind(join(folder, ...folders.slice(0, index + 1))) === 'folder');
}

/** Tracked files that differ from the last commit, by paths from the top. Fails with `worktree-failed`. */
export async function changedTracked(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
  const status = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const names = status.value.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
  return ok(names.filter((name) => !isOurFile(name)));
}

const timeoutMs = 10_000;

/** Git and tools do not wait for the disk. Without `sync` the system writes some seconds later. */
export const syncDisks = together(
  async ({ world, env }, repository, paths: readonly string[]): Promise<undefined[]> => {
    await world.processes.run({
      program: 'sync',
      args: ['-f', repository, ...paths],
      cwd: repository,
      env: { PATH: env.PATH ?? '', LC_ALL: 'C' },
      timeoutMs,
    });
    return paths.map(() => undefined);
  },
);
