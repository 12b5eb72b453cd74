/**
 * Writes meta.json files. They are a cache of the log: never fsynced, written at most a few times a second, and
 * a failed write costs nothing but freshness.
 */
import { dirname } from 'node:path';
import type { Failure } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { Files, World } from '../system/world.ts';
import { delayedAction, delayFor } from './delayed.ts';
import { groupMeta, renderMeta, sessionMeta } from './meta.ts';
import { type GroupPaths, sessionPaths } from './paths.ts';
import { systemFailure } from './system-failure.ts';

/** How long writes are held back in the largest groups, milliseconds. */
const longestDelayMs = 5_000;

export type Snapshots = ReturnType<typeof createSnapshots>;

export function createSnapshots(world: World, paths: GroupPaths, state: GroupState) {
  const changed = new Set<SessionId>();
  const { files } = world;
  let group = false;
  let problem: Failure | null = null;
  const flush = (): void => {
    later.cancel();
    if (!group) return;
    try {
      // A deleted group must not come back as an empty shell.
      if (files.info(paths.events) === null) return;
      for (const id of changed) {
        const record = state.sessions.get(id);
        const { meta } = sessionPaths(paths, id);
        if (record === undefined) files.remove(meta);
        else writeChanged(files, meta, renderMeta(sessionMeta(record)));
        changed.delete(id);
      }
      writeChanged(files, paths.meta, renderMeta(groupMeta(state)));
      group = false;
      problem = null;
    } catch (error) {
      // Tried again with the next change, and at the latest when the group is opened next.
      problem = systemFailure(paths.folder, error);
    }
  };
  const later = delayedAction(world, () => delayFor(state.sessions.size, longestDelayMs), flush);
  return {
    /** The group changed, and with it these sessions; their files are written within the delay. */
    mark(sessionIds: Iterable<SessionId>): void {
      for (const id of sessionIds) changed.add(id);
      group = true;
      later.request();
    },
    /** Asks for a write within the delay. */
    request(): void {
      if (group) later.request();
    },
    /** Writes all that changed at once. */
    flush,
    /** Null when the last write went well. */
    get problem(): Failure | null {
      return problem;
    },
    cancel: (): void => later.cancel(),
  };
}

/** Reading is cheaper than writing when a whole group is checked for files that are lost, torn or out of date. */
function writeChanged(files: Files, path: string, text: string): void {
  if (files.readText(path) === text) return;
  files.makeFolder(dirname(path));
  files.writeAtomic(path, text);
}
