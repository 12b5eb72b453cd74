/** Files in a worktree that no commit has: those that a user's command leaves, and ignored ones. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { findRepository, type Git } from './git.ts';
import { longTimeoutMs, nameFiles, runOwn } from './run-git.ts';
import { inParts, isOurFile, withoutSetUp } from './stage.ts';
import { ignoredFiles } from './worktrees/worktree.ts';

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

// Ignored files that a session wrote: no commit has them, so they are deleted with its worktree.

/** Folders that tools refill. */
const refilled = /(?:^|\/)(?:node_modules|bower_components|__pycache__|\.venv|venv|\.tox|\.nox|\.gradle|\.turbo)\//;
/** A file with this name marks its folder as a cache (bford.info/cachedir) or a Python environment. */
const cacheMark = /(?:^|\/)(?:CACHEDIR\.TAG|pyvenv\.cfg)$/;

/** Records existing files that are not the session's: made by setup or copied; `output` is excluded. */
export async function noteIgnored(git: Git, top: string, file: string, output: readonly string[] = []): Promise<void> {
  const found = await ignoredNow(git, top);
  if (!found.ok) return;
  const own = new Set(output);
  git.world.files.writeAtomic(file, found.value.filter((name) => !own.has(name)).join('\0'));
}

/** Paths from the top of later files; all files without a record. Fails with `worktree-failed`. */
export async function ignoredOutput(git: Git, top: string, file?: string): Promise<Result<readonly string[]>> {
  const found = await ignoredNow(git, top);
  if (!found.ok) return found;
  const text = file === undefined ? null : git.world.files.readText(file);
  const before = new Set(text?.split('\0'));
  return ok(found.value.filter((name) => !before.has(name)));
}

async function ignoredNow(git: Git, top: string): Promise<Result<readonly string[]>> {
  const found = await ignoredFiles(git, top);
  if (!found.ok) return found;
  const names = found.value.filter((name) => !refilled.test(name) && !isOurFile(name));
  const caches = names.flatMap((name) => (cacheMark.test(name) ? [name.replace(/[^/]*$/, '')] : []));
  return ok(names.filter((name) => !caches.some((folder) => folder !== '' && name.startsWith(folder))));
}

export function ignoredSentence(what: string, names: readonly string[]): string {
  return `${what} contains files that git ignores: ${nameFiles(names)}.`;
}
