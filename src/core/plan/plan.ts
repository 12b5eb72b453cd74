/**
 * The plan of a run: which sessions could start now, kept up to date event by event, so that asking costs the same
 * in a group of ten and of ten thousand. Rebuilt only when sessions or dependencies change.
 */
import type { PauseReason } from '../event.ts';
import { assert, type Result } from '../failure.ts';
import { buildGraph, dependentsOf, type SessionGraph } from '../graph.ts';
import type { SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';

export interface Plan {
  readonly version: number;
  readonly graph: SessionGraph;
  /** Position in which sessions were added; breaks ties. */
  readonly position: ReadonlyMap<SessionId, number>;
  /** Dependencies that are not completed. */
  readonly unmet: Map<SessionId, number>;
  readonly completed: Set<SessionId>;
  /** Startable sessions, the one to start first at the end. */
  readonly ready: SessionId[];
}

const graphs = new WeakMap<GroupState, { readonly version: number; readonly graph: Result<SessionGraph> }>();

/** The graph of the present sessions, built once however often it is asked for. Fails as buildGraph does. */
export function graphOf(state: GroupState): Result<SessionGraph> {
  const known = graphs.get(state);
  if (known?.version === state.definitionsVersion) return known.graph;
  const graph = buildGraph([...state.sessions.values()].map(({ definition }) => definition));
  graphs.set(state, { version: state.definitionsVersion, graph });
  return graph;
}

const plans = new WeakMap<GroupState, Plan>();

/** The plan for the present state. Costs time only in proportion to what changed since the last call. */
export function planOf(state: GroupState): Plan {
  const known = plans.get(state);
  if (known && known.version === state.definitionsVersion) {
    for (const id of state.touched) update(known, state, id);
    state.touched.clear();
    return known;
  }
  const plan = build(state);
  plans.set(state, plan);
  state.touched.clear();
  return plan;
}

/**
 * For every session that is not completed: the failed ones, direct or indirect dependencies, that keep it from
 * starting in this run. Sessions without any are left out. One walk over the graph, whatever its shape.
 */
export function allBlockers(state: GroupState, plan: Plan): Map<SessionId, readonly SessionId[]> {
  const found = new Map<SessionId, readonly SessionId[]>();
  if (state.counts.failed === 0) return found;
  for (const id of plan.graph.order) {
    const record = state.sessions.get(id);
    if (record === undefined || record.state.status === 'completed') continue;
    const culprits = new Set<SessionId>();
    for (const dependency of record.definition.dependsOn) {
      if (willNotRun(state, dependency)) culprits.add(dependency);
      else for (const culprit of found.get(dependency) ?? []) culprits.add(culprit);
    }
    if (culprits.size > 0) found.set(id, [...culprits].sort());
  }
  return found;
}

/** Failed, and not to be retried in this run. */
export function willNotRun(state: GroupState, id: SessionId): boolean {
  const record = state.sessions.get(id);
  return record?.state.status === 'failed' && !record.queued;
}

/** A user does not want it to start, or to go on by itself. What stopped for good on its own is not meant. */
export function isHeldBack({ state, queued }: SessionRecord): boolean {
  if (queued) return false;
  return state.status === 'pending' || (state.status === 'paused' && goesOnByItself.has(state.reason));
}

/** Pauses after which a session is queued again at once. */
const goesOnByItself: ReadonlySet<PauseReason> = new Set<PauseReason>([
  'interrupted',
  'host-lost',
  'slice',
  'disk',
  'limit',
  'transient',
  'stall',
  'not-accepted',
]);

function build(state: GroupState): Plan {
  const graph = graphOf(state);
  assert(graph.ok, `the stored sessions form no graph: ${graph.ok ? '' : graph.failure.message}`);
  const position = new Map([...state.sessions.keys()].map((id, index) => [id, index]));
  const completed = new Set<SessionId>();
  const unmet = new Map<SessionId, number>();
  for (const [id, record] of state.sessions) {
    if (record.state.status === 'completed') completed.add(id);
  }
  for (const [id, record] of state.sessions) {
    unmet.set(id, new Set(record.definition.dependsOn.filter((dependency) => !completed.has(dependency))).size);
  }
  const plan: Plan = { version: state.definitionsVersion, graph: graph.value, position, unmet, completed, ready: [] };
  for (const [id, record] of state.sessions) if (isReady(plan, state, id, record)) plan.ready.push(id);
  plan.ready.sort((a, b) => startsLater(plan, a, b));
  return plan;
}

function update(plan: Plan, state: GroupState, id: SessionId): void {
  const record = state.sessions.get(id);
  if (!record) return;
  const isCompleted = record.state.status === 'completed';
  if (isCompleted && !plan.completed.has(id)) {
    plan.completed.add(id);
    for (const dependent of dependentsOf(plan.graph.graph, id)) {
      plan.unmet.set(dependent, (plan.unmet.get(dependent) ?? 0) - 1);
      place(plan, state, dependent);
    }
  }
  place(plan, state, id);
}

function place(plan: Plan, state: GroupState, id: SessionId): void {
  const record = state.sessions.get(id);
  const wanted = record !== undefined && isReady(plan, state, id, record);
  const index = indexFor(plan, id);
  const present = plan.ready[index] === id;
  if (wanted && !present) plan.ready.splice(index, 0, id);
  if (!wanted && present) plan.ready.splice(index, 1);
}

/** It starts as soon as there is room and nothing holds its group. */
export function isReady(plan: Plan, state: GroupState, id: SessionId, record: SessionRecord): boolean {
  const { status } = record.state;
  if (!record.queued || record.takenOver !== undefined || status === 'running' || status === 'completed') return false;
  if (state.only !== undefined && !state.only.has(id)) return false;
  return !state.group.config.respectDependencies || plan.unmet.get(id) === 0;
}

/** Number of sessions on the longest chain that waits for this one, itself included. */
export function chainOf(state: GroupState, id: SessionId): number {
  return planOf(state).graph.chain.get(id) ?? 0;
}

/** Negative when `a` is to be started after `b`: shorter remaining chain, then added later. */
function startsLater(plan: Plan, a: SessionId, b: SessionId): number {
  const byChain = (plan.graph.chain.get(a) ?? 0) - (plan.graph.chain.get(b) ?? 0);
  return byChain !== 0 ? byChain : (plan.position.get(b) ?? 0) - (plan.position.get(a) ?? 0);
}

/** The place of `id` in the sorted ready list, by binary search. */
function indexFor(plan: Plan, id: SessionId): number {
  let low = 0;
  let high = plan.ready.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (startsLater(plan, plan.ready[middle] as SessionId, id) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
