/** Branches on which sessions of other groups build: they stay, whatever becomes of the group that made them. */
import { basename, dirname } from 'node:path';
import type { GroupId, Workspace } from '../../core/group.ts';
import { listGroups, loadGroup } from '../../store/group-store.ts';
import { type GroupPaths, groupPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { Place } from '../place.ts';

/**
 * The group, another one than that of the folder `own`, that builds on the branch; null when there is none. With
 * `orOwned` also one that made it counts, for whoever only has it from there.
 */
export function namedElsewhere(
  { world }: Pick<Place, 'world'>,
  own: GroupPaths,
  { repository, branch }: Pick<Workspace, 'repository' | 'branch'>,
  { orOwned }: { readonly orOwned: boolean },
): GroupId | null {
  const root = dirname(dirname(own.folder));
  const others = listGroups(world, root).filter(({ id }) => id !== basename(own.folder));
  const found = others.find(({ id, meta }) => {
    // What of a damaged group can be read at all tells of its branches.
    if (meta === undefined) return mentions(world, groupPaths(root, id), branch);
    const named = meta.inheritedBranches ?? [];
    if (named.some((one) => one.branch === branch && one.repository === repository)) return true;
    return orOwned && isOwner(world, root, id, branch, repository);
  });
  return found?.id ?? null;
}

/** Names of branches hold the slug of the group that made them, so few groups are looked at. */
function isOwner(world: World, root: string, id: string, branch: string, repository: string): boolean {
  if (!branch.startsWith(`cca/${id.slice(16)}/`)) return false;
  const state = loadGroup(world, root, id);
  if (!state.ok) return mentions(world, groupPaths(root, id), branch);
  return [...state.value.sessions.values()].some(
    ({ workspace }) => workspace?.branch === branch && workspace.repository === repository,
  );
}

function mentions({ files }: World, { events }: GroupPaths, branch: string): boolean {
  try {
    return (files.readText(events) ?? '').includes(JSON.stringify(branch));
  } catch {
    // What cannot be read may name it.
    return true;
  }
}
