/** Whether something may be opened at all: a FIFO would wait for its other end. */
import type { Files } from '../world/world.ts';

/** True for a file, also behind links. Links that lead in a circle, or where we may not look, lead to none. */
export function isRegularFile(files: Files, path: string): boolean {
  try {
    return files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}
