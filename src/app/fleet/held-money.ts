/** Money that is held for sessions of a machine that was lost: what they may have cost besides what is known. */
import type { Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { listGroups } from '../groups.ts';
import type { Place } from '../place.ts';
import { loadReferredGroup } from '../resolve.ts';
import { submit } from '../submit.ts';

export interface HeldGroup {
  readonly groupId: GroupId;
  readonly sessionId: SessionId;
  readonly usd: number;
}

/** Of all groups here. */
export function heldBy(place: Place, root: string, host: string): HeldGroup[] {
  return listGroups(place.world, root).flatMap(({ id, meta }) => {
    // Most groups hold nothing, which their snapshots say.
    if (meta === undefined) return [];
    const group = loadReferredGroup(place, id);
    if (!group.ok) return [];
    const { sessions } = group.value.state;
    return [...sessions.values()].flatMap((record) => {
      const isThere = record.lost?.some(({ attempt }) => attempt.place?.host === host) === true;
      const usd = record.usage.heldUsd ?? 0;
      return isThere && usd > 0 ? [{ groupId: id, sessionId: record.definition.id, usd }] : [];
    });
  });
}

/** From now on it is spent like any other money. */
export async function bookHeld(place: Place, { groupId, sessionId }: HeldGroup): Promise<Result<unknown>> {
  const group = loadReferredGroup(place, groupId);
  if (!group.ok) return group;
  return submit(place, group.value, { kind: 'settle-cost', sessionId, isSpent: true });
}
