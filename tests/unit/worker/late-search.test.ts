/**
 * Promises: what bears the mark of an attempt that is over is found and ended, within ten seconds and before a run is
 * over; what cannot be ended is told, once; an attempt that goes on is left alone; a system that cannot be asked ends
 * no run. Processes are made up.
 */
import { beforeEach, expect, test } from 'bun:test';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { Processes } from '../../../src/system/world.ts';
import { LateSearch } from '../../../src/worker/late-search.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { type SteppedWorld, steppedWorld } from '../../support/store-world.ts';

let world: SteppedWorld;
/** Attempts by the pids that bear their marks. */
let marked: Map<number, string>;
let searches: number;
/** Whatever is signalled lives on. */
let isStubborn: boolean;
let told: (readonly [sessionId: string, attemptId: string])[];
let log: CoreLog;
let late: LateSearch;

const name = (pid: number): ProcessIdentity => ({ ...world.machine.self, pid, startTime: String(pid) });

beforeEach(() => {
  const real = steppedWorld();
  marked = new Map();
  searches = 0;
  isStubborn = false;
  told = [];
  log = new CoreLog().addSession(sessionDefinition(1)).run();
  const madeUp: Partial<Processes> = {
    isAlive: ({ pid }) => marked.has(pid),
    findBranches: () => null,
    findDescendants: () => [],
    findContained: () => [],
    endContained: () => true,
    limitsHit: () => [],
    findMarked: (_, value) => {
      searches += 1;
      return [...marked].flatMap(([pid, attemptId]) => (attemptId === value ? [name(pid)] : []));
    },
    signal: ({ pid }) => isStubborn || marked.delete(pid),
  };
  world = { ...real, processes: { ...real.processes, ...madeUp } };
  late = new LateSearch(world, log, (sessionId, attemptId) => told.push([sessionId, attemptId]));
});

test('attempts that end within ten seconds are searched for once, each', () => {
  for (const attempt of ['a', 'b', 'a']) late.add(sid(1), attempt);
  world.clock.step(9_999);
  expect(searches).toBe(0);
  marked.set(10, 'a').set(11, 'b').set(12, 'c');
  world.clock.step(1);
  expect([...marked.values()]).toEqual(['c']);
  world.clock.step(60_000);
  expect(world.clock.waiting).toBe(0);
});

test('before the run is over nothing is waited for', async () => {
  late.add(sid(1), 'a');
  marked.set(10, 'a');
  const finished = late.finish();
  world.clock.step(10_000);
  await finished;
  expect([...marked.values()]).toEqual([]);
});

test('an attempt whose work is being accepted keeps its command', async () => {
  const attempt = attemptId(sid(1), 1);
  log.start(sid(1));
  late.add(sid(1), attempt);
  marked.set(10, attempt);
  world.clock.step(10_000);
  await late.finish();
  expect([marked.has(10), late.isIdle]).toEqual([true, false]);
  log.complete(sid(1));
  world.clock.step(10_000);
  expect(marked.has(10)).toBe(false);
});

test('what cannot be ended is told, once, and before the search is said to be over', async () => {
  isStubborn = true;
  late.add(sid(1), 'a');
  marked.set(10, 'a');
  world.clock.step(10_000);
  while (!late.isIdle) {
    expect(told).toEqual([]);
    world.clock.step(1_000);
    await Promise.resolve();
  }
  expect(told).toEqual([[sid(1), 'a']]);
  await late.finish();
  expect(told).toHaveLength(1);
});

test('what was ended is no news', async () => {
  late.add(sid(1), 'a');
  marked.set(10, 'a');
  await late.finish();
  expect([told, marked.size]).toEqual([[], 0]);
});

test('a system that cannot be asked ends no run', async () => {
  world.processes.findMarked = () => {
    throw new Error('EMFILE');
  };
  late.add(sid(1), 'a');
  world.clock.step(10_000);
  late.add(sid(1), 'b');
  await late.finish();
});
