/**
 * store/: our files. This file: all groups of a data root: listed, loaded, created and deleted. A group is in the list
 * completely or not at all, whenever a process dies.
 */
import { basename, join } from 'node:path';
import { see } from '../core/advice.ts';
import type { EventBody, GroupEvent } from '../core/event.ts';
import { assert, errorText, type Failure, fail, ok, type Result } from '../core/failure.ts';
import { buildGraph } from '../core/graph.ts';
import type { GroupDefinition, GroupId, SessionDefinition } from '../core/group.ts';
import { isGroupId } from '../core/id.ts';
import { graphOf } from '../core/plan/plan.ts';
import { reduce } from '../core/reduce.ts';
import { IllegalEvent } from '../core/session-state.ts';
import { type GroupState, initialState } from '../core/state.ts';
import { activeGroupStatuses } from '../core/status.ts';
import type { World } from '../system/world.ts';
import { createLog, hasHeaderOf, headerBytesMax, readLog, restoreOrDelete } from './event-log.ts';
import { type GroupPaths, groupPaths, groupPathsIn, groupsFolder } from './paths.ts';
import { createSnapshots, type GroupMeta, groupMeta, parseGroupMeta } from './snapshots.ts';
import { systemFailure } from './system-failure.ts';

const unfinishedPrefix = '.new-';
const deletedPrefix = '.deleted-';
/** An unfinished group older than this, milliseconds, was left by a dead process. */
const abandonedAfterMs = 3_600_000;

/** `problem`: the group exists but cannot be read, so only `meta`, if readable, is known of it. */
export type GroupListing =
  | { readonly id: GroupId; readonly meta: GroupMeta; readonly problem?: Failure }
  | { readonly id: GroupId; readonly meta?: never; readonly problem: Failure };

/** Ids of all groups, newest first. Other names in the folder are ignored. */
export function groupIds(world: World, root: string): GroupId[] {
  return world.files.list(groupsFolder(root)).filter(isGroupId).sort().reverse();
}

/** All groups, newest first. Of most it reads only the snapshot and the beginning of the log. */
export function listGroups(world: World, root: string): GroupListing[] {
  return groupIds(world, root).flatMap((id) => listGroup(world, root, id) ?? []);
}

function listGroup(world: World, root: string, id: GroupId): GroupListing | null {
  const paths = groupPaths(root, id);
  try {
    // A FIFO in its place has no bytes.
    const bytes = world.files.readBytes(paths.meta, 0, Number.POSITIVE_INFINITY);
    const meta = parseGroupMeta(Buffer.from(bytes).toString());
    const view = meta.ok && meta.value.id === id ? meta.value : null;
    if (view !== null) {
      const writtenAt = (path: string) => world.files.info(path)?.mtimeMs ?? 0;
      // A killed runner had no time to update meta.json.
      const isStale = activeGroupStatuses.has(view.status) && writtenAt(paths.events) >= writtenAt(paths.meta);
      if (!isStale && hasHeaderOf(id, world.files.readBytes(paths.events, 0, headerBytesMax)))
        return { id, meta: view };
    }
    if (view === null && !isFolder(world, paths.folder)) return null;
    const state = loadGroup(world, root, id);
    if (state.ok) return { id, meta: groupMeta(state.value) };
    // Deleted since its name was read.
    if (state.failure.reason === 'not-found') return null;
    return { id, problem: state.failure, ...(view === null ? {} : { meta: view }) };
  } catch (error) {
    const message = `Cannot read ${paths.folder}: ${errorText(error)}.`;
    return { id, problem: fail('corrupt-file', message, 'Check its permissions.').failure };
  }
}

/** The group's state, from its log; read only. Fails with `not-found`, `corrupt-file` or `newer-version`. */
export function loadGroup(world: World, root: string, id: GroupId): Result<GroupState> {
  const paths = isGroupId(id) ? groupPaths(root, id) : null;
  if (paths === null || !isFolder(world, paths.folder)) return noSuchGroup(id);
  const log = readLog(world, paths.events);
  if (log.ok) return foldLog(paths.events, id, log.value);
  return isGroupGone(world, paths) ? noSuchGroup(id) : log;
}

/** The failure of every command that was given its id. */
export function noSuchGroup(id: GroupId): Extract<Result<never>, { readonly ok: false }> {
  return fail('not-found', `There is no group ${JSON.stringify(id)}.`, see('group', 'list'));
}

/** Whether the group's folder is missing: then nothing in it is damaged. */
export function isGroupGone({ files }: World, { folder }: GroupPaths): boolean {
  return files.entryKind(folder) === null;
}

export function isFolder({ files }: World, path: string): boolean {
  return files.info(path)?.kind === 'folder';
}

/**
 * Creates a group with its first sessions. Fails with `duplicate` when the id is taken (or a session's id or name is
 * used twice), `cycle`, `unknown-dependency` or `write-failed`; nothing is left behind then. `fill` adds further files
 * before the group is visible; `further` are events known from the start.
 */
