/** How a paused group goes on, for commands that did not read it. */

import type { GroupReference } from '../control/resolve.ts';
import { commandText } from '../core/advice.ts';
import { resumeCommand } from '../core/plan/advice.ts';
import { loadGroup } from '../store/group-store.ts';
import type { World } from '../world/world.ts';

export function resumeText(world: World, { root, groupId }: GroupReference): string {
  const state = loadGroup(world, root, groupId);
  return commandText(state.ok ? resumeCommand(state.value) : ['group', 'resume', groupId]);
}
