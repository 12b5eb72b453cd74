/** Files that a user's command leaves in a worktree, such as test reports; they are not the session's work. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { findRepository } from './git.ts';
import { longTimeoutMs, runOwn } from './run-git.ts';
import { inParts, isOurFile, withoutSetUp } from './stage.ts';

/** Files and symlinks that git neither tracks nor ignores, by paths from `folder`, the top of the worktree. */
export async function untrackedFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const { files } = git.world;
  // Without its own `.git` file, which a command may have removed, an enclosing repository would answer.
  if (findRepository(files, folder)?.top !== folder || files.entryKind(join(folder, '.git')) !== 'file') {
    const next = 'Run git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${folder} is no longer a worktree of its repository.`, next);
  }
  const args = ['ls-files', '-z', '--others', '--exclude-standard', '--full-name'];
  const listed = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!listed.ok) return listed;
  const names = listed.value.split('\0').filter((name) => name !== '' && !name.endsWith('/'));
  return ok(names.filter((name) => !isOurFile(name)));
}

/** Removes current `untrackedFiles` that are not in `before`. Fails with `worktree-failed`; then some may remain. */
export async function clearNewFiles(git: Git, folder: string, before: readonly string[]): Promise<Result<void>> {
  const now = await untrackedFiles(git, folder);
  if (!now.ok) return now;
  const old = new Set(before);
  const added = now.value.filter((name) => !old.has(name));
  return inParts(git, folder, ['clean', '-f', '-d', '-q', '--'], added);
}

/** Tracked files that differ from the last commit, by paths from the top. Fails with `worktree-failed`. */
export async function changedTracked(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
  const status = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const names = status.value.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
  const others = names.filter((name) => !isOurFile(name));
  return ok(withoutSetUp(git, folder, others));
}

const timeoutMs = 10_000;

/** Git and tools do not sync. Without this the system writes to disk some seconds later. */
export async function syncDisks({ world, env }: Git, repository: string, path: string): Promise<void> {
  const call = { cwd: repository, env: { PATH: env.PATH ?? '', LC_ALL: 'C' }, timeoutMs };
  await world.processes.run({ program: 'sync', args: ['-f', repository, path], ...call });
}
