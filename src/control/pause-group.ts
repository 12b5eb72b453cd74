/** Pausing a whole group, whoever runs it: what `group pause`, `stop --all` and the dashboard share. */
import type { GroupEvent } from '../core/event.ts';
import { describeFailure, type Failure, ok, type Result } from '../core/failure.ts';
import type { GroupState } from '../core/state.ts';
import { safeLine } from '../report/terminal-text.ts';
import type { PauseRequestMode } from '../store/requests.ts';
import type { PauseOutcome } from './command/pause-outcome.ts';
import type { Place } from './place.ts';
import type { GroupReference } from './resolve.ts';
import { createRunHooks } from './run-hooks.ts';
import { submit } from './submit.ts';
import { readUserConfig } from './user-config.ts';

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
  const paused = await submit(
    place,
    group,
    { kind: 'pause', mode },
    {
      tell: (event, state) => logged.push({ event, state }),
    },
  );
  if (!paused.ok) return paused;
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

function trouble(failure: Failure): string {
  return safeLine(describeFailure(failure), sentenceColumnsMax);
}
