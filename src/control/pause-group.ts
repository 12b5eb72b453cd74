/** Pausing a whole group, whoever runs it: what `group pause` and `stop --all` share. */
import type { EventBody, GroupEvent } from '../core/event.ts';
import { describeFailure, type Failure, ok, type Result } from '../core/failure.ts';
import { decide } from '../core/plan/schedule.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupStatus } from '../core/status.ts';
import { safeLine } from '../report/terminal-text.ts';
import { stopGroup } from '../runner/stop-group.ts';
import { readLog } from '../store/event-log.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { PauseRequestMode } from '../store/requests.ts';
import type { World } from '../world/world.ts';
import { changeGroup } from './change-group.ts';
import { foreignWorker, stopRehearsal } from './leftovers.ts';
import type { Place } from './place.ts';
import { askRunner } from './request.ts';
import type { GroupReference } from './resolve.ts';
import { createRunHooks } from './run-hooks.ts';
import { readUserConfig } from './user-config.ts';
import { awaitRelease, awaitState } from './watch/await-state.ts';

const sentenceColumnsMax = 1_000;

export type PauseOutcome =
  /** Nobody had to do anything: it was in this status before. */
  | { readonly kind: 'unchanged'; readonly status: GroupStatus }
  /** It is not running any more. `had`: who ran it until now. */
  | { readonly kind: 'settled'; readonly status: GroupStatus; readonly had: 'runner' | 'workers' }
  /** Everything is halted where it stood; ISO 8601, when that becomes a pause. */
  | { readonly kind: 'frozen'; readonly until: string }
  /** Nobody is there to wait for the sessions that still run; nothing was done. */
  | { readonly kind: 'runner-gone' };

/**
 * Returns when the group is paused, or frozen. Workers of a runner that died are stopped by this process, or, for
 * `drain`, left as they are. What is logged without a runner is also told to `tell`.
 */
export function pauseGroup(
  place: Pick<Place, 'world' | 'notes'>,
  group: GroupReference,
  mode: PauseRequestMode,
  tell: (event: GroupEvent, state: GroupState) => void = () => {},
): Promise<Result<PauseOutcome>> {
  const { world } = place;
  return changeGroup<PauseOutcome>(place, group, {
    async direct(writer) {
      const { status } = writer.state;
      if (status !== 'running') return ok({ kind: 'unchanged', status });
      if (mode === 'drain' && writer.state.running.size > 0) return ok({ kind: 'runner-gone' });
      return stopLeftWorkers(world, writer, tell);
    },
    viaRunner: (runId) => askForPause(world, group, runId, mode),
  });
}

export interface ToldPause {
  readonly outcome: PauseOutcome;
  /** Lines about trouble with `onEvent` commands. */
  readonly warnings: readonly string[];
}

/** Like `pauseGroup`; where no runner is there to tell the `onEvent` commands, they are told from here. */
export async function pauseAndTell(
  place: Place,
  group: GroupReference,
  mode: PauseRequestMode,
): Promise<Result<ToldPause>> {
  const logged: { readonly event: GroupEvent; readonly state: GroupState }[] = [];
  const paused = await pauseGroup(place, group, mode, (event, state) => logged.push({ event, state }));
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

async function stopLeftWorkers(
  world: World,
  writer: GroupWriter,
  tell: (event: GroupEvent, state: GroupState) => void,
): Promise<Result<PauseOutcome>> {
  const foreign = foreignWorker(world, writer);
  if (foreign) return foreign;
  writer.record([{ type: 'group_pausing', reason: 'user' }]);
  await stopGroup(world, writer, 'user');
  await stopRehearsal(world, writer.paths);
  // Sessions may have finished while they were being stopped, so the end is decided like that of a run.
  for (const decision of decide(writer.state, { preparingMax: 0 })) {
    if (decision.do !== 'settle') continue;
    const end: EventBody =
      decision.status === 'completed'
        ? { type: 'group_completed' }
        : { type: 'group_paused', reason: decision.reason, message: decision.message };
    for (const event of writer.record([end])) tell(event, writer.state);
  }
  return ok({ kind: 'settled', status: writer.state.status, had: 'workers' });
}

async function askForPause(
  world: World,
  group: GroupReference,
  runId: string,
  mode: PauseRequestMode,
): Promise<Result<PauseOutcome> | 'runner-gone'> {
  const answer = await askRunner(world, group, runId, { kind: 'pause', mode });
  if (answer === 'runner-gone' || !answer.ok) return answer;
  const { seq } = answer.value;
  const until = mode === 'freeze' ? frozenBefore(world, group, seq) : null;
  if (until !== null) return ok({ kind: 'frozen', until });
  const status = await awaitState(world, group, runId, (state) =>
    state.lastSeq >= seq && state.status !== 'running' ? state.status : null,
  );
  if (status === 'runner-gone') return status;
  await awaitRelease(world, group, runId);
  return ok({ kind: 'settled', status, had: 'runner' });
}

/** Until when the request that was answered by event `seq` froze the group; null when it was being paused already. */
function frozenBefore(world: World, group: GroupReference, seq: number): string | null {
  const log = readLog(world, group.paths.events);
  const events = log.ok ? log.value : [];
  const last = events.findLast(
    (event) => event.seq <= seq && (event.type === 'group_frozen' || event.type === 'group_pausing'),
  );
  return last?.type === 'group_frozen' ? last.until : null;
}
