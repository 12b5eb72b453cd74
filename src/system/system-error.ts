/** Operating system errors: codes, and errors for calls made without node's help. */
import { constants } from 'node:os';

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

/** An error shaped like node's own, for calls that go to the C library directly. */
export function systemError(errno: number, call: string, path: string): Error {
  const known = Object.entries(constants.errno).find(([, number]) => number === errno);
  const code = known?.[0] ?? `errno ${errno}`;
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, errno, syscall: call, path });
}
