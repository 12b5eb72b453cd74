/** What earlier groups of this user did cost: the base of every forecast. */
import type { Sample } from '../../core/plan/forecast.ts';
import { kindOf } from '../../core/plan/preview.ts';
import { listGroups, loadGroup } from '../../store/group-store.ts';
import type { World } from '../../world/world.ts';

/** Groups that are read, the newest first; older ones say little about today's prices and models. */
const groupsMax = 50;
const samplesMax = 5_000;

/** The completed sessions of the newest groups. Play money of rehearsals does not count; what is damaged is skipped. */
export function readSamples(world: World, root: string): Sample[] {
  const samples: Sample[] = [];
  let read = 0;
  for (const listing of listGroups(world, root)) {
    if (read === groupsMax || samples.length >= samplesMax) break;
    if (!('meta' in listing) || !listing.meta.sessions.some(({ status }) => status === 'completed')) continue;
    read += 1;
    const state = loadGroup(world, root, listing.id);
    if (!state.ok || state.value.run?.rehearsal) continue;
    for (const { definition, usage, state: session, inherited } of state.value.sessions.values()) {
      if (session.status !== 'completed' || inherited !== undefined) continue;
      samples.push({ ...kindOf(definition, state.value), costUsd: usage.costUsd, durationMs: usage.durationMs });
    }
  }
  return samples;
}
