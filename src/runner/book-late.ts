/** Records the cost of attempts on lost hosts after the group has ended. */
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { World } from '../system/world.ts';
import type { BookedFact } from '../worker/facts.ts';
import { Elsewhere, type ElsewhereOptions } from './elsewhere.ts';
import { bookedEvents } from './fact-events.ts';
import type { LinkFleet } from './open-fleet.ts';

/** How long to wait for reports of hosts that may still be gone, milliseconds. */
const waitMs = 10_000;

export async function bookLate(world: World, writer: GroupWriter, link: LinkFleet): Promise<number> {
  const { state, paths } = writer;
  const before = lostIn(state);
  const linked = before === 0 ? null : await link(state.group.id);
  if (!linked?.ok) return 0;
  const facts: BookedFact[] = [];
  let isOver = false;
  let wake = (): void => {};
  const enqueue: ElsewhereOptions['enqueue'] = (fact) => {
    if (fact.kind === 'booked') facts.push(fact);
    wake();
  };
  const elsewhere = new Elsewhere(world, {
    openFleet: linked.value,
    paths,
    state: () => state,
    workers: none,
    enqueue,
  });
  const cancel = world.clock.after(waitMs, () => {
    isOver = true;
    wake();
  });
  try {
    elsewhere.begin();
    while (!isOver && lostIn(state) > 0) {
      for (const fact of facts.splice(0)) {
        for (const event of writer.record(bookedEvents(state, fact))) elsewhere.tell(event);
      }
      if (lostIn(state) > 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    cancel();
    await elsewhere.close();
  }
  return before - lostIn(state);
}

const none: ReadonlyMap<never, never> = new Map<never, never>();

/** Counts lost attempts with held money. Attempts that a user settled hold none, and their host may never return. */
function lostIn({ sessions }: GroupState): number {
  const lost = [...sessions.values()].flatMap((record) => record.lost ?? []);
  return lost.filter(({ attempt, usage }) => attempt.reservedUsd === undefined || usage.heldUsd !== undefined).length;
}
