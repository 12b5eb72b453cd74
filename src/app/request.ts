/** Asks the live runner of a group to do something, waits for the event that answers, and says when none comes. */
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { loadGroup } from '../store/group-store.ts';
import type { OpenFailure } from '../store/group-writer.ts';
import {
  awaitAnswer,
  hasRequests,
  otherVersion,
  type RequestAnswer,
  type RequestBody,
  sendRequest,
} from '../store/requests.ts';
import { systemFailure } from '../store/system-failure.ts';
import type { World } from '../system/world.ts';
import type { Place } from './place.ts';
import { type GroupReference, isHeld } from './resolve.ts';

/**
 * The answer when it was done. Fails when the runner refused, and with `survivor` when it cannot be asked;
 * `runner-gone` when it will not answer any more.
 */
export async function askRunner(
  world: World,
  group: GroupReference,
  runId: string,
  body: RequestBody,
): Promise<Result<RequestAnswer, OpenFailure> | 'runner-gone'> {
  const id = world.random.uuid();
  const sinceSize = world.files.info(group.paths.events)?.size ?? 0;
  try {
    sendRequest(world, group.paths, { id, runId, at: new Date(world.clock.now()).toISOString(), ...body });
  } catch (error) {
    // On a full disk a runner hears signals, and nothing else.
    const survivor = world.locks.holder(group.paths.lock)?.identity;
    return { ok: false, failure: { ...systemFailure(group.paths.requests, error), ...defined({ survivor }) } };
  }
  const answer = await awaitAnswer(world, group.paths, { id, runId }, sinceSize);
  if (answer === 'runner-gone') return answer;
  if (answer === 'dropped') return { ok: false, failure: otherVersion(group.groupId) };
  return answer.done ? ok(answer) : fail('usage', answer.message, '');
}

const lookMs = 1_000;
/** A runner looks for requests twice a second. */
const silentMs = 5_000;

/**
 * Waits for `work`, which asks the group's runner for something. When a request lies there unanswered for 5 s, standard
 * error says once who does not answer and what can be done. With `giveUp` it then waits no longer than
 * `afterMs` (milliseconds of such silence) and resolves to `outcome`; what was asked for stays asked for.
 */
export async function whileWaiting<T>(
  { world, notes }: Pick<Place, 'notes' | 'world'>,
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
  // A signal to process 0 would go to whoever types it.
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
    `The runner of ${groupId} (pid ${pid}${where}) does not answer; it may be halted. Let it go on with: kill -CONT ` +
    `${pid}. Or end it with: kill -KILL ${pid}, and what was asked for is done without it.`
  );
}
