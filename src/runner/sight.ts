/** Whether what another runner started still lives, as far as it can be told from here. */
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import type { Sight } from './run-start.ts';

export function sightOf({ fifos, processes }: World, paths: GroupPaths): Sight {
  return {
    lives: (process) => processes.isAlive(process),
    listens(sessionId) {
      const reader = fifos.openWriter(sessionPaths(paths, sessionId).fifo);
      reader?.close();
      return reader !== null;
    },
  };
}
