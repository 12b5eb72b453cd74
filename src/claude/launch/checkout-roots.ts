/**
 * Where claude looks for the settings of one person beside the project's own folder: in the main checkout of its
 * repository, whichever folder or worktree of that the session works in.
 */
import { dirname, join, resolve } from 'node:path';
import type { World } from '../../system/world.ts';

/** Of a `.git` that is a file, and of the file it names; what is longer is none. */
const pointerBytes = 8_192;

/**
 * The folders that may count as the root of the repository that `folder` is in: that of its checkout and, where that is
 * a worktree, that of the main one. None outside of a repository. Read from files, because git itself would first do
 * what the repository tells it to.
 */
export function checkoutRoots(world: World, folder: string): string[] {
  for (let at = world.files.realPath(folder) ?? folder; ; at = dirname(at)) {
    const kind = world.files.entryKind(join(at, '.git'));
    if (kind !== null) return kind === 'file' ? [at, ...mainRoots(world, at)] : [at];
    if (dirname(at) === at) return [];
  }
}

function mainRoots(world: World, root: string): string[] {
  const named = /^gitdir: *(.+?)\s*$/.exec(pointer(world, join(root, '.git')))?.[1];
  if (named === undefined) return [];
  const gitDir = resolve(root, named);
  const common = resolve(gitDir, pointer(world, join(gitDir, 'commondir')).trim());
  // A bare repository is its own root.
  return [dirname(common), common];
}

function pointer(world: World, path: string): string {
  if (world.files.info(path)?.kind !== 'file') return '';
  return new TextDecoder().decode(world.files.readBytes(path, 0, pointerBytes));
}
