/** Resolves references: groups by id, prefix or slug; sessions by id, prefix or `<group>/<number-or-name>`. */
import { see } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import {
  createdAtOf,
  findGroup,
  findGroupToDestroy,
  findSession,
  quoted,
  recencyOf,
  slugHint,
  slugOf,
} from '../core/id.ts';
import { hint } from '../core/nearest.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { groupIds, listGroups, loadGroup } from '../store/group-store.ts';
import { type GroupPaths, groupPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import type { AppContext } from './app-context.ts';
import { liveRunner } from './live-runner.ts';

export { type GroupListing, listGroups } from '../store/group-store.ts';
export { type GroupPaths, sessionPaths } from '../store/paths.ts';
export { type GroupMeta, type SessionMeta, sessionMeta } from '../store/snapshots.ts';

export interface GroupReference {
  readonly root: string;
  readonly groupId: GroupId;
  readonly paths: GroupPaths;
}

export function groupReference(root: string, groupId: GroupId): GroupReference {
  return { root, groupId, paths: groupPaths(root, groupId) };
}

/** Fails with `not-found`, `ambiguous` or `usage` (no data root). */
export function resolveGroup(context: AppContext, reference: string): Result<GroupReference> {
  return resolveBy(context, (root, ids) => {
    const back = recencyOf(reference);
    // A slug such as `latest` takes precedence over the special word.
    const isSlug = back === null || ids.some((id) => slugOf(id) === reference);
    return isSlug ? findGroup(ids, reference) : createdBack(newestFirst(context.world, root), back);
  });
}

/** For destructive commands: a slug of several groups is `ambiguous`. */
export function resolveGroupToDestroy(context: AppContext, reference: string): Result<GroupReference> {
  const certain = resolveBy(context, (root, ids) => {
    const [latest] = recencyOf(reference) === null ? [] : newestFirst(context.world, root);
    return findGroupToDestroy(ids, reference, latest);
  });
  return certain.ok || certain.failure.reason !== 'not-found' ? certain : resolveGroup(context, reference);
}

function resolveBy(
  context: AppContext,
  find: (root: string, ids: readonly GroupId[]) => Result<GroupId>,
): Result<GroupReference> {
  const root = context.root();
  if (!root.ok) return root;
  const found = find(root.value, groupIds(context.world, root.value));
  if (!found.ok) return found;
  return ok(groupReference(root.value, found.value));
}

function createdBack(ids: readonly GroupId[], back: number): Result<GroupId> {
  const id = ids[back];
  if (id !== undefined) return ok(id);
  const there = ids.length === 1 ? 'there is one group' : `there are ${ids.length} groups`;
  const message = ids.length === 0 ? 'There are no groups.' : `There is no such group: ${there}.`;
  return fail('not-found', message, see('group', 'list'));
}

/** By the creation time in the snapshot, which is more exact than the one in the id. */
function newestFirst(world: World, root: string): GroupId[] {
  const groups = listGroups(world, root).map(({ id, meta }) => ({ id, at: meta?.createdAt ?? createdAtOf(id) }));
  return groups.toSorted((a, b) => b.at.localeCompare(a.at) || b.id.localeCompare(a.id)).map(({ id }) => id);
}

export interface LoadedGroup extends GroupReference {
  readonly state: GroupState;
  /** A runner held the lock just before the log was read, so a group that is running was not interrupted. */
  readonly hadRunner: boolean;
}

export function loadReferredGroup(context: AppContext, reference: string, resolve = resolveGroup): Result<LoadedGroup> {
  const group = resolve(context, reference);
  if (!group.ok) return group;
  return loadWithRunner(context.world, group.value);
}

/** Checks the lock before it reads the log, so that the log includes the last events of a runner. */
export function loadWithRunner(world: World, group: GroupReference): Result<LoadedGroup> {
  const hadRunner = isHeld(world, group);
  const state = loadGroup(world, group.root, group.groupId);
  return state.ok ? ok({ ...group, state: state.value, hadRunner }) : state;
}

/** An unreadable lock counts as free, because reading the log gives the better message. */
export function isHeld(world: World, group: GroupReference): boolean {
  try {
    return liveRunner(world, group) !== null;
  } catch {
    return false;
  }
}

export interface LoadedSession extends LoadedGroup {
  readonly sessionId: SessionId;
  readonly record: SessionRecord;
}

/** `<group>/<session>`, or an id or unique prefix in all groups; `resolve` finds the group in the first form. */
export function loadReferredSession(
  context: AppContext,
  reference: string,
  resolve = resolveGroup,
): Result<LoadedSession> {
  const slash = reference.indexOf('/');
  const split =
    slash >= 0
      ? ok({ group: reference.slice(0, slash), session: reference.slice(slash + 1) })
      : searchAllGroups(context, reference);
  if (!split.ok) return split;
  const group = loadReferredGroup(context, split.value.group, resolve);
  if (!group.ok) return group;
  return sessionOf(group.value, split.value.session);
}

/** True if a word names a group, false for a session. A word that fits both names the group. */
export function isGroupNamed(context: AppContext, reference: string): Result<boolean> {
  if (reference.includes('/')) return ok(false);
  const group = resolveGroup(context, reference);
  if (group.ok) return ok(true);
  if (group.failure.reason !== 'not-found' || recencyOf(reference) !== null) return group;
  const session = loadReferredSession(context, reference);
  if (session.ok || session.failure.reason !== 'not-found') return session.ok ? ok(false) : session;
  const root = context.root();
  const near = root.ok ? slugHint(reference, groupIds(context.world, root.value)) : '';
  return fail('not-found', `There is no group or session ${quoted(reference)}${near || '.'}`, see('group', 'list'));
}

export function sessionOf(group: LoadedGroup, reference: string): Result<LoadedSession> {
  const found = findSessionOf(group.state, reference);
  if (!found.ok) return found;
  const record = group.state.sessions.get(found.value);
  if (record === undefined) throw new Error(`Internal error: ${found.value} was found and is gone`);
  return ok({ ...group, sessionId: found.value, record });
}

export function findSessionOf(state: GroupState, reference: string): Result<SessionId> {
  const sessions = [...state.sessions.values()].map(({ definition }) => definition);
  const found = findSession(sessions, reference);
  if (found.ok || found.failure.reason !== 'not-found') return found;
  const names = sessions.flatMap(({ name }) => name ?? []);
  const what = `There is no session ${quoted(reference)} in the group ${state.group.id}`;
  return fail('not-found', `${what}${hint(reference, names) || '.'}`, see('session', 'list', state.group.id));
}

function searchAllGroups(
  context: AppContext,
  reference: string,
): Result<{ readonly group: string; readonly session: string }> {
  const root = context.root();
  if (!root.ok) return root;
  const owners = new Map<SessionId, GroupId>();
  for (const listing of listGroups(context.world, root.value)) {
    if (!('meta' in listing)) continue;
    for (const session of listing.meta.sessions) owners.set(session.id, listing.id);
  }
  // Numbers and names are not unique over all groups, so search by id only.
  if (/^\d{1,6}$/.test(reference)) return needsGroup(reference);
  const found = findSession(
    [...owners.keys()].map((id) => ({ id })),
    reference,
  );
  if (!found.ok) return found.failure.reason === 'not-found' ? needsGroup(reference) : found;
  return ok({ group: owners.get(found.value) as GroupId, session: found.value });
}

function needsGroup(reference: string): Result<never> {
  return fail(
    'not-found',
    `There is no session with the id ${quoted(reference)}.`,
    'Give numbers and names with their group: <group>/<number-or-name>.',
  );
}
