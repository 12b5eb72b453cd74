/** Files and folders that only their owner may read. For files of a user's project the umask applies. */
import { closeSync, constants, fchmodSync, fsyncSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs';
import { unlessMissing } from './system-error.ts';

export function createShared(path: string, flags: number, like?: string): number {
  const old = like === undefined ? null : unlessMissing(() => statSync(like), null);
  if (old === null) return openSync(path, flags | constants.O_CREAT | constants.O_NOFOLLOW, 0o666);
  // Private until it has its mode, so that no other user can read it for an instant.
  const fd = openPrivate(path, flags);
  fchmodSync(fd, old.mode & 0o777);
  return fd;
}

/**
 * Opens a file with the given flags, creating it as 0600 when missing; an existing file keeps its mode. Throws ELOOP
 * for a symlink, which a session could have made to redirect our writes, and ENXIO for a FIFO without a reader.
 */
export function openPrivate(path: string, flags: number): number {
  return openSync(path, flags | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOFOLLOW, 0o600);
}

/** Creates a folder and its missing parents, each 0700; false when it exists. */
export function makePrivateFolder(path: string): boolean {
  return mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined;
}

/** Writes all bytes: one write(2) may take fewer, for example when a disk is nearly full. */
export function writeFully(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done);
}

export function syncFolder(path: string): void {
  const fd = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
