/** Waits for the answer to a request, and reports a runner that does not respond. */
import { loadGroup } from '../store/group-store.ts';
import { hasRequests } from '../store/requests.ts';
import type { World } from '../system/world.ts';
import type { AppContext } from './app-context.ts';
import { type GroupReference, isHeld } from './resolve.ts';

const lookMs = 1_000;
/** A runner reads requests twice a second. */
const silentMs = 5_000;

/**
 * Waits for `work`, which sends a request to the runner. After 5 s without an answer, prints once which process does
 * not respond and what to do. With `giveUp`, resolves to `outcome` after `afterMs`; the request stays.
 */
export async function whileWaiting<T>(
  { world, notes }: Pick<AppContext, 'notes' | 'world'>,
  group: GroupReference,
  work: Promise<T>,
  giveUp?: { readonly afterMs: number; readonly outcome: T },
): Promise<T> {
  let unansweredMs = 0;
  let isSaid = false;
  let cancel = (): void => {};
  const silence = new Promise<T>((resolve) => {
    const look = (): void => {
      unansweredMs = isRequestPending(world, group) ? unansweredMs + lookMs : 0;
      if (unansweredMs >= silentMs && !isSaid) {
        isSaid = true;
        notes.line(silenceSentence(world, group));
      }
      if (giveUp !== undefined && unansweredMs >= giveUp.afterMs) resolve(giveUp.outcome);
      else cancel = world.clock.after(lookMs, look);
    };
    cancel = world.clock.after(lookMs, look);
  });
  try {
    return await Promise.race([work, silence]);
  } finally {
    cancel();
  }
}

/** The live runner has a request that it has not answered. */
export function isRequestPending(world: World, group: GroupReference): boolean {
  return isHeld(world, group) && hasRequests(world, group.paths);
}

function silenceSentence(world: World, { root, groupId, paths }: GroupReference): string {
  const { identity, runId = '' } = world.locks.holder(paths.lock) ?? {};
  const { pid = 0, host = '' } = identity ?? {};
  // `kill 0` would signal the user's own process group.
  if (pid === 0) {
    return `The runner of ${groupId} does not respond; it may be suspended. Find its pid with: fuser ${paths.lock}`;
  }
  const state = loadGroup(world, root, groupId);
  // The run is usually checking a new claude. Until it starts, it handles only a pause.
  if (state.ok && runId !== '' && state.value.run?.id !== runId) {
    return `The run of ${groupId} (pid ${pid}) has not started yet. It handles the request when it starts.`;
  }
  const where = host === world.machine.self.host ? '' : ` on ${host}`;
  return (
    `The runner of ${groupId} (pid ${pid}${where}) does not respond; it may be suspended. Resume it with: ` +
    `kill -CONT ${pid}. Or end it with: kill -KILL ${pid}; the request is then handled without it.`
  );
}
