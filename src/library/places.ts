/** What stands behind the groups that the library has handed out, out of sight of its callers. */
import type { Place } from '../app/place.ts';
import type { GroupReference } from '../app/resolve.ts';

interface Behind {
  readonly place: Place;
  readonly reference: GroupReference;
}

const places = new WeakMap<object, Behind>();

export function keepPlace(group: object, behind: Behind): void {
  places.set(group, behind);
}

export function placeOf(group: object): Behind {
  const found = places.get(group);
  if (found === undefined) throw new TypeError('This is no SessionGroup.');
  return found;
}
