/**
 * Promises: what tools left running is ended while claude still holds it, also what is just being started; what claude
 * needs itself is left to claude; what was once seen and still lives is ended after claude. Processes are made up.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../../src/store/paths.ts';
import type { Processes, SignalName } from '../../../src/system/world.ts';
import { AttemptProcesses } from '../../../src/worker/attempt-processes.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder } from '../../support/store-world.ts';

const claude = 10;
let folder: ReturnType<typeof temporaryFolder>;
let world: SteppedWorld;
/** Parents of what lives. */
let parents: Map<number, number>;
let signals: string[];
let deaf: Set<number>;
/** What a process starts when it is told to end. */
let heirs: Map<number, number>;
/** What has come to this process; null where the system does not bring it. */
let orphans: number[] | null;
/** Attempts of which the marked processes are to be looked for later. */
let later: string[];
/** How often marked processes were looked for among all. */
let searches: number;
let paths: SessionPaths;
let processes: AttemptProcesses;

const name = (pid: number): ProcessIdentity => ({ ...world.machine.self, pid, startTime: String(pid) });
const childrenOf = (pid: number): number[] =>
  [...parents].flatMap(([child, parent]) => (parent === pid ? [child] : []));
const below = (pid: number): number[] => childrenOf(pid).flatMap((child) => [child, ...below(child)]);

function signal({ pid }: ProcessIdentity, kind: SignalName): boolean {
  if (!parents.has(pid)) return false;
  signals.push(`${kind} ${pid}`);
  if (kind === 'SIGTERM' && deaf.has(pid)) return true;
  const heir = heirs.get(pid);
  if (heir !== undefined) parents.set(heir, pid);
  // Orphans go to claude; when that is gone, to nobody who is known.
  for (const child of childrenOf(pid)) parents.set(child, pid === claude ? 1 : claude);
  parents.delete(pid);
  return true;
}

beforeEach(() => {
  folder = temporaryFolder();
  parents = new Map([[claude, 1]]);
  signals = [];
  searches = 0;
  orphans = null;
  deaf = new Set();
  heirs = new Map();
  const real = steppedWorld();
  const madeUp: Partial<Processes> = {
    isAlive: ({ pid }) => parents.has(pid),
    findBranches: ({ pid }) =>
      parents.has(pid) ? childrenOf(pid).map((child) => [child, ...below(child)].map(name)) : null,
    findDescendants: (pid) => below(pid).map(name),
    findOrphans: () => orphans?.map(name) ?? null,
    findContained: () => [],
    endContained: () => true,
    limitsHit: () => [],
    findMarked: () => {
      searches += 1;
      return [];
    },
    signal,
  };
  world = { ...real, processes: { ...real.processes, ...madeUp } };
  paths = sessionPaths(groupPaths(folder.path, groupId), sid(1));
  mkdirSync(paths.folder, { recursive: true });
  later = [];
  processes = new AttemptProcesses(world, { attemptId: 'the-attempt', paths, searchLater: (id) => later.push(id) });
  processes.worker = name(claude);
});
afterEach(() => {
  processes.leave();
  folder.remove();
});

test('claude alone is told at once, and killed when it does not end', () => {
  deaf.add(claude);
  processes.noteOwn();
  processes.endIdle();
  expect(signals).toEqual(['SIGTERM 10']);
  world.clock.step(7_999);
  expect(signals).toEqual(['SIGTERM 10']);
  world.clock.step(1);
  expect(signals).toEqual(['SIGTERM 10', 'SIGKILL 10']);
});

test('what tools left goes first, and what claude needs itself stays with what that started', () => {
  parents.set(11, claude);
  processes.noteOwn();
  parents.set(12, 11).set(20, claude).set(21, 20);
  processes.endIdle();
  world.clock.step(100);
  expect(signals).toEqual(['SIGTERM 20', 'SIGTERM 21', 'SIGTERM 10']);
  expect([...parents.keys()]).toEqual([11, 12]);
});

test('one after another that starts the next when it ends gets away with nothing', () => {
  processes.noteOwn();
  parents.set(20, claude);
  heirs.set(20, 21).set(21, 22);
  processes.endIdle();
  world.clock.step(100);
  expect(signals).toEqual(['SIGTERM 20', 'SIGTERM 21', 'SIGTERM 22', 'SIGTERM 10']);
  expect([...parents.keys()]).toEqual([]);
});

test.each([1, 2, 3])(
  'what list %d lacks, because it was read just while the parent of a tool ended, goes first all the same',
  (torn) => {
    processes.noteOwn();
    parents.set(20, claude);
    // Still there after the first signal.
    deaf.add(20);
    const { findBranches } = world.processes;
    let lists = 0;
    world.processes.findBranches = (worker) => {
      lists += 1;
      return lists === torn ? [] : findBranches(worker);
    };
    processes.endIdle();
    world.clock.step(400);
    expect(signals).toEqual(['SIGTERM 20', 'SIGKILL 20', 'SIGTERM 10']);
  },
);

test('a deaf tool is killed after 300 ms, and claude is told then', () => {
  processes.noteOwn();
  parents.set(20, claude).set(30, claude);
  deaf.add(20);
  deaf.add(30);
  processes.endIdle();
  world.clock.step(290);
  expect(signals).toEqual(['SIGTERM 20', 'SIGTERM 30']);
  deaf.add(claude);
  world.clock.step(50);
  expect(signals.slice(2)).toEqual(['SIGKILL 20', 'SIGKILL 30', 'SIGTERM 10']);
});

