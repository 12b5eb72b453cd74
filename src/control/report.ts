/** What a report is made from, read as it stands now. */
import { ok, type Result } from '../core/failure.ts';
import type { GroupState } from '../core/state.ts';
import type { ReportModel } from '../report/html/model.ts';
import { readLog } from '../store/event-log.ts';
import { foldLog } from '../store/fold.ts';
import type { World } from '../world/world.ts';
import { liveRunner } from './live-runner.ts';
import type { GroupReference } from './resolve.ts';
import { attemptUsages } from './watch/attempt-usage.ts';

export interface LoadedReport {
  readonly state: GroupState;
  readonly model: ReportModel;
}

/** One reading of the log makes both, so that they cannot differ however busy the group's runner is. */
export async function loadReport(world: World, group: GroupReference): Promise<Result<LoadedReport>> {
  const { paths, groupId } = group;
  const events = readLog(world, paths.events);
  if (!events.ok) return events;
  const state = foldLog(paths.events, groupId, events.value);
  if (!state.ok) return state;
  const { reportModel } = await import('../report/html/model.ts');
  const hasRunner = liveRunner(world, group) !== null;
  const live = attemptUsages(world, paths, state.value, hasRunner);
  return ok({
    state: state.value,
    model: reportModel(state.value, events.value, world.clock.now(), { live, hasRunner }),
  });
}
