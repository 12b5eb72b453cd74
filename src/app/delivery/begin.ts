/** How every hand-over begins, whether its work is merged here or proposed elsewhere. */

import { ok, type Result } from '../../core/failure.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import type { Place } from '../place.ts';
import { finishMerge } from './finish.ts';
import { MergeSandbox } from './merge-sandbox.ts';
import { type MergePlan, type MergeSelection, planMerge } from './plan.ts';

export interface Beginning {
  readonly bench: MergeSandbox;
  readonly mergePlan: MergePlan;
  /** Of this hand-over alone: in its journal and in the environment of what it starts. */
  readonly mark: string;
}

/** Ends what an earlier hand-over left, unless this one only looks, and plans. Fails as both of them do. */
export async function beginMerge(
  place: Place,
  writer: GroupWriter,
  options: MergeSelection & { readonly dryRun: boolean },
): Promise<Result<Beginning>> {
  if (!options.dryRun) {
    const finished = await finishMerge(place, writer);
    if (!finished.ok) return finished;
  }
  const mark = place.world.random.uuid();
  const bench = new MergeSandbox(place, writer.paths, writer.state, mark);
  const mergePlan = await planMerge(bench.git, writer.state, options);
  return mergePlan.ok ? ok({ bench, mergePlan: mergePlan.value, mark }) : mergePlan;
}
