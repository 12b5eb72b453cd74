/**
 * Which sessions could start now. Results that depend only on the definitions are kept until these change; the rest is
 * computed on demand.
 */
import type { PauseReason } from '../event.ts';
import { assert, type Result } from '../failure.ts';
import { buildGraph, type SessionGraph } from '../graph.ts';
import type { SessionId } from '../group.ts';
import { openItems } from '../item.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { assignWaves } from '../waves.ts';

export interface Plan {
  readonly graph: SessionGraph;
  /** All sessions, the one to start first at the end: longest remaining chain, then order of definition. */
  readonly startOrder: readonly SessionId[];
  /** From 1, of the sessions that belong to a wave; empty without waves. */
  readonly waves: ReadonlyMap<SessionId, number>;
}

interface Known {
  readonly version: number;
  readonly graph: Result<SessionGraph>;
  plan?: Plan;
}

const known = new WeakMap<GroupState, Known>();

function knownOf(state: GroupState): Known {
  const last = known.get(state);
  if (last?.version === state.definitionsVersion) return last;
  const graph = buildGraph([...state.sessions.values()].map(({ definition }) => definition));
  const now: Known = { version: state.definitionsVersion, graph };
  known.set(state, now);
  return now;
}

/** The graph of the present sessions. Fails as buildGraph does. */
export function graphOf(state: GroupState): Result<SessionGraph> {
  return knownOf(state).graph;
}

export function planOf(state: GroupState): Plan {
  const now = knownOf(state);
  const { graph } = now;
  assert(graph.ok, `the stored sessions form no graph: ${graph.ok ? '' : graph.failure.message}`);
  now.plan ??= { graph: graph.value, startOrder: startOrderOf(state, graph.value), waves: wavesOf(state, graph.value) };
  return now.plan;
}

function startOrderOf(state: GroupState, { chain }: SessionGraph): SessionId[] {
  const lengthOf = (id: SessionId): number => chain.get(id) ?? 0;
  // The sort is stable, so that later sessions come first among equals.
  return [...state.sessions.keys()].reverse().sort((a, b) => lengthOf(a) - lengthOf(b));
}

function wavesOf({ group, sessions }: GroupState, { order }: SessionGraph): Plan['waves'] {
  const { waves } = group.config;
  const definitions = [...sessions.values()].map(({ definition }) => definition);
  const sorted = order.flatMap((id) => sessions.get(id)?.definition ?? []);
  return waves === undefined ? new Map() : assignWaves(definitions, sorted, waves);
}

/** It belongs to a wave whose predecessor has no decision yet, and has never started. */
export function isBeforeDecision(state: GroupState, { definition: { id }, attempts }: SessionRecord): boolean {
  return attempts === 0 && (planOf(state).waves.get(id) ?? 0) > state.waves.allowed;
}

export function readySessions(state: GroupState): SessionId[] {
  return planOf(state).startOrder.filter((id) => isReady(state, state.sessions.get(id) as SessionRecord));
}

/**
 * For every incomplete session: the failed direct or indirect dependencies that keep it from starting in this run.
 * Sessions without any are left out. One pass over the graph.
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

/** The user does not want it to start, or to resume by itself. Sessions that stopped on their own are not included. */
export function isHeldBack({ state, queued, items = [] }: SessionRecord): boolean {
  if (queued || openItems({ items }).length > 0) return false;
  return state.status === 'pending' || (state.status === 'paused' && goesOnByItself.has(state.reason));
}

/** Pauses after which a session is queued again at once. */
const goesOnByItself: ReadonlySet<PauseReason> = new Set<PauseReason>([
  'interrupted',
  'host-lost',
  'top-up',
  'disk',
  'limit',
  'transient',
  'stall',
  'not-accepted',
  'waits-for-answer',
]);

/** Its question was answered while no runner worked: it continues with the next run. */
export function isAnsweredPause(record: SessionRecord): boolean {
  return isDecisionPause(record) && openItems(record).length === 0;
}

function isDecisionPause({ state }: SessionRecord): boolean {
  return state.status === 'paused' && (state.reason === 'guard-changed' || state.reason === 'waits-for-answer');
}

/** A session waited for a decision, which has been made: it continues although others of its group have failed. */
export function hasAnswered({ sessions }: GroupState): boolean {
  return [...sessions.values()].some((record) => record.queued && isDecisionPause(record));
}

/** It starts as soon as there is a slot and its group is not blocked. */
export function isReady(state: GroupState, record: SessionRecord): boolean {
  const { status } = record.state;
  if (!record.queued || record.takenOver !== undefined || status === 'running' || status === 'completed') return false;
  if (state.only !== undefined && !state.only.has(record.definition.id)) return false;
  if (isBeforeDecision(state, record)) return false;
  return !state.group.config.respectDependencies || record.definition.dependsOn.every((id) => isCompleted(state, id));
}

function isCompleted({ sessions }: GroupState, id: SessionId): boolean {
  return sessions.get(id)?.state.status === 'completed';
}

export function unmetOf(state: GroupState, { definition }: SessionRecord): readonly SessionId[] {
  if (!state.group.config.respectDependencies) return [];
  return definition.dependsOn.filter((id) => !isCompleted(state, id));
}

/** Number of sessions on the longest chain that waits for this one, including itself. */
export function chainOf(state: GroupState, id: SessionId): number {
  return planOf(state).graph.chain.get(id) ?? 0;
}
