/** Pausing a whole group: by its runner, or by stopping what a runner that died has left. */
import type { EventBody } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import { decide } from '../../core/plan/schedule.ts';
import { stopGroup } from '../../runner/stop-group.ts';
import { readLog } from '../../store/event-log.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import type { PauseRequestMode } from '../../store/requests.ts';
import type { World } from '../../system/world.ts';
import { foreignWorker, stopRehearsal } from '../leftovers.ts';
import type { GroupReference } from '../resolve.ts';
import { awaitRelease, awaitState } from '../watch/follow-group.ts';
import type { PauseOutcome } from './pause-outcome.ts';
import type { Tell, Way } from './way.ts';

/** Workers of a runner that died are stopped by this process, or, for `drain`, left as they are. */
export const pauseGroupWay: Way<'pause'> = {
  direct(world, writer, { mode }, { tell, gone }) {
    const { status, run } = writer.state;
    const hadStart = gone !== undefined && run?.id !== gone;
    if (status !== 'running')
      return ok(hadStart ? { kind: 'settled', status, had: 'start' } : { kind: 'unchanged', status });
    if (mode === 'drain' && writer.state.running.size > 0) return ok({ kind: 'runner-gone' });
    return stopLeftWorkers(world, writer, tell);
  },
  answered: (world, group, runId, { seq }, { mode }) => outcomeOf(world, group, runId, seq, mode),
};

async function stopLeftWorkers(world: World, writer: GroupWriter, tell: Tell): Promise<Result<PauseOutcome>> {
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

async function outcomeOf(
  world: World,
  group: GroupReference,
  runId: string,
  seq: number,
  mode: PauseRequestMode,
): Promise<Result<PauseOutcome> | 'runner-gone'> {
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
