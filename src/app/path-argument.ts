/** Paths that a user named: whatever the system says about them is part of a sentence, never an exception. */
import { resolve } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { needsQuotes, quoted } from '../core/id.ts';
import type { FileInfo, Files } from '../system/world.ts';

/** `trouble` completes a sentence that begins with the path. */
export type PathResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly trouble: string };

/** Does something with a path; errors of the system become `trouble`, all others are thrown again. */
export function tryPath<T>(action: () => T): PathResult<T> {
  try {
    return { ok: true, value: action() };
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== 'string') throw error;
    return { ok: false, trouble: troubles[code] ?? `cannot be read (${code})` };
  }
}

export const linkLoop = 'is a symbolic link that leads back to itself';

const troubles: Readonly<Record<string, string>> = {
  ELOOP: linkLoop,
  ENAMETOOLONG: 'is longer than a path can be',
};

export const doesNotExist = 'does not exist';

export function lookAt(files: Files, path: string): PathResult<FileInfo['kind']> {
  const info = tryPath(() => files.info(path));
  if (!info.ok) return info;
  return info.value === null ? { ok: false, trouble: doesNotExist } : { ok: true, value: info.value.kind };
}

/** The folder that a user named, absolute. Fails with `usage` and the next step `next`. */
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

/** What stands in the place of a folder, completing a sentence; null for a folder, also by a link, and for nothing. */
export function folderProblem(files: Files, path: string): string | null {
  const entry = tryPath(() => files.entryKind(path));
  if (!entry.ok || entry.value === null) return entry.ok ? null : entry.trouble;
  const found = lookAt(files, path);
  if (found.ok) return found.value === 'folder' ? null : 'is not a folder';
  return found.trouble === doesNotExist ? 'is a link that leads nowhere' : found.trouble;
}

const briefHead = 300;
const briefTail = 80;

/** The path for a sentence: shortened in the middle, and quoted when it holds invisible characters. */
export function briefPath(path: string): string {
  const isLong = path.length > briefHead + briefTail;
  const brief = isLong ? `${path.slice(0, briefHead)}…${path.slice(-briefTail)}` : path;
  return needsQuotes(brief) ? quoted(brief, brief.length) : brief;
}
