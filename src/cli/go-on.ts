/** How a paused group goes on, for commands that did not read it. */

import { type GroupReference, loadWithRunner } from '../app/resolve.ts';
import { commandText } from '../core/advice.ts';
import { resumeCommand } from '../core/plan/advice.ts';
import type { World } from '../system/world.ts';

export function resumeText(world: World, group: GroupReference): string {
  const loaded = loadWithRunner(world, group);
  return commandText(loaded.ok ? resumeCommand(loaded.value.state) : ['group', 'resume', group.groupId]);
}
