/**
 * Branch and commit of a worktree, read from git's own files: hooks have no PATH, must be quick, and a repository may
 * name programs that git would start. Only branch names and commit ids leave this file.
 */
import { join, resolve } from 'node:path';
import { type ContextFiles, quietly } from '../hook-call.ts';

export interface GitHead {
  /** Absent for a detached HEAD. */
  readonly branch?: string;
  /** Full commit id; absent before the first commit, and if refs are not stored as files. */
  readonly commit?: string;
}

const commitId = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const refName = /^refs\/[\w./+@#%=,-]{1,250}$/;
const headBytesMax = 4096;
const packedBytesMax = 16 * 1024 ** 2;

/** Null when `top` is not a git worktree, or its HEAD is unreadable. */
export function readGitHead(files: ContextFiles, top: string): GitHead | null {
  const folder = gitFolder(files, top);
  const head = folder === null ? null : read(files, join(folder, 'HEAD'), headBytesMax)?.trim();
  if (folder === null || head === undefined || head === null) return null;
  if (commitId.test(head)) return { commit: head };
  const ref = head.replace(/^ref:\s*/, '');
  if (ref === head || !refName.test(ref) || ref.split('/').includes('..')) return null;
  const branch = ref.replace(/^refs\/heads\//, '');
  const commit = commitOf(files, folder, ref);
  return commit === null ? { branch } : { branch, commit };
}

/** `.git` is a folder, or in linked worktrees a file that names one. */
function gitFolder(files: ContextFiles, top: string): string | null {
  const path = join(top, '.git');
  if (quietly(() => files.info(path)?.kind) === 'folder') return path;
  const target = /^gitdir: (.+)$/m.exec(read(files, path, headBytesMax) ?? '')?.[1];
  return target === undefined ? null : resolve(top, target.trim());
}

function commitOf(files: ContextFiles, folder: string, ref: string): string | null {
  // Linked worktrees share their refs with their repository.
  const shared = read(files, join(folder, 'commondir'), headBytesMax)?.trim();
  const common = shared ? resolve(folder, shared) : folder;
  const loose = read(files, join(common, ref), headBytesMax)?.trim() ?? '';
  if (commitId.test(loose)) return loose;
  const packed = read(files, join(common, 'packed-refs'), packedBytesMax) ?? '';
  const line = packed.split('\n').find((text) => text.endsWith(` ${ref}`));
  const found = line?.slice(0, line.indexOf(' ')) ?? '';
  return commitId.test(found) ? found : null;
}

/** Null for anything but a readable regular file. */
function read(files: ContextFiles, path: string, bytesMax: number): string | null {
  const isFile = () => files.info(path)?.kind === 'file';
  return quietly(() => (isFile() ? new TextDecoder().decode(files.readBytes(path, 0, bytesMax)) : null));
}
