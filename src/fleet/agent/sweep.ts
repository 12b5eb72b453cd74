/** What sessions of others left on this machine, removed when none of them came back for long. */
import { join } from 'node:path';
import type { GroupId } from '../../core/group.ts';
import { isGroupId, isSessionId } from '../../core/id.ts';
import { groupPaths, groupsFolder } from '../../store/paths.ts';
import type { Files, World } from '../../system/world.ts';
import type { FleetPaths } from '../fleet-paths.ts';

const keptMs = 14 * 24 * 60 * 60_000;

/** `inUse`: folders of sessions that hold a slot. Their worktrees are kept so long for a next attempt. */
export function sweep({ files, clock }: World, fleet: FleetPaths, inUse: ReadonlySet<string>): void {
  for (const groupId of files.list(groupsFolder(fleet.work))) {
    if (!isGroupId(groupId)) continue;
    const group = groupPaths(fleet.work, groupId as GroupId);
    const isKept = (folder: string): boolean => {
      const orderedAtMs = files.info(join(folder, 'order.json'))?.mtimeMs ?? 0;
      return inUse.has(folder) || Math.abs(clock.now() - orderedAtMs) < keptMs;
    };
    const folders = files
      .list(group.sessions)
      .filter(isSessionId)
      .map((name) => `${group.sessions}/${name}`);
    const kept = folders.filter(isKept);
    for (const folder of folders) if (!kept.includes(folder)) files.remove(folder);
    if (kept.length === 0) removeGroup(files, fleet, groupId as GroupId);
  }
}

/** All that is here of it, whether it is in use or not. */
export function removeGroup(files: Files, fleet: FleetPaths, groupId: GroupId): void {
  for (const name of files.list(fleet.repositories)) {
    if (name.endsWith(`-${groupId}`)) files.remove(join(fleet.repositories, name));
  }
  files.remove(groupPaths(fleet.work, groupId).folder);
}
