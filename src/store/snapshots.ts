/**
 * Writes meta.json files. They are a cache of the log: never fsynced, written at most a few times a second, and
 * a failed write costs nothing but freshness.
 */
import { dirname } from 'node:path';
import type { Failure } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../world/world.ts';
import { delay } from './delayed.ts';
import { groupMeta, renderMeta, sessionMeta } from './meta.ts';
import { type GroupPaths, sessionPaths } from './paths.ts';
import { systemFailure } from './system-failure.ts';

const shortestDelayMs = 250;
const longestDelayMs = 5_000;
/** Groups up to this size are written at the shortest delay; larger ones less often, so that the load stays even. */
const sessionsAtShortestDelay = 100;

/** How long writes are held back in a group of so many sessions, milliseconds. */
export function snapshotDelayMs(sessions: number): number {
  return Math.min(longestDelayMs, shortestDelayMs * Math.max(1, sessions / sessionsAtShortestDelay));
}

export interface Snapshots {
  /** The group changed, and with it these sessions; their files are written within the delay. */
  mark(sessionIds: Iterable<SessionId>): void;
  /** Asks for a write within the delay. */
  request(): void;
  /** Writes all that changed at once. */
  flush(): void;
  /** The last write's trouble; null when it went well. */
  readonly problem: Failure | null;
  /** Drops what was not written. */
  cancel(): void;
}

export function createSnapshots(world: World, paths: GroupPaths, state: GroupState): Snapshots {
  const sessions = new Set<SessionId>();
  let group = false;
  let problem: Failure | null = null;
  const flush = (): void => {
    later.cancel();
    // A deleted group must not come back as an empty shell.
    if (!group || world.files.info(paths.events) === null) return;
    try {
      for (const id of sessions) {
        writeSessionSnapshot(world, paths, state, id);
        sessions.delete(id);
      }
      writeIfChanged(world, paths.meta, renderMeta(groupMeta(state)));
      group = false;
      problem = null;
    } catch (error) {
      // Tried again with the next change, and at the latest when the group is opened next.
      problem = systemFailure(paths.folder, error);
    }
  };
  const later = delay(world, () => snapshotDelayMs(state.sessions.size), flush);
  return {
    mark(sessionIds) {
      for (const id of sessionIds) sessions.add(id);
      group = true;
      later.request();
    },
    request() {
      if (group) later.request();
    },
    flush,
    get problem() {
      return problem;
    },
    cancel: () => later.cancel(),
  };
}

function writeSessionSnapshot(world: World, paths: GroupPaths, state: GroupState, id: SessionId): void {
  const record = state.sessions.get(id);
  const path = sessionPaths(paths, id).meta;
  if (record === undefined) world.files.remove(path);
  else writeIfChanged(world, path, renderMeta(sessionMeta(record)));
}

/** Comparing first spares the writes when a whole group is checked for files that are lost, torn or out of date. */
function writeIfChanged(world: World, path: string, text: string): void {
  const before = world.files.readText(path);
  if (before === text) return;
  if (before === null) world.files.makeFolder(dirname(path));
  world.files.writeAtomic(path, text);
}
