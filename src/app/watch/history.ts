/** What earlier groups of this user did cost: the base of every forecast. */

import type { GroupId } from '../../core/group.ts';
import type { Sample } from '../../core/plan/forecast.ts';
import { kindOf } from '../../core/plan/preview.ts';
import type { GroupState } from '../../core/state.ts';
import { listGroups, loadGroup } from '../../store/group-store.ts';
import type { World } from '../../system/world.ts';

/** Groups that are read, the newest first; older ones say little about today's prices and models. */
const groupsMax = 50;
const samplesMax = 5_000;

/**
 * The completed sessions of the newest groups, and of the group that was read already. Play money of rehearsals does
 * not count; what is damaged is skipped.
 */
export function readSamples(world: World, root: string, own: GroupState): Sample[] {
  const samples = [...samplesByGroup(world, root, own.group.id)].flat();
  return own.run?.rehearsal ? samples : [...samples, ...samplesOf(own)];
}

/** The same without the group `except`, one group after the other for whoever has something else to do meanwhile. */
export function* samplesByGroup(world: World, root: string, except: GroupId): Generator<readonly Sample[]> {
  let read = 0;
  let taken = 0;
  for (const listing of listGroups(world, root)) {
    if (read === groupsMax || taken >= samplesMax) return;
    if (listing.id === except || !('meta' in listing)) continue;
    if (!listing.meta.sessions.some(({ status }) => status === 'completed')) continue;
    read += 1;
    const state = loadGroup(world, root, listing.id);
    if (!state.ok || state.value.run?.rehearsal) continue;
    const samples = samplesOf(state.value);
    taken += samples.length;
    yield samples;
  }
}

/** The completed sessions of a group. */
export function samplesOf(state: GroupState): Sample[] {
  return [...state.sessions.values()].flatMap(({ definition, usage, state: session, inherited }) =>
    session.status === 'completed' && inherited === undefined
      ? [{ ...kindOf(definition, state), costUsd: usage.costUsd, durationMs: usage.durationMs }]
      : [],
  );
}
