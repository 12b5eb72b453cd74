/** Waits for the answer to a request, and reports when the live runner of the group gives none. */
import { loadGroup } from '../store/group-store.ts';
import { hasRequests } from '../store/requests.ts';
import type { World } from '../system/world.ts';
import type { AppContext } from './app-context.ts';
import { type GroupReference, isHeld } from './resolve.ts';

const lookMs = 1_000;
/** A runner looks for requests twice a second. */
const silentMs = 5_000;

/**
 * Waits for `work`, which asks the group's runner for something. When a request lies there unanswered for 5 s, standard
 * error says once who does not answer and what can be done. With `giveUp` it then waits no longer than
 * `afterMs` (milliseconds of such silence) and resolves to `outcome`; what was asked for stays asked for.
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

/** Something was asked of the group's live runner and is not answered yet. */
export function isRequestPending(world: World, group: GroupReference): boolean {
  return isHeld(world, group) && hasRequests(world, group.paths);
}

function silenceSentence(world: World, { root, groupId, paths }: GroupReference): string {
  const { identity, runId = '' } = world.locks.holder(paths.lock) ?? {};
  const { pid = 0, host = '' } = identity ?? {};
  // `kill 0` would signal the user's own process group.
  if (pid === 0) {
    const unknown = 'does not answer; it may be halted. Its lock does not tell its pid';
    return `The runner of ${groupId} ${unknown}; this does: fuser ${paths.lock}`;
  }
  const state = loadGroup(world, root, groupId);
  // Usually it checks a claude that is new here. Until it starts, it obeys only a pause.
  if (state.ok && runId !== '' && state.value.run?.id !== runId) {
    return `The run of ${groupId} (pid ${pid}) has not begun yet; what was asked for is done as soon as it has.`;
  }
  const where = host === world.machine.self.host ? '' : ` on ${host}`;
  return (
    `The runner of ${groupId} (pid ${pid}${where}) does not answer; it may be halted. Resume it with: ` +
    `kill -CONT ${pid}. Or end it with: kill -KILL ${pid}, and what was asked for is done without it.`
  );
}
