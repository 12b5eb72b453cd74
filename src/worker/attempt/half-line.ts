/** A worker that was killed may have left half a line: the next attempt's part of the transcript begins below it. */
import type { SessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';

/** Ends a half last line, so that no two run together; the transcript's size in bytes afterwards. */
export function closeHalfLine(world: World, { transcript, folder }: SessionPaths): number {
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
