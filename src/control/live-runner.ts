/** Who holds a group: a runner, or a command that changes it and is gone soon. */

import type { GroupState } from '../core/state.ts';
import { livingRunner } from '../store/living-runner.ts';
import type { GroupPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';

/** Run ids that begin so belong to short commands: they answer no requests and are gone soon. */
export const shortRunPrefix = 'command-';

/** The run id of the runner that holds the group; null when nobody or only a short command does. */
export function liveRunner(world: World, group: { readonly paths: Pick<GroupPaths, 'lock'> }): string | null {
  const holder = world.locks.holder(group.paths.lock);
  return holder === null || holder.runId.startsWith(shortRunPrefix) ? null : holder.runId;
}

/** Its lock file was removed, and the runner that the log names lives on this machine all the same. */
export function isRunWithoutLock(
  world: World,
  { paths, state }: { readonly paths: Pick<GroupPaths, 'lock'>; readonly state: GroupState },
): boolean {
  return livingRunner(world, state) !== null && world.locks.holder(paths.lock) === null;
}
