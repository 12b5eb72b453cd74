/**
 * Promises: what bears the mark of an attempt that is over is found and ended, within ten seconds and before a run is
 * over; an attempt that goes on is left alone; a system that cannot be asked ends no run. Processes are made up.
 */
import { beforeEach, expect, test } from 'bun:test';
import type { ProcessIdentity } from '../../src/core/event.ts';
import { LateSearch } from '../../src/runner/late-search.ts';
import type { Processes } from '../../src/world/world.ts';
import { type SteppedWorld, steppedWorld } from '../support/store-world.ts';

let world: SteppedWorld;
/** Attempts by the pids that bear their marks. */
let marked: Map<number, string>;
let searches: number;
let running: string[];
let late: LateSearch;

const name = (pid: number): ProcessIdentity => ({ ...world.machine.self, pid, startTime: String(pid) });

beforeEach(() => {
  const real = steppedWorld();
  marked = new Map();
  searches = 0;
  running = [];
  const madeUp: Partial<Processes> = {
    isAlive: ({ pid }) => marked.has(pid),
    findBranches: () => null,
    findDescendants: () => [],
    findMarked: (_, value) => {
      searches += 1;
      return [...marked].flatMap(([pid, attemptId]) => (attemptId === value ? [name(pid)] : []));
    },
    signal: ({ pid }) => marked.delete(pid),
  };
  world = { ...real, processes: { ...real.processes, ...madeUp } };
  late = new LateSearch(world, (attemptId) => running.includes(attemptId));
});

test('attempts that end within ten seconds are searched for once, each', () => {
  for (const attemptId of ['a', 'b', 'a']) late.add(attemptId);
  world.clock.step(9_999);
  expect(searches).toBe(0);
  marked.set(10, 'a').set(11, 'b').set(12, 'c');
  world.clock.step(1);
  expect([...marked.values()]).toEqual(['c']);
  world.clock.step(60_000);
  expect(world.clock.waiting).toBe(0);
});

test('before the run is over nothing is waited for', async () => {
  late.add('a');
  marked.set(10, 'a');
  const finished = late.finish();
  world.clock.step(10_000);
  await finished;
  expect([...marked.values()]).toEqual([]);
});

test('an attempt whose work is being accepted keeps its command', async () => {
  late.add('a');
  marked.set(10, 'a');
  running = ['a'];
  world.clock.step(10_000);
  await late.finish();
  expect([marked.has(10), late.isIdle]).toEqual([true, false]);
  running = [];
  world.clock.step(10_000);
  expect(marked.has(10)).toBe(false);
});

test('a system that cannot be asked ends no run', async () => {
  world.processes.findMarked = () => {
    throw new Error('EMFILE');
  };
  late.add('a');
  world.clock.step(10_000);
  late.add('b');
  await late.finish();
});
