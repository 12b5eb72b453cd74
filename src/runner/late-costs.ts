/** Records costs that lost hosts report after the group has ended. */
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { World } from '../system/world.ts';
import type { BookedFact } from '../worker/facts.ts';
import { bookedEvents } from './fact-events.ts';
import type { LinkFleet } from './open-fleet.ts';
import { RemoteAttempts } from './remote-attempts.ts';

/** How long to wait for the reports, in milliseconds. */
const waitMs = 10_000;

export async function recordLateCosts(world: World, writer: GroupWriter, link: LinkFleet): Promise<number> {
  const { state, paths } = writer;
  const before = countUnreported(state);
  const linked = before === 0 ? null : await link(state.group.id);
  if (!linked?.ok) return 0;
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  const take = (fact: BookedFact): void => {
    try {
      for (const event of writer.record(bookedEvents(state, fact))) elsewhere.tell(event);
      if (countUnreported(state) === 0) resolve();
    } catch (error) {
      reject(error);
    }
  };
  const elsewhere = new RemoteAttempts(world, {
    openFleet: linked.value,
    paths,
    state: () => state,
    workers: new Map(),
    enqueue: (fact) => {
      if (fact.kind === 'booked') queueMicrotask(() => take(fact));
    },
  });
  const cancel = world.clock.after(waitMs, resolve);
  try {
    elsewhere.begin();
    await over;
  } finally {
    cancel();
    await elsewhere.close();
  }
  return before - countUnreported(state);
}

/** Counts lost attempts whose cost is still held. */
function countUnreported({ sessions }: GroupState): number {
  const lost = [...sessions.values()].flatMap((record) => record.lost ?? []);
  return lost.filter(({ attempt, usage }) => attempt.reservedUsd === undefined || usage.heldUsd !== undefined).length;
}
