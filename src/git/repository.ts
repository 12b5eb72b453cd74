/** Which git repository a folder belongs to: found by reading files, because it is asked for every session added. */
import { dirname, join, resolve } from 'node:path';
import type { Files } from '../system/world.ts';

export interface FoundRepository {
  /** Real path of the git directory that all worktrees of the repository share. */
  readonly repository: string;
  /** Real path of the root of the worktree that holds the folder; of a bare repository, the repository itself. */
  readonly top: string;
}

/** A file that names a git directory holds one path. */
const pointerBytesMax = 64 * 1024;

/** As git itself would find it, without asking git; null outside of a repository, or when one cannot be read. */
export function findRepository(files: Files, folder: string): FoundRepository | null {
  try {
    return search(files, folder);
  } catch {
    return null;
  }
}

function search(files: Files, folder: string): FoundRepository | null {
  const start = files.realPath(folder);
  for (let top = start; top !== null; top = dirname(top) === top ? null : dirname(top)) {
    const dotGit = join(top, '.git');
    const kind = files.info(dotGit)?.kind;
    if (kind === 'file') return repositoryOf(files, top, pointedTo(files, top, dotGit));
    const gitDir = kind === 'folder' ? dotGit : isGitDirectory(files, top) ? top : null;
    const found = gitDir === null ? null : repositoryOf(files, top, gitDir);
    if (found !== null) return found;
  }
  return null;
}

/** What a file `.git` names: linked worktrees, submodules and repositories kept elsewhere have one. */
function pointedTo(files: Files, top: string, path: string): string | null {
  const target = /^gitdir: ([\s\S]+?)[\r\n]*$/.exec(readPointer(files, path))?.[1];
  return target === undefined ? null : resolve(top, target);
}

/** The git directory of one worktree, which holds its HEAD and its index; null when there is none. */
export function gitDirOf(files: Files, top: string): string | null {
  try {
    const dotGit = join(top, '.git');
    const kind = files.info(dotGit)?.kind;
    return kind === 'folder' ? dotGit : kind === 'file' ? pointedTo(files, top, dotGit) : null;
  } catch {
    return null;
  }
}

function repositoryOf(files: Files, top: string, gitDir: string | null): FoundRepository | null {
  const real = gitDir === null ? null : files.realPath(gitDir);
  if (real === null || files.info(join(real, 'HEAD')) === null) return null;
  const common = join(real, 'commondir');
  const shared = files.info(common)?.kind === 'file' ? readPointer(files, common).replace(/[\r\n]+$/, '') : '.';
  const repository = files.realPath(resolve(real, shared));
  return repository !== null && isGitDirectory(files, repository) ? { repository, top } : null;
}

function isGitDirectory(files: Files, path: string): boolean {
  const isFolder = (name: string): boolean => files.info(join(path, name))?.kind === 'folder';
  return files.info(join(path, 'HEAD'))?.kind === 'file' && isFolder('objects') && isFolder('refs');
}

function readPointer(files: Files, path: string): string {
  return new TextDecoder().decode(files.readBytes(path, 0, pointerBytesMax));
}
