/**
 * Writes meta.json files. They are a cache of the log: never fsynced, written at most a few times a second, and
 * a failed write costs nothing but freshness.
 */
import { dirname } from 'node:path';
import type { Failure } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../system/world.ts';
import { delay } from './delayed.ts';
import { groupMeta, renderMeta, sessionMeta } from './meta.ts';
import { type GroupPaths, sessionPaths } from './paths.ts';
import { systemFailure } from './system-failure.ts';

const shortestDelayMs = 250;
const longestDelayMs = 5_000;
/** So many unseen ones at a time, so that nothing else waits long for them. */
const unseenAtOnce = 500;
/** Groups up to this size are written at the shortest delay; larger ones less often, so that the load stays even. */
const sessionsAtShortestDelay = 100;

/** How long writes are held back in a group of so many sessions, milliseconds. */
export function snapshotDelayMs(sessions: number): number {
  return Math.min(longestDelayMs, shortestDelayMs * Math.max(1, sessions / sessionsAtShortestDelay));
}

export interface Snapshots {
  /** The group changed, and with it these sessions; their files are written within the delay. */
  mark(sessionIds: Iterable<SessionId>): void;
  /** Nobody knows whether the files of these sessions are as they should be; they are looked at by and by. */
  check(sessionIds: Iterable<SessionId>): void;
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
  const changed = new Set<SessionId>();
  const unseen = new Set<SessionId>();
  const files = new WrittenFiles(world);
  let group = false;
  let problem: Failure | null = null;
  const flush = (most = Number.POSITIVE_INFINITY): void => {
    later.cancel();
    if (!group) return;
    try {
      // A deleted group must not come back as an empty shell.
      if (world.files.info(paths.events) === null) return;
      // A session may have put a link in place of its folder, or of the folder of all sessions.
      const areOurs = world.files.entryKind(paths.sessions) !== 'link';
      for (const id of [...changed, ...unseen.values().take(most)]) {
        const record = state.sessions.get(id);
        const { folder, meta } = sessionPaths(paths, id);
        const isOurs = areOurs && world.files.entryKind(folder) !== 'link';
        if (isOurs && record === undefined) files.remove(meta);
        if (isOurs && record !== undefined) files.write(meta, renderMeta(sessionMeta(record)));
        changed.delete(id);
        unseen.delete(id);
      }
      files.write(paths.meta, renderMeta(groupMeta(state)));
      group = unseen.size > 0;
      problem = null;
    } catch (error) {
      // Tried again with the next change, and at the latest when the group is opened next.
      problem = systemFailure(paths.folder, error);
    }
  };
  const flushSome = (): void => {
    flush(unseenAtOnce);
    if (unseen.size > 0 && problem === null) later.request();
  };
  const later = delay(world, () => snapshotDelayMs(state.sessions.size), flushSome);
  return {
    mark(sessionIds) {
      for (const id of sessionIds) changed.add(id);
      group = true;
      later.request();
    },
    check(sessionIds) {
      for (const id of sessionIds) unseen.add(id);
      group = true;
      later.request();
    },
    request() {
      if (group) later.request();
    },
    flush: () => flush(),
    get problem() {
      return problem;
    },
    cancel: () => later.cancel(),
  };
}

/**
 * Writes what differs from the file. Comparing spares the writes when a whole group is checked for files that are lost,
 * torn or out of date; what was written once is compared with that, and not read again.
 */
class WrittenFiles {
  readonly #world: World;
  /** Digests of the texts, by path. */
  readonly #written = new Map<string, bigint>();

  constructor(world: World) {
    this.#world = world;
  }

  write(path: string, text: string): void {
    const { files } = this.#world;
    const digest = Bun.hash.xxHash64(text);
    const known = this.#written.get(path);
    if (known === digest) return;
    // Should it fail nobody knows what is there.
    this.#written.delete(path);
    const before = known === undefined ? files.readText(path) : '';
    if (before === null) files.makeFolder(dirname(path));
    if (before !== text) this.#replace(path, text);
    this.#written.set(path, digest);
  }

  #replace(path: string, text: string): void {
    const { files } = this.#world;
    try {
      files.writeAtomic(path, text);
    } catch (error) {
      // Somebody has removed the folder.
      if (files.info(dirname(path)) !== null) throw error;
      files.makeFolder(dirname(path));
      files.writeAtomic(path, text);
    }
  }

  remove(path: string): void {
    this.#written.delete(path);
    this.#world.files.remove(path);
  }
}
