/**
 * Which sessions work in a git worktree of their own, and which in the project folder itself. A session's own setting
 * decides; otherwise it gets a worktree as soon as any session of the group does: by request, or when two sessions that
 * may run at once share a repository. So the work of a group is merged as a whole.
 */
import type { IsolationMode } from '../definitions.ts';
import { reachable } from '../graph.ts';
import type { SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { requiresRemote } from './placement.ts';
import { type Plan, planOf } from './plan.ts';

/** Where the session works, or would work if it started now. Fixed by its first attempt. */
export function isolationOf(state: GroupState, id: SessionId): IsolationMode {
  const record = state.sessions.get(id);
  if (record === undefined) return 'none';
  if (record.isolated !== undefined) return record.isolated ? 'worktree' : 'none';
  const { isolate, repository } = record.definition;
  if (isolate !== undefined) return isolate;
  if (repository === undefined) return 'none';
  if (requiresRemote(state.group.config, record.definition)) return 'worktree';
  return findings(state).usesWorktrees && !buildsInPlace(state, id) ? 'worktree' : 'none';
}

/** Whether the session builds on work in the checkout itself, which a worktree would lack. */
export function buildsInPlace(state: GroupState, id: SessionId): boolean {
  const now = findings(state);
  if (!now.usesWorktrees) return false;
  // While worktrees are used, only sessions that were already going to start in a checkout do so.
  now.inPlace ??= inPlace(state, planOf(state));
  return now.inPlace.has(id);
}

/** Repositories in whose checkouts a session runs now, so that no other one may start there. */
export function checkoutsInUse(state: GroupState): Set<string> {
  const used = new Set<string>();
  if (state.group.config.shareCheckouts) return used;
  for (const id of [...state.running, ...state.takenOver]) {
    const record = state.sessions.get(id) as SessionRecord;
    const { repository } = record.definition;
    if (repository !== undefined && record.isolated !== true) used.add(repository);
  }
  return used;
}

interface Findings {
  readonly seq: number;
  readonly usesWorktrees: boolean;
  /** Sessions that build on work in the checkout itself; computed on demand. */
  inPlace?: ReadonlySet<SessionId>;
}

const found = new WeakMap<GroupState, Findings>();

/** Computed once for all sessions and each state. */
function findings(state: GroupState): Findings {
  const last = found.get(state);
  if (last?.seq === state.lastSeq) return last;
  const now: Findings = { seq: state.lastSeq, usesWorktrees: usesWorktrees(state, planOf(state)) };
  found.set(state, now);
  return now;
}

function usesWorktrees(state: GroupState, plan: Plan): boolean {
  const open = new Map<string, SessionId[]>();
  for (const id of plan.graph.order) {
    const record = state.sessions.get(id);
    if (record === undefined) continue;
    const { repository, isolate } = record.definition;
    if (repository === undefined) continue;
    const goes = isolate === undefined && requiresRemote(state.group.config, record.definition);
    if (record.isolated === true || ((isolate === 'worktree' || goes) && record.isolated === undefined)) return true;
    if (record.state.status === 'completed' || isolate === 'none') continue;
    const others = open.get(repository);
    if (others === undefined) open.set(repository, [id]);
    else others.push(id);
  }
  return [...open.values()].some((ids) => ids.length > 1 && mayMeet(state, plan, ids));
}

/** Whether two of the sessions, given with dependencies first, may run at once. */
function mayMeet(state: GroupState, plan: Plan, ids: readonly SessionId[]): boolean {
  if (!state.group.config.respectDependencies) return true;
  return longestChain(state, plan, new Set(ids)) < ids.length;
}

/** The largest number of the sessions on one path through the graph: all of them, when no two may run at once. */
function longestChain(state: GroupState, plan: Plan, among: ReadonlySet<SessionId>): number {
  const met = new Map<SessionId, number>();
  let longest = 0;
  for (const id of plan.graph.order) {
    let most = 0;
    for (const dependency of dependenciesOf(state, id)) {
      most = Math.max(most, met.get(dependency) ?? 0);
    }
    const count = most + (among.has(id) ? 1 : 0);
    met.set(id, count);
    longest = Math.max(longest, count);
  }
  return longest;
}

const none: ReadonlySet<string> = new Set();

function inPlace(state: GroupState, plan: Plan): Set<SessionId> {
  const sessions = new Set<SessionId>();
  const below = new Map<SessionId, ReadonlySet<string>>();
  for (const id of plan.graph.order) {
    const record = state.sessions.get(id);
    if (record === undefined) continue;
    const { repository, dependsOn } = record.definition;
    let repositories: ReadonlySet<string> = none;
    for (const dependency of dependsOn) {
      const more = below.get(dependency) ?? none;
      if (more.size > 0) repositories = repositories.size === 0 ? more : repositories.union(more);
    }
    if (repository !== undefined) {
      const builds = repositories.has(repository);
      if (builds) sessions.add(id);
      if (!builds && isInPlace(record)) repositories = repositories.union(new Set([repository]));
    }
    if (repositories.size > 0) below.set(id, repositories);
  }
  return sessions;
}

function isInPlace({ isolated, definition }: SessionRecord): boolean {
  return isolated === undefined ? definition.isolate === 'none' : !isolated;
}

/**
 * The completed sessions on whose work the session builds: its nearest ancestors in the same repository, also through
 * sessions of other repositories. None of them is an ancestor of another. Those without `work` in their state worked in
 * the checkout itself. `repository`: another one than its own, on whose work it builds.
 */
export function baseSessionsOf(
  state: GroupState,
  id: SessionId,
  repository = state.sessions.get(id)?.definition.repository,
): SessionRecord[] {
  const isDone = (other: SessionId) => {
    const { definition, state: session } = state.sessions.get(other) ?? {};
    return definition?.repository === repository && session?.status === 'completed';
  };
  if (repository === undefined) return [];
  const dependencies = (other: SessionId) => dependenciesOf(state, other);
  const met = reachable(dependencies(id), (other) => (isDone(other) ? [] : dependencies(other)));
  const nearest = [...met].filter(isDone);
  const covered = reachable(nearest.flatMap(dependencies), dependencies);
  return [...state.sessions.values()].filter(
    ({ definition: { id: other } }) => nearest.includes(other) && !covered.has(other),
  );
}

/** Repositories other than the session's own in which earlier sessions work. */
export function repositoriesBefore(state: GroupState, id: SessionId): string[] {
  const own = state.sessions.get(id)?.definition.repository;
  const ancestors = reachable(dependenciesOf(state, id), (other) => dependenciesOf(state, other));
  const found = [...ancestors].flatMap((other) => state.sessions.get(other)?.definition.repository ?? []);
  return [...new Set(found)].filter((repository) => repository !== own);
}

function dependenciesOf({ sessions }: GroupState, id: SessionId): readonly SessionId[] {
  return sessions.get(id)?.definition.dependsOn ?? [];
}
