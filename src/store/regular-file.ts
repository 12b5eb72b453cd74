/** Whether something may be opened at all: a FIFO would wait for its other end. What it is, if not. */
import type { Files } from '../system/world.ts';

/** True for a file, also behind links. Links that lead in a circle, or where we may not look, lead to none. */
export function isRegularFile(files: Files, path: string): boolean {
  try {
    return files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}

/** What stands in the place of a file, for a sentence; null when it is one, or nothing is there. */
export function standInOf(files: Files, path: string): string | null {
  const entry = files.entryKind(path);
  if (entry === null || isRegularFile(files, path)) return null;
  if (entry === 'link') return 'a link that leads to no file';
  if (entry === 'folder') return 'a folder';
  return files.info(path)?.kind === 'fifo' ? 'a FIFO' : 'no regular file';
}
