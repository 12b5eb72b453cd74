/** Where the next attempt's part of a transcript begins. */
import type { SessionPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';

/** The transcript's size, after closing a half last line of a killed worker so that no two lines run together. */
export function transcriptEnd(world: World, { transcript, folder }: SessionPaths): number {
  const size = world.files.info(transcript)?.size ?? 0;
  if (size === 0 || world.files.readBytes(transcript, size - 1, 1)[0] === 10) return size;
  world.files.makeFolder(folder);
  const file = world.files.openAppend(transcript);
  file.append('\n');
  file.close();
  return size + 1;
}
