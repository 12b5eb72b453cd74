/** How a paused group goes on, for commands that did not read it. */

import type { GroupReference } from '../control/resolve.ts';
import { resumeLine } from '../report/wording.ts';
import { loadGroup } from '../store/group-store.ts';
import type { World } from '../world/world.ts';

/** The command line, to be typed as it stands. */
export function resumeCommand(world: World, { root, groupId }: GroupReference): string {
  const state = loadGroup(world, root, groupId);
  return state.ok ? resumeLine(state.value) : `claude-code-agent group resume ${groupId}`;
}
