/** Ignored files that a session wrote: no commit has them, so they go with its worktree. */
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { nameFiles } from './run-git.ts';
import { isOurFile } from './stage.ts';
import { ignoredFiles } from './worktrees/worktree.ts';

/** Folders that tools fill again by themselves. */
const refilled = /(?:^|\/)(?:node_modules|bower_components|__pycache__|\.venv|venv|\.tox|\.nox|\.gradle|\.turbo)\//;
/** A file of this name says that its folder is a cache (bford.info/cachedir), or a Python environment. */
const cacheMark = /(?:^|\/)(?:CACHEDIR\.TAG|pyvenv\.cfg)$/;

/** Writes down what is there and is not the session's: what setup made and what was copied; `output` is left out. */
export async function noteIgnored(git: Git, top: string, file: string, output: readonly string[] = []): Promise<void> {
  const found = await ignoredNow(git, top);
  if (!found.ok) return;
  const own = new Set(output);
  git.world.files.writeAtomic(file, found.value.filter((name) => !own.has(name)).join('\0'));
}

/** Paths from the top of what came since; all, where nothing was written down. Fails with `worktree-failed`. */
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
  return `${what} holds files that git ignores: ${nameFiles(names)}.`;
}