export function createGroup(
  world: World,
  root: string,
  definition: GroupDefinition,
  sessions: readonly SessionDefinition[] = [],
  fill: (paths: GroupPaths) => void = () => {},
  further: readonly EventBody[] = [],
): Result<GroupState> {
  const graph = buildGraph(sessions);
  if (!graph.ok) return graph;
  const target = groupPaths(root, definition.id);
  const folder = join(groupsFolder(root), `${unfinishedPrefix}${world.random.uuid()}`);
  try {
    world.files.makeFolder(groupsFolder(root));
    // A failed removal of leftovers must not prevent this group.
    sweepLeftovers(world, root);
    if (world.files.info(target.folder) !== null) return taken(definition.id);
    const state = writeGroup(world, folder, definition, firstEvents(world, definition, sessions, further));
    fill(groupPathsIn(folder));
    world.files.rename(folder, target.folder);
    return ok(state);
  } catch (error) {
    removeQuietly(world, folder);
    // Another process may have created the group between our check and the rename.
    if (world.files.info(target.folder) !== null) return taken(definition.id);
    return { ok: false, failure: systemFailure(target.folder, error) };
  }
}

function writeGroup(
  world: World,
  folder: string,
  definition: GroupDefinition,
  events: readonly GroupEvent[],
): GroupState {
  const paths = groupPathsIn(folder);
  for (const path of [folder, paths.sessions, paths.requests]) world.files.makeFolder(path);
  createLog(world, paths.events, definition.id, events).close();
  const state = foldLog(paths.events, definition.id, events);
  assert(state.ok, `the definition of ${definition.id} makes no group`);
  const snapshots = createSnapshots(world, paths, state.value);
  snapshots.mark(state.value.sessions.keys());
  snapshots.flush();
  return state.value;
}

/** The state of such a group without writing it. Fails like `createGroup`. */
export function draftGroup(
  world: World,
  definition: GroupDefinition,
  sessions: readonly SessionDefinition[],
): Result<GroupState> {
  const graph = buildGraph(sessions);
  if (!graph.ok) return graph;
  return foldLog('events.jsonl', definition.id, firstEvents(world, definition, sessions));
}

function firstEvents(
  world: World,
  group: GroupDefinition,
  sessions: readonly SessionDefinition[],
  further: readonly EventBody[] = [],
): readonly GroupEvent[] {
  const at = new Date(world.clock.now()).toISOString();
  const bodies: EventBody[] = [
    { type: 'group_created', group },
    ...sessions.map((session): EventBody => ({ type: 'session_added', sessionId: session.id, session })),
    ...further,
  ];
  return bodies.map((body, index) => ({ seq: index + 1, at, groupId: group.id, ...body }));
}

function taken(id: GroupId): Result<never> {
  return fail('duplicate', `The group ${id} already exists.`, 'Try again in a second, or choose another slug.');
}

/** Deletes a group; the caller holds its lock. It leaves the list in one step. Throws the system's error. */
export function deleteGroupFolder(world: World, root: string, id: GroupId): void {
  const { folder } = groupPaths(root, id);
  const doomed = join(groupsFolder(root), `${deletedPrefix}${id}-${world.random.uuid()}`);
  if (world.files.info(folder) !== null) {
    world.files.rename(folder, doomed);
    removeLockLast(world, doomed);
  }
  sweepLeftovers(world, root);
}

/** The lock shows other processes that a removal is in progress. A symlink is removed without its target. */
function removeLockLast({ files }: World, folder: string): void {
  const { lock } = groupPathsIn(folder);
  const all = files.entryKind(folder) === 'folder' ? files.list(folder).map((name) => join(folder, name)) : [];
  for (const path of all) if (path !== lock) files.remove(path);
  files.remove(folder);
}

/** Removes what dead processes had begun to create or delete, as far as the system allows. */
function sweepLeftovers(world: World, root: string): void {
  for (const path of leftovers(world, root)) removeQuietly(world, path);
}

/** Paths of what dead processes had begun to create or delete. */
export function leftovers(world: World, root: string): string[] {
  const all = groupsFolder(root);
  const isOurs = (name: string): boolean => name.startsWith(deletedPrefix) || name.startsWith(unfinishedPrefix);
  const found = world.files.list(all).filter(isOurs);
  return found.map((name) => join(all, name)).filter((path) => isLeftover(world, path));
}

function isLeftover({ files, clock, locks }: World, path: string): boolean {
  if (basename(path).startsWith(deletedPrefix)) return locks.holder(groupPathsIn(path).lock) === null;
  const info = files.info(path);
  return info !== null && clock.now() - info.mtimeMs > abandonedAfterMs;
}

function removeQuietly(world: World, path: string): void {
  try {
    world.files.remove(path);
  } catch {}
}

// Reduces the events of a log to the state of the group; a damaged log is a failure.

/** Reduces the events of `path`. Fails with `corrupt-file` at the first impossible one. */
export function foldLog(path: string, id: GroupId, events: readonly GroupEvent[]): Result<GroupState> {
  let state: GroupState | null = null;
  for (const [index, event] of events.entries()) {
    try {
      state = state === null ? initialState(event) : reduce(state, event);
    } catch (error) {
      // One faulty group must not affect the others. The header is line 1.
      const what = error instanceof IllegalEvent ? 'is not a possible event' : 'is not valid';
      return corrupt(path, `Line ${index + 2} of ${path} ${what}: ${errorText(error)}.`);
    }
  }
  if (state === null) return corrupt(path, `The event log ${path} does not name its group.`);
  if (state.group.id !== id) return corrupt(path, `The event log ${path} belongs to the group ${state.group.id}.`);
  // Commands never log sessions with an invalid graph, but a manually edited log can contain them.
  const graph = graphOf(state);
  if (!graph.ok) return corrupt(path, `The sessions in ${path} have invalid dependencies: ${graph.failure.message}`);
  return ok(state);
}

function corrupt(path: string, message: string): Result<never> {
  return fail('corrupt-file', message, restoreOrDelete(path));
}
