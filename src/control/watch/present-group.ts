/** A group of a list as it stands now, also while it runs. */
import { addUsage } from '../../core/group.ts';
import { conditionOf } from '../../report/wording.ts';
import { type GroupMeta, groupMeta } from '../../store/meta.ts';
import { groupPaths } from '../../store/paths.ts';
import type { Place } from '../place.ts';
import { loadWithRunner } from '../resolve.ts';
import { standingOf } from './live-view.ts';

export interface PresentGroup {
  readonly meta: GroupMeta;
  /** For people: `interrupted` when its runner is gone, with what is special about a running one. */
  readonly status: string;
}

/** Snapshots come a moment later than the log and know nothing of what running sessions have spent. */
export function presentGroup({ world }: Pick<Place, 'world'>, root: string, meta: GroupMeta): PresentGroup {
  if (meta.status !== 'running') return { meta, status: meta.status };
  const loaded = loadWithRunner(world, { root, groupId: meta.id, paths: groupPaths(root, meta.id) });
  if (!loaded.ok) return { meta, status: meta.status };
  const { state } = loaded.value;
  const { live, isInterrupted } = standingOf(world, loaded.value);
  const usage = [...live.values()].reduce((sum, now) => addUsage(sum, now.usage), state.usage);
  const condition = conditionOf(state, world.clock.now());
  const running = condition === null ? state.status : `${state.status} (${condition})`;
  return {
    meta: {
      ...groupMeta(state),
      cost: usage.costUsd,
      ...(usage.estimated ? { estimated: true } : {}),
      tokens: usage.tokens,
    },
    status: isInterrupted ? 'interrupted' : running,
  };
}
