/**
 * The dependency graph of a group's sessions: validation, the path of a cycle, dependents, waves and chain lengths.
 * @dagrejs/graphlib holds the graph; loops here are iterative, so that long chains cannot overflow.
 */
import type { Graph } from '@dagrejs/graphlib';
import { assert, fail, ok, type Result } from './failure.ts';
import type { SessionDefinition, SessionId } from './group.ts';
import { sessionLabel } from './id.ts';

/** Sessions shown at either end of a long cycle's path. */
const pathEndsShown = 8;

type Node = Pick<SessionDefinition, 'id' | 'dependsOn'> & { readonly name?: string };

export interface SessionGraph {
  /** Edges go from a dependency to its dependents. */
  readonly graph: Graph;
  /** Every session after all its dependencies; among equals in order of definition. */
  readonly order: readonly SessionId[];
  /** Number of sessions on the longest path from this one, including itself. */
  readonly chain: ReadonlyMap<SessionId, number>;
  /** Number of sessions on the longest path to this one, without itself. */
  readonly wave: ReadonlyMap<SessionId, number>;
}

/** Loaded on first use: short commands that need no graph would spend a tenth of their time on it. */
function emptyGraph(): Graph {
  const library: typeof import('@dagrejs/graphlib') = require('@dagrejs/graphlib');
  return new library.Graph({ directed: true });
}

/** Fails with `duplicate` (id or name twice), `unknown-dependency`, or `cycle` (with its path). */
export function buildGraph(sessions: readonly Node[]): Result<SessionGraph> {
  const graph = emptyGraph();
  const names = new Map<string, SessionId>();
  const labels = new Map(sessions.map((session) => [session.id, sessionLabel(session.id, session.name)]));
  for (const session of sessions) {
    const twin = session.name === undefined ? undefined : names.get(session.name);
    if (graph.hasNode(session.id) || twin !== undefined) {
      const label = labels.get(session.id) ?? session.id;
      return fail('duplicate', `Two sessions of the group are named ${label}.`, 'Give another --name.');
    }
    graph.setNode(session.id);
    if (session.name !== undefined) names.set(session.name, session.id);
  }
  for (const session of sessions) {
    for (const dependency of session.dependsOn) {
      if (!graph.hasNode(dependency)) {
        return fail(
          'unknown-dependency',
          `Session ${labels.get(session.id)} depends on ${dependency}, which is not in the group.`,
          'Add that session first, or remove the dependency.',
        );
      }
      graph.setEdge(dependency, session.id);
    }
  }
  const order = topologicalOrder(graph, sessions);
  if (order.length < sessions.length) {
    const path = describePath(cyclePath(graph, order).map((id) => labels.get(id) ?? id));
    return fail('cycle', `The dependencies form a cycle: ${path}.`, 'Remove one of these dependencies.');
  }
  return ok({ graph, order, chain: chainLengths(graph, order), wave: waves(graph, order) });
}

export function dependentsOf(graph: Graph, id: SessionId): SessionId[] {
  return graph.successors(id) ?? [];
}

export function allDependentsOf(graph: Graph, id: SessionId): Set<SessionId> {
  return reachable(dependentsOf(graph, id), (dependent) => dependentsOf(graph, dependent));
}

/** All sessions before one with these dependencies. */
export function ancestorsOf(
  sessions: ReadonlyMap<SessionId, Pick<SessionDefinition, 'dependsOn'>>,
  dependsOn: readonly SessionId[],
): Set<SessionId> {
  return reachable(dependsOn, (id) => sessions.get(id)?.dependsOn ?? []);
}

/** These sessions, and all that `next` leads to from them. */
export function reachable(from: readonly SessionId[], next: (id: SessionId) => readonly SessionId[]): Set<SessionId> {
  const found = new Set<SessionId>();
  const open = [...from];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    open.push(...next(id));
  }
  return found;
}

function topologicalOrder(graph: Graph, sessions: readonly Node[]): SessionId[] {
  const unmet = new Map<SessionId, number>();
  const order: SessionId[] = [];
  for (const { id } of sessions) {
    const count = (graph.predecessors(id) ?? []).length;
    unmet.set(id, count);
    if (count === 0) order.push(id);
  }
  for (let index = 0; index < order.length; index += 1) {
    for (const dependent of dependentsOf(graph, order[index] as SessionId)) {
      const left = (unmet.get(dependent) ?? 0) - 1;
      unmet.set(dependent, left);
      if (left === 0) order.push(dependent);
    }
  }
  return order;
}

function chainLengths(graph: Graph, order: readonly SessionId[]): Map<SessionId, number> {
  const chain = new Map<SessionId, number>();
  for (const id of order.toReversed()) {
    let longest = 0;
    for (const dependent of dependentsOf(graph, id)) longest = Math.max(longest, chain.get(dependent) ?? 0);
    chain.set(id, longest + 1);
  }
  return chain;
}

function waves(graph: Graph, order: readonly SessionId[]): Map<SessionId, number> {
  const wave = new Map<SessionId, number>();
  for (const id of order) {
    let deepest = -1;
    for (const dependency of graph.predecessors(id) ?? []) deepest = Math.max(deepest, wave.get(dependency) ?? 0);
    wave.set(id, deepest + 1);
  }
  return wave;
}

/** One cycle, whose last element repeats the first: a session missing in the order depends on another missing one. */
function cyclePath(graph: Graph, order: readonly SessionId[]): SessionId[] {
  const placed = new Set(order);
  const path: SessionId[] = [];
  const position = new Map<SessionId, number>();
  let here = graph.nodes().find((id) => !placed.has(id));
  while (here !== undefined && !position.has(here)) {
    position.set(here, path.length);
    path.push(here);
    here = graph.predecessors(here)?.find((id) => !placed.has(id));
  }
  assert(here !== undefined, 'no cycle in a graph that has no topological order');
  return [...path.slice(position.get(here)), here];
}

/** The path for a sentence; of a very long one only both ends. */
function describePath(labels: readonly string[]): string {
  const hidden = labels.length - 2 * pathEndsShown;
  const shown =
    hidden <= 1 ? labels : [...labels.slice(0, pathEndsShown), `(${hidden} more)`, ...labels.slice(-pathEndsShown)];
  return shown.join(' -> ');
}
