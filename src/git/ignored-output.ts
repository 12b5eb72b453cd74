/** Ignored files that a session wrote: no commit has them, so they are deleted with its worktree. */
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { nameFiles } from './run-git.ts';
import { isOurFile } from './stage.ts';
import { ignoredFiles } from './worktrees/worktree.ts';

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
