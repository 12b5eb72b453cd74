/** Paths from users: system errors become part of a message instead of an exception. */
import { resolve } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { needsQuotes, quoted } from '../core/id.ts';
import { type PathResult, tryPath } from '../system/system-error.ts';
import type { FileInfo, Files } from '../system/world.ts';

export { tryPath } from '../system/system-error.ts';

export const doesNotExist = 'does not exist';

export function lookAt(files: Files, path: string): PathResult<FileInfo['kind']> {
  const info = tryPath(() => files.info(path));
  if (!info.ok) return info;
  return info.value === null ? { ok: false, trouble: doesNotExist } : { ok: true, value: info.value.kind };
}

/** The absolute path of an existing folder. Fails with `usage` and `next`. */
export function folderNamed(
  { cwd, world }: { readonly cwd: string; readonly world: { readonly files: Files } },
  typed: string | undefined,
  noun: 'folder' | 'project',
  next: string,
): Result<string> {
  if (typed === '') return fail('usage', `The path of the ${noun} is empty.`, next);
  const folder = resolve(cwd, typed ?? '.');
  const found = lookAt(world.files, folder);
  if (!found.ok) return fail('usage', `The ${noun} ${briefPath(folder)} ${found.trouble}.`, next);
  return found.value === 'folder' ? ok(folder) : fail('usage', `${briefPath(folder)} is not a folder.`, next);
}

/** Why the path cannot be a folder, completing a sentence. Null for a folder, a link to one, or a free path. */
export function folderProblem(files: Files, path: string): string | null {
  const entry = tryPath(() => files.entryKind(path));
  if (!entry.ok || entry.value === null) return entry.ok ? null : entry.trouble;
  const found = lookAt(files, path);
  if (found.ok) return found.value === 'folder' ? null : 'is not a folder';
  return found.trouble === doesNotExist ? 'is a broken symlink' : found.trouble;
}

const briefHead = 300;
const briefTail = 80;

/** The path for a message: shortened in the middle, and quoted if it contains invisible characters. */
export function briefPath(path: string): string {
  const isLong = path.length > briefHead + briefTail;
  const brief = isLong ? `${path.slice(0, briefHead)}…${path.slice(-briefTail)}` : path;
  return needsQuotes(brief) ? quoted(brief, brief.length) : brief;
}
