/**
 * Which instructions of a project claude reads, besides those that we give it.
 */
import { dirname, join } from 'node:path';
import type { World } from '../../system/world.ts';

const ownNames = ['CLAUDE.md', join('.claude', 'CLAUDE.md'), 'CLAUDE.local.md'];
/** Newer programs read it where the project and the folders above have none of the others. */
export const sharedName = 'AGENTS.md';

/** Absolute paths, those of the outermost folder first: claude looks from the project up to the root. */
export function projectInstructions(world: World, projectPath: string): string[] {
  const folders = [projectPath];
  for (let folder = projectPath; dirname(folder) !== folder; folder = dirname(folder)) folders.unshift(dirname(folder));
  const existing = (names: readonly string[]) =>
    folders.flatMap((folder) => names.map((name) => join(folder, name))).filter((path) => isFile(world, path));
  const own = existing(ownNames);
  return own.length > 0 ? own : existing([sharedName]);
}

/** Folders above a project may be closed to us, and then to claude as well. */
function isFile(world: World, path: string): boolean {
  try {
    return world.files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}
