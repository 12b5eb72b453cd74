/** Which processes belong to a root process, decided from one reading of the process table. Pure. */
import type { ProcEntry } from './proc-table.ts';

/**
 * Descendants of `root`, the members of the sessions that it or they are in, and the descendants of those; without
 * `root` itself and without `self`. A child that was orphaned has left the tree, but never its session.
 *
 * The session that the root was merely born into, without leading it, does not count: that is its starter's, and
 * following it would bring in the user's whole terminal. A root that is gone is taken to have led its own.
 */
export function collectDescendants(entries: readonly ProcEntry[], root: number, self: number): ProcEntry[] {
  const own = entries.find((entry) => entry.pid === root);
  const foreignSession = own === undefined || own.session === root ? undefined : own.session;
  const found = new Map<number, ProcEntry>();
  const pids = new Set([root]);
  const sessions = new Set(foreignSession === undefined ? [root] : []);
  // Sessions lead to new parents and these to new sessions; every round but the last adds a process, so it ends.
  for (let grew = true; grew; ) {
    grew = false;
    for (const entry of entries) {
      if (pids.has(entry.pid) || entry.pid === self) continue;
      if (!pids.has(entry.parent) && !sessions.has(entry.session)) continue;
      found.set(entry.pid, entry);
      pids.add(entry.pid);
      if (entry.session !== foreignSession) sessions.add(entry.session);
      grew = true;
    }
  }
  return [...found.values()].filter((entry) => !entry.zombie);
}
