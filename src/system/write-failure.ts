/** Failures for a disk that cannot be written. */
import { type Failure, fail } from '../core/failure.ts';

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
