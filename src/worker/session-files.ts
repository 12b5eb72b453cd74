/** What is done to a session's files before its worker is started and after it is gone. */
import { dirname } from 'node:path';
import type { SessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';

/** Without a name the synced output of claude would be lost; an earlier attempt has given it one (`offset`). */
export function nameTranscript({ files }: World, { transcript, folder }: SessionPaths, offset: number): void {
  if (offset > 0) return;
  files.openAppend(transcript).close();
  for (const path of [folder, dirname(folder)]) files.syncFolder(path);
}

/** Failing to remove the FIFO does not fail the session. */
export function tidyUp({ files }: World, { fifo }: SessionPaths): void {
  try {
    files.remove(fifo);
  } catch {}
}

/** Ends a half last line, so that no two run together; the transcript's size in bytes afterwards. */
export function terminatePartialLine(world: World, { transcript, folder }: SessionPaths): number {
  const { size, kind } = world.files.info(transcript) ?? { size: 0, kind: 'file' };
  // Its start says what is the matter.
  if (kind !== 'file') return 0;
  // Nothing is started that would write through a link.
  if (world.files.entryKind(transcript) === 'link') return size;
  if (size === 0 || world.files.readBytes(transcript, size - 1, 1)[0] === 10) return size;
  world.files.makeFolder(folder);
  const file = world.files.openAppend(transcript);
  file.append('\n');
  file.close();
  return size + 1;
}
