/** How a paused group goes on, for commands that did not read it. */

import { type GroupReference, loadWithRunner } from '../control/resolve.ts';
import { resumeLine } from '../report/wording.ts';
import type { World } from '../world/world.ts';

/** The command line, to be typed as it stands. */
export function resumeCommand(world: World, group: GroupReference): string {
  const loaded = loadWithRunner(world, group);
  return loaded.ok ? resumeLine(loaded.value.state) : `claude-code-agent group resume ${group.groupId}`;
}
