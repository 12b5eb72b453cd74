/** Reading without waiting: a FIFO holds up who opens it until somebody writes to it, and a device may have no end. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { errorCode, unlessMissing } from './system-error.ts';

/** Null when nothing is there. */
export function openToRead(path: string): number | null {
  try {
    return unlessMissing(() => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), null);
  } catch (error) {
    // What is no file of ours is no file: a socket cannot be opened at all.
    if (errorCode(error) === 'ENXIO') return null;
    throw error;
  }
}

/** Null when nothing is there, or no regular file: a folder has no bytes, a FIFO or a device may have no end. */
export function openRegular(path: string): number | null {
  const fd = openToRead(path);
  if (fd === null || fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}

/** The whole file as UTF-8; null when nothing is there, or a FIFO, a device or a socket. */
export function readRegularText(path: string): string | null {
  const fd = openToRead(path);
  if (fd === null) return null;
  try {
    const stats = fstatSync(fd);
    return stats.isFile() || stats.isDirectory() ? readFileSync(fd, 'utf8') : null;
  } finally {
    closeSync(fd);
  }
}
