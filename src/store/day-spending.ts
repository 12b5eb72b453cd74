/** The spending of all groups since midnight, from their logs, because groups come and go. */
import { roundUsd } from '../core/group.ts';
import { reduce } from '../core/reduce.ts';
import { type GroupState, initialState, isRehearsal } from '../core/state.ts';
import type { World } from '../system/world.ts';
import { readLog } from './event-log.ts';
import { groupIds } from './group-store.ts';
import { groupPaths } from './paths.ts';

interface OfGroup {
  /** Size of the log, and the midnight from which was counted. */
  readonly seen: string;
  readonly spentUsd: number;
  readonly reservedUsd: number;
}

const nothing = { spentUsd: 0, reservedUsd: 0 };
const dayMs = 24 * 3_600_000;

/**
 * Each log is read again when it has grown. Deleted groups and rehearsals do not count. US dollars; reservations of
 * `own` are left out, because its runner has newer figures.
 */
export function daySpending(world: World, root: string) {
  const groups = new Map<string, OfGroup>();
  const look = (id: string): Pick<OfGroup, 'spentUsd' | 'reservedUsd'> => {
    const path = groupPaths(root, id).events;
    const midnightMs = new Date(world.clock.now()).setHours(0, 0, 0, 0);
    try {
      const info = world.files.info(path);
      if (info === null || info.mtimeMs < midnightMs - dayMs) return nothing;
      const seen = `${info.size} ${midnightMs}`;
      const known = groups.get(id);
      if (known?.seen === seen) return known;
      const now = { seen, ...spendingIn(world, path, midnightMs) };
      groups.set(id, now);
      return now;
    } catch {
      // A damaged log is reported where the group is used.
      return nothing;
    }
  };
  return (own?: string): { readonly spentUsd: number; readonly othersReservedUsd: number } => {
    let [spentUsd, othersReservedUsd] = [0, 0];
    for (const id of groupIds(world, root)) {
      const ofGroup = look(id);
      spentUsd += ofGroup.spentUsd;
      if (id !== own) othersReservedUsd += ofGroup.reservedUsd;
    }
    return { spentUsd: roundUsd(spentUsd), othersReservedUsd: roundUsd(othersReservedUsd) };
  };
}

function spendingIn(world: World, path: string, midnightMs: number): Pick<OfGroup, 'spentUsd' | 'reservedUsd'> {
  const log = readLog(world, path);
  let state: GroupState | undefined;
  let beforeUsd = 0;
  for (const event of log.ok ? log.value : []) {
    state = state === undefined ? initialState(event) : reduce(state, event);
    if (Date.parse(event.at) < midnightMs) beforeUsd = state.usage.costUsd;
  }
  if (state === undefined || isRehearsal(state)) return nothing;
  return { spentUsd: Math.max(0, roundUsd(state.usage.costUsd - beforeUsd)), reservedUsd: state.reservedUsd };
}
