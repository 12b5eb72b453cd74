/** Loads the data of a report. */
import { ok, type Result } from '../core/failure.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../system/world.ts';
import type { ReportModel } from '../view/html/model.ts';
import { isRun } from './live-runner.ts';
import type { GroupReference } from './resolve.ts';
import { attemptUsages } from './watch/attempt-usage.ts';
import { readGroupProgress, readHistory } from './watch/live-view.ts';

export interface LoadedReport {
  readonly state: GroupState;
  readonly model: ReportModel;
}

/** Reads the log once, so that state and report match even while the group runs. */
export async function loadReport(world: World, group: GroupReference): Promise<Result<LoadedReport>> {
  const history = readHistory(world, group);
  if (!history.ok) return history;
  const { events, state } = history.value;
  const { reportModel } = await import('../view/html/model.ts');
  const { paths } = group;
  const hasRunner = isRun(world, paths);
  const live = attemptUsages(world, paths, state, hasRunner);
  const reported = hasRunner ? { verdicts: readGroupProgress(world, paths.progress, state).verdicts } : {};
  return ok({
    state,
    model: reportModel(state, events, world.clock.now(), { live, hasRunner, ...reported }),
  });
}
