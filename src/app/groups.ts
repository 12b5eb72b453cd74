/** The groups of a data folder for whoever lists them, and where the files of a group lie. */
import type { GroupId } from '../core/group.ts';
import { groupPaths } from '../store/paths.ts';
import type { GroupReference } from './resolve.ts';

export { type GroupListing, listGroups } from '../store/group-store.ts';
export { type GroupMeta, type SessionMeta, sessionMeta } from '../store/meta.ts';
export { type GroupPaths, sessionPaths } from '../store/paths.ts';

export function groupReference(root: string, groupId: GroupId): GroupReference {
  return { root, groupId, paths: groupPaths(root, groupId) };
}
