/** Operating system errors: codes, errors for calls made without node's help, and failures for users. */
import { constants } from 'node:os';
import { type Failure, fail } from '../core/failure.ts';

/** The code of a system error (`ENOENT`), or '' for another error. */
export function errorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}

export function isMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** The disk, or the user's quota, is full. */
export function isNoRoom(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** Runs `read`; returns `fallback` when nothing is at the path. Other errors are thrown. */
export function unlessMissing<T, F>(read: () => T, fallback: F): T | F {
  try {
    return read();
  } catch (error) {
    if (isMissing(error)) return fallback;
    throw error;
  }
}

/** `trouble` completes a sentence that begins with the path; no full stop. */
export type PathResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly trouble: string };

/** Runs an action on a path. System errors become `trouble`; other errors are thrown. */
export function tryPath<T>(action: () => T): PathResult<T> {
  try {
    return { ok: true, value: action() };
  } catch (error) {
    const code = errorCode(error);
    if (code === '') throw error;
    return { ok: false, trouble: troubles[code] ?? `cannot be read (${code})` };
  }
}

const troubles: Readonly<Record<string, string>> = {
  ELOOP: 'is a symlink loop',
  ENAMETOOLONG: 'is longer than a path can be',
};

/** An error shaped like node's own, for calls that go to the C library directly. */
export function systemError(errno: number, call: string, path: string): Error {
  const known = Object.entries(constants.errno).find(([, number]) => number === errno);
  const code = known?.[0] ?? `errno ${errno}`;
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, errno, syscall: call, path });
}

const writeCures: Readonly<Record<string, string>> = {
  ENOSPC: 'Free some disk space and run the command again.',
  EDQUOT: 'Your disk quota is exhausted: free some space and run the command again.',
  EROFS: 'Its disk is read-only: check the system log, then run the command again.',
  EIO: 'Its disk does not respond: check the system log, then run the command again.',
  ENXIO: 'It is not a regular file: look at it and move it away, then run the command again.',
  EFBIG: 'A file may not become that large here: raise the limit ("ulimit -f"), then run the command again.',
};

/** Converts a file system exception to a failure with the path and the next step. */
export function writeFailure(path: string, error: unknown): Failure {
  const code = (error as { code?: string }).code ?? '';
  const message = `Cannot write ${path}: ${code === '' ? String(error) : code}.`;
  if (code === 'ELOOP') return linkFailure(path);
  const next = writeCures[code] ?? 'Check the folder and its permissions, then run the command again.';
  return fail('write-failed', message, next).failure;
}

/** For a symlink where only our files and folders may be: its target may belong to someone else. */
export function linkFailure(path: string): Failure {
  const message = `${path} is a symlink or is reached through one, so it is not written.`;
  return fail('write-failed', message, 'Remove the link, then run the command again.').failure;
}
