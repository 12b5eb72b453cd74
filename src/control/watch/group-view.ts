/** A group and its sessions as values, in the form of their meta.json and of `progress` in `group show --json`. */
import { type GroupProgress, groupProgress } from '../../core/progress.ts';
import { groupMeta, type SessionMeta, sessionMeta } from '../../store/meta.ts';
import type { World } from '../../world/world.ts';
import type { LoadedGroup } from '../resolve.ts';
import { standingOf } from './live-view.ts';

export { groupMeta, type SessionMeta, sessionMeta };

/** How the group stands at this moment, also while a runner of another process runs it. */
export function progressOf(world: World, group: Pick<LoadedGroup, 'paths' | 'state' | 'hadRunner'>): GroupProgress {
  const { live, atMs, isInterrupted } = standingOf(world, group);
  return groupProgress(group.state, live, atMs, isInterrupted);
}
