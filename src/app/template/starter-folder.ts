/** Makes a folder of templates to begin with. */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import { starterFiles } from '../../template/starter.ts';
import { briefPath, tryPath } from '../path-argument.ts';

/**
 * Makes the folder with prompts, configs and workflows. Returns their paths below it. Fails with `usage`, and `next`,
 * for one that is not empty; then, as after a failed write, nothing was changed.
 */
export function makeStarterFolder(world: World, folder: string, next: string): Result<readonly string[]> {
  const free = checkFree(world, folder, next);
  return free.ok ? make(world, folder) : free;
}

function checkFree({ files }: World, folder: string, next: string): Result<void> {
  const brief = briefPath(folder);
  const kind = tryPath(() => files.info(folder)?.kind ?? null);
  if (!kind.ok) return fail('usage', `The folder ${brief} ${kind.trouble}.`, next);
  if (kind.value === null) {
    // A link that leads nowhere would send the files to a place that nobody named.
    const entry = tryPath(() => files.entryKind(folder));
    return entry.ok && entry.value === null
      ? ok(undefined)
      : fail('usage', `${brief} is a link that leads nowhere.`, next);
  }
  if (kind.value !== 'folder') return fail('usage', `${brief} is not a folder.`, next);
  const names = tryPath(() => files.list(folder));
  if (!names.ok) return fail('usage', `The folder ${brief} ${names.trouble}.`, next);
  return names.value.length === 0 ? ok(undefined) : fail('usage', `The folder ${brief} is not empty.`, next);
}

/** All files or none: what was made before a failure is taken away again, and nothing that others put there. */
function make({ files }: World, folder: string): Result<readonly string[]> {
  const made: string[] = [];
  const folders = [...new Set([folder, ...starterFiles.flatMap(({ path }) => foldersOf(folder, path))])];
  const missing = folders.filter((path) => files.info(path) === null);
  try {
    for (const { path, text } of starterFiles) {
      const target = join(folder, path);
      files.makeFolder(dirname(target));
      files.writeBytes(target, new TextEncoder().encode(text));
      made.push(target);
    }
    return ok(starterFiles.map(({ path }) => path));
  } catch (error) {
    for (const path of made) tryPath(() => files.remove(path));
    const deepestFirst = missing.toSorted((a, b) => b.length - a.length);
    for (const path of deepestFirst) tryPath(() => files.list(path).length === 0 && files.remove(path));
    return { ok: false, failure: systemFailure(folder, error) };
  }
}

/** The folders below `folder` that a path leads through. */
function foldersOf(folder: string, path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => join(folder, ...parts.slice(0, index + 1)));
}
