/** Which machines were added from here. */
import { readAdded } from '../../fleet/fleet-files.ts';
import type { Place } from '../place.ts';

/** Their names, and how they are reached; none where that cannot be read. */
export function addedHosts({ world }: Place, root: string): (readonly [string, string])[] {
  const added = readAdded(world.files, root);
  return added.ok ? Object.entries(added.value).map(([name, { ssh }]) => [name, ssh] as const) : [];
}