test('what claude brings back again and again does not keep it for ever', () => {
  processes.noteOwn();
  for (let pid = 20; pid < 400; pid += 1) heirs.set(pid, pid + 1);
  parents.set(20, claude);
  processes.endIdle();
  world.clock.step(2_900);
  expect(signals).not.toContain('SIGTERM 10');
  world.clock.step(200);
  expect(signals).toContain('SIGTERM 10');
});

test('of one that was taken over nobody knows what it needs: it is told at once, the rest is ended later', async () => {
  parents.set(20, claude);
  processes.endIdle();
  expect(signals).toEqual(['SIGTERM 10']);
  const reaped = processes.reap();
  world.clock.step(1_000);
  expect(await reaped).toBe(1);
  expect(signals).toEqual(['SIGTERM 10', 'SIGTERM 20']);
});

test('what was seen below claude is ended after it, also when it had left the tree before', async () => {
  processes.noteOwn();
  parents.set(20, claude);
  processes.look();
  parents.set(20, 1);
  processes.look();
  signal(name(claude), 'SIGKILL');
  const reaped = processes.reap();
  world.clock.step(1_000);
  expect(await reaped).toBe(1);
  expect(signals).toEqual(['SIGKILL 10', 'SIGTERM 20']);
});

test('all processes are looked at only when the worker has ended, or when nobody tells what is below it', async () => {
  parents.set(20, claude);
  expect(processes.look()).toEqual([name(claude), name(20)]);
  expect(searches).toBe(0);
  const { findBranches } = world.processes;
  world.processes.findBranches = () => null;
  expect(processes.look()).toEqual([name(claude), name(20)]);
  expect(searches).toBe(1);
  world.processes.findBranches = findBranches;
  signal(name(20), 'SIGKILL');
  signal(name(claude), 'SIGKILL');
  expect(await processes.reap()).toBe(0);
  expect(searches).toBe(2);
});

test('where the system tells what a worker has left, what bears its mark elsewhere is looked for later', async () => {
  orphans = [];
  processes.look();
  signal(name(claude), 'SIGKILL');
  expect(await processes.reap()).toBe(0);
  expect(searches).toBe(0);
  expect(later).toEqual(['the-attempt']);
});

test('one that was told to end and is gone is not looked for among all: what it leaves comes to us', () => {
  const endsUnheard = (isInherited: boolean) => {
    orphans = isInherited ? [] : null;
    processes.endIdle();
    world.clock.step(1_000);
    return searches;
  };
  expect(endsUnheard(true)).toBe(0);
  parents.set(claude, 1);
  processes.leave();
  processes = new AttemptProcesses(world, {
    attemptId: 'another',
    paths: sessionPaths(groupPaths('/', groupId), sid(2)),
  });
  processes.worker = name(claude);
  expect(endsUnheard(false)).toBeGreaterThan(0);
});

test.each<[string, () => void]>([
  ['something has come to us', () => orphans?.push(30)],
  ['it was started by an earlier runner', () => processes.recall()],
  ['what bore its mark lives elsewhere', () => parents.set(20, 1)],
])('a worker may have left something when %s', async (_, change) => {
  orphans = [];
  parents.set(20, claude);
  processes.look();
  parents.delete(20);
  change();
  signal(name(claude), 'SIGKILL');
  const isLeft = parents.has(20);
  const reaped = processes.reap();
  world.clock.step(1_000);
  expect(await reaped).toBe(isLeft ? 1 : 0);
  expect(searches).toBeGreaterThan(0);
});

test('what was seen is noted once, and again when something new is seen', () => {
  const { writeAtomic } = world.files;
  let isFull = false;
  let notes = 0;
  world.files.writeAtomic = (path, text) => {
    if (!path.endsWith('processes.json')) return writeAtomic(path, text);
    if (isFull) throw new Error('ENOSPC');
    notes += 1;
    writeAtomic(path, text);
  };
  const looksAfter = (change: () => void) => {
    change();
    processes.look();
    processes.look();
    return notes;
  };
  expect(looksAfter(() => {})).toBe(0);
  expect(looksAfter(() => parents.set(20, claude))).toBe(1);
  expect(looksAfter(() => parents.set(21, 20))).toBe(2);
  expect(looksAfter(() => parents.delete(21))).toBe(2);
  isFull = true;
  expect(looksAfter(() => parents.set(22, 20))).toBe(2);
  isFull = false;
  expect(looksAfter(() => {})).toBe(3);
});

test('a FIFO in the place of the note keeps nobody waiting who takes the attempt over', () => {
  world.fifos.create(paths.processes);
  processes.recall();
  expect(processes.look()).toEqual([name(claude)]);
  parents.set(20, claude);
  processes.look();
  expect(JSON.parse(world.files.readText(paths.processes) ?? '')).toMatchObject({ processes: [{}, { pid: 20 }] });
});

test('in the middle of its work claude goes first: a tool that ends before it would be an answer to the model', () => {
  processes.noteOwn();
  parents.set(20, claude);
  processes.terminate();
  expect(signals).toEqual(['SIGTERM 10']);
});

test('one that is told already is not told again, and its last hooks are left to it', () => {
  deaf.add(claude);
  processes.noteOwn();
  processes.endIdle();
  parents.set(20, claude);
  processes.terminate();
  processes.endIdle();
  world.clock.step(7_999);
  expect(signals).toEqual(['SIGTERM 10']);
  world.clock.step(1);
  expect(signals).toEqual(['SIGTERM 10', 'SIGKILL 10']);
});

test('whoever lets go signals nobody any more', () => {
  processes.noteOwn();
  parents.set(20, claude);
  deaf.add(20);
  processes.endIdle();
  processes.leave();
  world.clock.step(20_000);
  expect(signals).toEqual(['SIGTERM 20']);
  expect(world.clock.waiting).toBe(0);
});
