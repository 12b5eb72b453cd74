/** Lists the groups of a data folder, and locates the files of a group. */
import type { GroupId } from '../core/group.ts';
import { groupPaths } from '../store/paths.ts';
import type { GroupReference } from './resolve.ts';

export { type GroupListing, listGroups } from '../store/group-store.ts';
export { type GroupMeta, type SessionMeta, sessionMeta } from '../store/meta.ts';
export { type GroupPaths, sessionPaths } from '../store/paths.ts';

export function groupReference(root: string, groupId: GroupId): GroupReference {
  return { root, groupId, paths: groupPaths(root, groupId) };
}
