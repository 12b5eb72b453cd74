/** Pausing a whole group, whoever runs it: what `group pause`, `stop --all` and the dashboard share. */

import { defined } from '../core/defined.ts';
import type { GroupEvent } from '../core/event.ts';
import { describeFailure, type Failure, ok, type Result } from '../core/failure.ts';
import type { GroupState } from '../core/state.ts';
import type { PauseRequestMode } from '../store/requests.ts';
import type { World } from '../system/world.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { PauseOutcome } from './command/pause-outcome.ts';
import type { Tell } from './command/way.ts';
import { readUserConfig } from './config/user-config.ts';
import { liveRunner } from './live-runner.ts';
import type { Place } from './place.ts';
import { type GroupReference, isHeld } from './resolve.ts';
import { createRunHooks } from './run-hooks.ts';
import { hasEnded, stopUnreadableGroup } from './stop-groups.ts';
import { submit } from './submit.ts';

const sentenceColumnsMax = 1_000;

export interface ToldPause {
  readonly outcome: PauseOutcome;
  /** Lines about trouble with `onEvent` commands. */
  readonly warnings: readonly string[];
}

/** Pauses a group; where no runner is there to tell the `onEvent` commands, they are told from here. */
export async function pauseAndTell(
  place: Place,
  group: GroupReference,
  mode: PauseRequestMode,
): Promise<Result<ToldPause>> {
  const logged: { readonly event: GroupEvent; readonly state: GroupState }[] = [];
  const tell: Tell = (event, state) => logged.push({ event, state });
  const ask = (gone?: string) => submit(place, group, { kind: 'pause', mode }, { tell, ...defined({ gone }) });
  let paused = await ask();
  const survivor = paused.ok || mode !== 'now' ? undefined : paused.failure.survivor;
  const runId = survivor === undefined || !isHeld(place.world, group) ? null : liveRunner(place.world, group);
  if (survivor !== undefined && survivor !== 'somebody' && (await hasEnded(place.world, survivor))) {
    paused = await ask(runId ?? undefined);
    if (paused.ok && paused.value.kind === 'unchanged') {
      paused = ok({ kind: 'settled', status: paused.value.status, had: 'runner' });
    }
  }
  if (!paused.ok) {
    const isUnlogged = mode === 'now' && paused.failure.reason === 'write-failed';
    return isUnlogged ? endUnlogged(place.world, group, paused.failure) : paused;
  }
  const [first] = logged;
  if (first === undefined) return ok({ outcome: paused.value, warnings: [] });
  const ofUser = await readUserConfig(place);
  // The group is paused whatever that file says.
  const isRehearsal = first.state.run?.rehearsal !== undefined;
  const hooks = createRunHooks(place, group, { isRehearsal }, ofUser.ok ? ofUser.value.onEvent : undefined);
  for (const { event, state } of logged) hooks.tell(event, state);
  const unread = ofUser.ok ? [] : [`warning: Your onEvent command was not told. ${trouble(ofUser.failure)}`];
  return ok({ outcome: paused.value, warnings: [...unread, ...(await hooks.finish(false))] });
}

/** Where nothing can be written down, what runs is ended all the same: it would go on to spend. */
async function endUnlogged(world: World, group: GroupReference, failure: Failure): Promise<Result<never>> {
  const runner = isHeld(world, group) ? world.locks.holder(group.paths.lock)?.identity : undefined;
  if (runner !== undefined) await hasEnded(world, runner);
  const stopped = await stopUnreadableGroup(world, group);
  const hadRunner = runner !== undefined || (stopped.kind === 'ended' && stopped.runner !== undefined);
  const wasAtRest = !hadRunner && stopped.kind === 'ended' && stopped.processes === 0;
  if (stopped.kind !== 'ended' || wasAtRest) return { ok: false, failure };
  const done =
    stopped.processes < 0
      ? 'Some processes of its sessions could not be ended.'
      : 'Its sessions were ended; what they have cost is counted by the next run.';
  return { ok: false, failure: { ...failure, message: `${failure.message} ${done}` } };
}

function trouble(failure: Failure): string {
  return safeLine(describeFailure(failure), sentenceColumnsMax);
}
