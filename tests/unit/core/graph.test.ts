/**
 * Promises: a group with an invalid dependency graph is refused by session labels, and a reported cycle is real.
 * Order, chains and waves match their definitions, even for very large and deep graphs.
 */
import { describe, expect, test } from 'bun:test';
import { allDependentsOf, buildGraph, type SessionGraph } from '../../../src/core/graph.ts';
import { sid } from '../../support/core-events.ts';
import { everyGraph } from '../../support/core-exhaustive.ts';

interface Node {
  readonly id: string;
  readonly name?: string;
  readonly dependsOn: readonly string[];
}

function nodes(dependsOn: readonly (readonly number[])[]): Node[] {
  return dependsOn.map((dependencies, index) => ({ id: sid(index), dependsOn: dependencies.map(sid) }));
}

function graphOf(dependsOn: readonly (readonly number[])[]): SessionGraph {
  const result = buildGraph(nodes(dependsOn));
  if (!result.ok) throw new Error(result.failure.message);
  return result.value;
}

function failureOf(sessions: readonly Node[]) {
  const result = buildGraph(sessions);
  return result.ok ? null : result.failure;
}

/** The labels in the message about a cycle. */
function cycleIn(sessions: readonly Node[]): string[] {
  const failure = failureOf(sessions);
  expect(failure?.reason).toBe('cycle');
  return (failure?.message.match(/cycle: (.*)\.$/)?.[1] ?? '').split(' -> ');
}

/** Every label depends on the next one, and the last one on the first. */
function isCycle(sessions: readonly Node[], labels: readonly string[]): boolean {
  const byLabel = new Map(sessions.map((session) => [session.name ?? session.id.slice(0, 3), session]));
  const depends = (from: string, to: string) =>
    byLabel.get(from)?.dependsOn.includes(byLabel.get(to)?.id as string) === true;
  const simple = new Set(labels.slice(1)).size === labels.length - 1;
  return (
    simple &&
    labels.length >= 2 &&
    labels[0] === labels.at(-1) &&
    labels.slice(1).every((label, index) => depends(labels[index] as string, label))
  );
}

describe('refused graphs', () => {
  test('a graph with a duplicate session id is refused', () => {
    const failure = failureOf([...nodes([[]]), ...nodes([[]])]);
    expect(failure).toMatchObject({ reason: 'duplicate', message: 'Two sessions of the group are named 000.' });
  });

  test('a graph with a duplicate session name is refused', () => {
    const named = [0, 1].map((number) => ({ id: sid(number), name: 'lib', dependsOn: [] }));
    expect(failureOf(named)).toMatchObject({
      reason: 'duplicate',
      message: 'Two sessions of the group are named lib.',
    });
  });

  test('a graph with an unknown dependency is refused', () => {
    const failure = failureOf([{ id: sid(1), name: 'app', dependsOn: [sid(7)] }]);
    expect(failure?.reason).toBe('unknown-dependency');
    expect(failure?.message).toBe(`Session app depends on ${sid(7)}, which is not in the group.`);
  });

  test('a graph with a session that depends on itself is refused', () => {
    expect(cycleIn(nodes([[], [1]]))).toEqual(['001', '001']);
  });

  test('a cycle is reported in dependency order and without the sessions around it', () => {
    const sessions = [
      { id: sid(1), name: 'before', dependsOn: [] },
      { id: sid(2), name: 'a', dependsOn: [sid(1), sid(4)] },
      { id: sid(3), name: 'b', dependsOn: [sid(2)] },
      { id: sid(4), name: 'c', dependsOn: [sid(3)] },
      { id: sid(5), name: 'behind', dependsOn: [sid(4)] },
    ];
    const path = cycleIn(sessions);
    expect(path).toHaveLength(4);
    expect(path.toSorted().slice(0, 1)).toEqual(['a']);
    expect(isCycle(sessions, path)).toBe(true);
  });

  test('every directed graph of three sessions is either valid or reported with a real cycle', () => {
    const pairs = [0, 1, 2].flatMap((from) => [0, 1, 2].map((to) => [from, to] as const));
    const acyclic = new Set(everyGraph(3, false).map((graph) => JSON.stringify(graph)));
    for (let mask = 0; mask < 2 ** pairs.length; mask += 1) {
      const dependsOn: number[][] = [[], [], []];
      pairs.forEach(([from, to], bit) => {
        if (mask & (1 << bit)) dependsOn[from]?.push(to);
      });
      const sessions = nodes(dependsOn);
      if (acyclic.has(JSON.stringify(dependsOn))) expect(failureOf(sessions)).toBeNull();
      else expect([dependsOn, isCycle(sessions, cycleIn(sessions))]).toEqual([dependsOn, true]);
    }
  });
});

test('independent sessions keep the order in which they were added', () => {
  expect(graphOf([[2], [], [], []]).order).toEqual([1, 2, 3, 0].map(sid));
});

test('order, chain, wave and dependents are right for every group of four sessions', () => {
  for (const dependsOn of everyGraph(4, false)) {
    const { order, chain, wave, graph } = graphOf(dependsOn);
    const chainFrom = (node: number): number =>
      1 + Math.max(0, ...[0, 1, 2, 3].filter((other) => dependsOn[other]?.includes(node)).map(chainFrom));
    const waveOf = (node: number): number => 1 + Math.max(-1, ...(dependsOn[node] ?? []).map(waveOf));
    const below = (node: number): number[] =>
      [0, 1, 2, 3].filter((other) => dependsOn[other]?.includes(node)).flatMap((other) => [other, ...below(other)]);
    expect(order.toSorted()).toEqual([0, 1, 2, 3].map(sid));
    for (const node of [0, 1, 2, 3]) {
      const later = (dependsOn[node] ?? []).every((other) => order.indexOf(sid(other)) < order.indexOf(sid(node)));
      expect([dependsOn, later]).toEqual([dependsOn, true]);
      expect([chain.get(sid(node)), wave.get(sid(node))]).toEqual([chainFrom(node), waveOf(node)]);
      expect(allDependentsOf(graph, sid(node))).toEqual(new Set(below(node).map(sid)));
    }
  }
});
