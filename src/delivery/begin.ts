/** How every hand-over begins, whether its work is merged here or proposed elsewhere. */

import type { Place } from '../control/place.ts';
import { ok, type Result } from '../core/failure.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { finishMerge } from './finish.ts';
import { type HandOver, type HandOverWish, planHandOver } from './plan.ts';
import { Workbench } from './workbench.ts';

export interface Beginning {
  readonly bench: Workbench;
  readonly handOver: HandOver;
  /** Of this hand-over alone: in its journal and in the environment of what it starts. */
  readonly mark: string;
}

/** Ends what an earlier hand-over left, unless this one only looks, and plans. Fails as both of them do. */
export async function beginHandOver(
  place: Place,
  writer: GroupWriter,
  wish: HandOverWish & { readonly dryRun: boolean },
): Promise<Result<Beginning>> {
  if (!wish.dryRun) {
    const finished = await finishMerge(place, writer);
    if (!finished.ok) return finished;
  }
  const mark = place.world.random.uuid();
  const bench = new Workbench(place, writer.paths, writer.state, mark);
  const handOver = await planHandOver(bench.git, writer.state, wish);
  return handOver.ok ? ok({ bench, handOver: handOver.value, mark }) : handOver;
}
