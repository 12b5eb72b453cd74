/**
 * Bytes in the event log that its writer did not write: a worker may append to any file of its user's. They are moved
 * into a file beside the log before the next event is written, so that no good line ever follows a strange one.
 */
import type { World } from '../system/world.ts';
import { isRegularFile } from './regular-file.ts';

/** Of all of them together; what they are can be told from less. */
const keptBytesMax = 1024 * 1024;

export function foreignPath(log: string): string {
  return `${log}.foreign`;
}

/** Cuts the log off at `size` and keeps what stood there, as far as the disk takes it. Throws when it cannot be cut. */
export function setAside({ files }: World, log: string, size: number, length: number): void {
  try {
    keep(files, log, Buffer.from(files.readBytes(log, size, Math.min(length, keptBytesMax))).toString());
  } catch {}
  files.truncate(log, size);
}

function keep(files: World['files'], log: string, text: string): void {
  const path = foreignPath(log);
  if (files.entryKind(path) !== null && !isRegularFile(files, path)) return;
  const file = files.openAppend(path);
  try {
    if (file.size < keptBytesMax) file.append(`${text}\n`);
  } finally {
    file.close();
  }
}
