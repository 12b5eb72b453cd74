/** How a group stands, and what happened to it until now. */

import type { GroupEvent } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import { type GroupProgress, groupProgress } from '../../core/progress.ts';
import type { GroupState } from '../../core/state.ts';
import { readLog } from '../../store/event-log.ts';
import { foldLog } from '../../store/fold.ts';
import type { World } from '../../system/world.ts';
import type { GroupReference, LoadedGroup } from '../resolve.ts';
import { standingOf } from './live-view.ts';

/** How the group stands at this moment, also while a runner of another process runs it. */
export function progressOf(
  world: World,
  group: Pick<LoadedGroup, 'paths' | 'state' | 'hadRunner'>,
  { live, atMs, verdicts } = standingOf(world, group),
): GroupProgress {
  return groupProgress(group.state, live, atMs, verdicts);
}

export interface GroupHistory {
  readonly events: readonly GroupEvent[];
  readonly state: GroupState;
}

/** Everything that happened to the group, and what it came to. Fails as reading its log does. */
export function historyOf(world: World, { groupId, paths }: GroupReference): Result<GroupHistory> {
  const events = readLog(world, paths.events);
  if (!events.ok) return events;
  const state = foldLog(paths.events, groupId, events.value);
  return state.ok ? ok({ events: events.value, state: state.value }) : state;
}
