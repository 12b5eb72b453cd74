/**
 * Writes meta.json files. They are a cache of the log: never fsynced, written at most a few times a second, and a
 * failed write only makes them outdated.
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

/** Longest delay of writes in large groups, milliseconds. */
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
      // Retried with the next change, and at the latest when the group is opened next.
      problem = systemFailure(paths.folder, error);
    }
  };
  const later = delayedAction(world, () => delayFor(state.sessions.size, longestDelayMs), flush);
  return {
    /** The group and these sessions changed; their files are written within the delay. */
    mark(sessionIds: Iterable<SessionId>): void {
      for (const id of sessionIds) changed.add(id);
      group = true;
      later.request();
    },
    /** Requests a write within the delay. */
    request(): void {
      if (group) later.request();
    },
    /** Writes all changes at once. */
    flush,
    /** Null when the last write succeeded. */
    get problem(): Failure | null {
      return problem;
    },
    cancel: (): void => later.cancel(),
  };
}

/** Reading is cheaper than writing when a whole group is checked for missing, partial or outdated files. */
function writeChanged(files: Files, path: string, text: string): void {
  if (files.readText(path) === text) return;
  files.makeFolder(dirname(path));
  files.writeAtomic(path, text);
}
