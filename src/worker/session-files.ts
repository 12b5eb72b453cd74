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
