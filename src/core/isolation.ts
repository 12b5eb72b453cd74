/**
 * Which sessions work in a git worktree of their own, and which have to take turns in the project folder itself. A
 * session says so itself; else it gets a worktree as soon as two sessions that may run at once share its repository.
 */
import type { IsolationMode, SessionId } from './group.ts';
import { type Plan, planOf } from './plan.ts';
import type { SessionRecord } from './session-state.ts';
import type { GroupState } from './state.ts';

/** Where the session works, or would work if it were started now. Fixed by its first attempt. */
export function isolationOf(state: GroupState, id: SessionId): IsolationMode {
  const record = state.sessions.get(id);
  if (record === undefined) return 'none';
  if (record.isolated !== undefined) return record.isolated ? 'worktree' : 'none';
  const { isolate, repository } = record.definition;
  if (isolate !== undefined) return isolate;
  if (repository === undefined) return 'none';
  // Whoever works beside one that is isolated, or after it, needs its commits and not the checkout.
  if (state.isolatedRepositories.has(repository)) return 'worktree';
  return mayMeet(state, planOf(state), repository) ? 'worktree' : 'none';
}

/** Repositories in whose checkouts a session works right now, so that no other one may begin there. */
export function checkoutsInUse(state: GroupState): Set<string> {
  const used = new Set<string>();
  if (state.group.config.shareCheckouts) return used;
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    const { repository } = record.definition;
    if (repository !== undefined && record.isolated !== true) used.add(repository);
  }
  return used;
}

interface Meetings {
  readonly version: number;
  readonly completed: number;
  readonly known: Map<string, boolean>;
}

const meetings = new WeakMap<GroupState, Meetings>();

/** The same, found out once for all sessions of a repository as long as nothing changes that it depends on. */
function mayMeet(state: GroupState, plan: Plan, repository: string): boolean {
  const { definitionsVersion: version, counts } = state;
  let last = meetings.get(state);
  if (last?.version !== version || last.completed !== counts.completed) {
    last = { version, completed: counts.completed, known: new Map() };
    meetings.set(state, last);
  }
  const known = last.known.get(repository) ?? findMeeting(state, plan, repository);
  last.known.set(repository, known);
  return known;
}

/** Whether two sessions of the repository that are not completed may run at once. */
function findMeeting(state: GroupState, plan: Plan, repository: string): boolean {
  const open = new Set<SessionId>();
  for (const [id, { definition, state: session }] of state.sessions) {
    if (definition.repository === repository && session.status !== 'completed') open.add(id);
  }
  if (open.size < 2) return false;
  return !state.group.config.respectDependencies || longestChain(state, plan, open) < open.size;
}

/** How many of the sessions lie on one path through the graph, at most: all of them, when none may run at once. */
function longestChain(state: GroupState, plan: Plan, among: ReadonlySet<SessionId>): number {
  const met = new Map<SessionId, number>();
  let longest = 0;
  for (const id of plan.graph.order) {
    let most = 0;
    for (const dependency of state.sessions.get(id)?.definition.dependsOn ?? []) {
      most = Math.max(most, met.get(dependency) ?? 0);
    }
    const count = most + (among.has(id) ? 1 : 0);
    met.set(id, count);
    longest = Math.max(longest, count);
  }
  return longest;
}

/**
 * The completed sessions on whose work the session builds: its nearest ancestors in the same repository, also through
 * sessions of other repositories. None of them is an ancestor of another.
 */
export function groundworkOf(state: GroupState, id: SessionId): SessionRecord[] {
  const record = state.sessions.get(id);
  const repository = record?.definition.repository;
  if (record === undefined || repository === undefined) return [];
  const found = new Set<SessionId>();
  const seen = new Set<SessionId>();
  const open = [...record.definition.dependsOn];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    const ancestor = state.sessions.get(next);
    if (ancestor === undefined) continue;
    if (hasWork(ancestor, repository)) found.add(next);
    else open.push(...ancestor.definition.dependsOn);
  }
  const covered = new Set([...found].flatMap((other) => [...ancestorsOf(state, other)]));
  return [...state.sessions.values()].filter(
    ({ definition }) => found.has(definition.id) && !covered.has(definition.id),
  );
}

function hasWork({ definition, state: session }: SessionRecord, repository: string): boolean {
  return definition.repository === repository && session.status === 'completed' && session.work !== undefined;
}

function ancestorsOf(state: GroupState, id: SessionId): Set<SessionId> {
  const seen = new Set<SessionId>();
  const open = [...(state.sessions.get(id)?.definition.dependsOn ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(state.sessions.get(next)?.definition.dependsOn ?? []));
  }
  return seen;
}
