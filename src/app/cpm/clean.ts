/** app/cpm/: what the commands of CPM share. This file removes progress files. */
import { progressFolder } from '../../context/cpm/state.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { Files } from '../../system/world.ts';
import { tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';
import { findListed, type ListedProgress, type ProjectProgress } from './progress-files.ts';

/** The named ones, each once; without names all stale ones. */
export function chooseProgress(progress: ProjectProgress, ids: readonly string[]): Result<readonly ListedProgress[]> {
  if (ids.length === 0) return ok(progress.listed.filter(({ file }) => file.stale));
  const chosen = new Set<ListedProgress>();
  for (const id of ids) {
    const found = findListed(progress, id);
    if (!found.ok) return found;
    chosen.add(found.value);
  }
  return ok([...chosen]);
}

/**
 * Completes a sentence that begins with the file; null = it can be removed. Removing goes down into folders, so only a
 * regular file of this very project is given to it.
 */
export function removalTrouble(files: Files, folder: string, { file }: ListedProgress): string | null {
  const looked = tryPath(() => {
    const root = files.realPath(folder);
    const path = files.realPath(file.path);
    const kind = files.entryKind(file.path);
    // A file that has vanished needs no removing.
    return kind === null || (kind === 'file' && root !== null && path?.startsWith(`${root}/`) === true);
  });
  if (!looked.ok) return looked.trouble;
  return looked.value ? null : 'is not a regular file of the project';
}

/**
 * Removes those that were not written since they were listed. Returns the names of what is gone, and what stands in the
 * way of the others (each completes a list).
 */
export function removeProgress(
  { world: { files }, notes }: Place,
  folder: string,
  chosen: readonly ListedProgress[],
): { readonly removed: readonly string[]; readonly failed: readonly string[] } {
  const removed: string[] = [];
  const failed: string[] = [];
  for (const one of chosen) {
    const now = tryPath(() => files.info(one.file.path)?.mtimeMs ?? null);
    // It was written while the question stood: its session lives, and it is not what was agreed to.
    if (now.ok && now.value !== null && now.value !== one.file.mtimeMs) {
      notes.line(`Kept ${one.file.name}: it has just been written.`);
      continue;
    }
    const gone = tryPath(() => {
      const trouble = removalTrouble(files, folder, one);
      if (trouble === null) files.remove(one.file.path);
      return trouble;
    });
    const trouble = gone.ok ? gone.value : gone.trouble;
    if (trouble === null) removed.push(one.file.name);
    else failed.push(`${progressFolder}/${one.file.name} ${trouble}`);
  }
  return { removed, failed };
}
