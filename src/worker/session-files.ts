/** Prepares a session's files before its worker starts and cleans up afterwards. */
import { dirname } from 'node:path';
import type { SessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';

/**
 * Syncs the transcript's directory entry, without which a power cut would lose claude's synced output. Needed at the
 * first attempt only (`offset` 0).
 */
export function nameTranscript({ files }: World, { transcript, folder }: SessionPaths, offset: number): void {
  if (offset > 0) return;
  files.openAppend(transcript).close();
  for (const path of [folder, dirname(folder)]) files.syncFolder(path);
}

export function tidyUp({ files }: World, { fifo }: SessionPaths): void {
  try {
    files.remove(fifo);
  } catch {}
}

/** Terminates a partial last line; returns the transcript's size. */
export function terminatePartialLine(world: World, { transcript, folder }: SessionPaths): number {
  const { size, kind } = world.files.info(transcript) ?? { size: 0, kind: 'file' };
  // Starting the worker will report the problem.
  if (kind !== 'file') return 0;
  // Never write through a symlink.
  if (world.files.entryKind(transcript) === 'link') return size;
  if (size === 0 || world.files.readBytes(transcript, size - 1, 1)[0] === 10) return size;
  world.files.makeFolder(folder);
  const file = world.files.openAppend(transcript);
  file.append('\n');
  file.close();
  return size + 1;
}
