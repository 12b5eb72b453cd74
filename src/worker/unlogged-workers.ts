/**
 * A worker that the log does not know: its last lines were lost, or somebody put an older one in its place. claude has
 * no lock of its own, so a second one would write the same conversation and work in the same folder.
 */
import { tmpVariable } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { SessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';

/** The processes of such a worker of this session; none when nobody reads its FIFO, which a worker does to its end. */
export function unloggedWorkers({ fifos, processes }: World, { fifo, tmp }: SessionPaths): ProcessIdentity[] {
  const reader = fifos.openWriter(fifo);
  if (reader === null) return [];
  reader.close();
  // Its attempt is not known; but no other session, and no claude of a person, has this folder.
  return processes.findMarked(tmpVariable, tmp);
}
