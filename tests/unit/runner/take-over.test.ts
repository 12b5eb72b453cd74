/**
 * Promises: a new runner treats the workers of an earlier one by what is certain: a worker with model output is never
 * started again, one without is. Their output is read to the last byte, and no process survives them. Processes are
 * fake.
 */
import { beforeEach, expect, test } from 'bun:test';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import type { ProcessIdentity } from '../../../src/core/event.ts';
import type { Attempt } from '../../../src/core/session-state.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import type { Processes, World } from '../../../src/system/world.ts';
import { classifyUnfinished } from '../../../src/worker/adopt.ts';
import { terminatePartialLine } from '../../../src/worker/local-attempt.ts';
import { reap } from '../../../src/worker/reap.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { type SteppedWorld, steppedWorld } from '../../support/store-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const folder = withTempFolder();
let world: SteppedWorld;
let transcript: string;
let paths: ReturnType<typeof sessionPaths>;

beforeEach(() => {
  world = steppedWorld();
  paths = sessionPaths(groupPaths(folder.path, groupId), sid(1));
  mkdirSync(paths.folder, { recursive: true });
  transcript = paths.transcript;
});

const mark = 'the-attempt';
const identity = (pid: number, startTime = String(pid)): ProcessIdentity => {
  const { host, bootId } = world.machine.self;
  return { pid, startTime, host, bootId };
};

interface MadeUp {
  readonly pid: number;
  /** Null once the parent has ended, when nothing else leads to the process. */
  parent?: number | null;
  readonly marked?: boolean;
  readonly startTime?: string;
  /** Only SIGKILL ends it. */
  readonly isDeaf?: boolean;
  /** Processes that it starts when it receives SIGTERM. */
  readonly heirs?: readonly MadeUp[];
}

/** A world with only these processes; `living` are the pids that are left. */
function withProcesses(...all: MadeUp[]): { world: World; living: () => number[] } {
  const present = new Map(all.map((process) => [process.pid, { ...process }]));
  const name = ({ pid, startTime }: MadeUp) => identity(pid, startTime);
  const lives = ({ pid }: ProcessIdentity) => present.has(pid);
  const below = (pid: number): MadeUp[] =>
    [...present.values()].filter(({ parent }) => parent === pid).flatMap((child) => [child, ...below(child.pid)]);
  const processes: Processes = {
    ...world.processes,
    isAlive: lives,
    attach: (of) => (lives(of) ? { identity: of, onExit: () => {} } : null),
    findContained: () => [],
    endContained: () => true,
    limitsHit: () => [],
    findMarked: (_, value) => [...present.values()].filter(({ marked }) => marked && value === mark).map(name),
    findDescendants: (roots) => roots.flatMap(({ pid }) => below(pid).map(name)),
    signal(of, signal) {
      const process = present.get(of.pid);
      if (process === undefined || (process.isDeaf && signal !== 'SIGKILL')) return process !== undefined;
      present.delete(of.pid);
      for (const child of present.values()) if (child.parent === of.pid) child.parent = null;
      for (const heir of process.heirs ?? []) present.set(heir.pid, { ...heir });
      return true;
    },
  };
  // Signals take effect at once, so there is nothing to wait for.
  const after = (_: number, action: () => void) => {
    queueMicrotask(action);
    return () => {};
  };
  const clock = { now: () => 0, after };
  return { world: { ...world, clock, processes }, living: () => [...present.keys()] };
}

const attempt = (process?: ProcessIdentity): Attempt => ({
  ...{ id: mark, number: 1, kind: 'start', offset: 100, startedAt: '2026-01-02T03:04:05.000Z', identified: false },
  ...(process === undefined ? {} : { process }),
});

/** The transcript has this many bytes, the last of which were printed at that time. */
function print(bytes: number, at = '2026-01-02T03:04:06.000Z'): string {
  writeFileSync(transcript, 'x'.repeat(bytes));
  utimesSync(transcript, new Date(at), new Date(at));
  return transcript;
}

test('an attempt with output is adopted or counted, never started again', () => {
  const worker = { pid: 10, marked: true };
  const judged = (here: readonly MadeUp[], bytes: number, process?: ProcessIdentity) =>
    classifyUnfinished(withProcesses(...here).world, attempt(process), print(bytes)).do;
  expect([100, 101].map((bytes) => judged([worker], bytes, identity(10)))).toEqual(['restart', 'adopt']);
  expect([100, 101].map((bytes) => judged([], bytes, identity(10)))).toEqual(['finalizeDead', 'finalizeDead']);
  // The runner died before it had recorded the process.
  expect([100, 101].map((bytes) => judged([worker], bytes))).toEqual(['restart', 'adopt']);
  expect([100, 101].map((bytes) => judged([], bytes))).toEqual(['restart', 'finalizeDead']);
  const earlier = { ...identity(10), bootId: 'an earlier boot' };
  expect([100, 101].map((bytes) => judged([worker], bytes, earlier))).toEqual(['finalizeDead', 'finalizeDead']);
});

test('output before the prompt is no work, so the attempt is started again', () => {
  const started = '{"type":"system","subtype":"hook_started","hook_id":"h","hook_name":"SessionStart:startup"}\n';
  const answered = '{"type":"system","subtype":"hook_response","hook_id":"h","stdout":"","exit_code":0}\n';
  const judged = (here: readonly MadeUp[], printed: string) => {
    writeFileSync(transcript, 'x'.repeat(100) + printed);
    return classifyUnfinished(withProcesses(...here).world, attempt(identity(10)), transcript).do;
  };
  const worker = { pid: 10, marked: true };
  const init = '{"type":"system","subtype":"init"}\n';
  const title = '{"type":"system","subtype":"session_title_changed","title":"fixture/one"}\n';
  const torn = [started.slice(0, 20), started + answered.slice(0, 60), started + title.slice(0, 40)];
  for (const early of [started, started + answered + title, ...torn]) {
    expect(judged([worker], early)).toBe('restart');
  }
  for (const said of [
    started + init,
    init,
    init.slice(0, 33),
    '{"type":"control_response"}\n',
    'rubbish',
    `${started}\u0000`,
    started.slice(0, 60) + init,
    started.slice(0, 60) + init.slice(0, 33),
    `${started.slice(0, 60)}{"type":"assistant","message":{}}\n`,
  ]) {
    expect(judged([worker], said)).toBe('adopt');
  }
  // More than hooks print.
  expect(judged([worker], started.repeat(20_000))).toBe('adopt');
});

test('after a partial line the next attempt starts a new line and has no output yet', () => {
  for (const [before, after] of [
    ['', ''],
    ['{"whole":1}\n', '{"whole":1}\n'],
    ['{"whole":1}\n{"hal', '{"whole":1}\n{"hal\n'],
  ] as const) {
    writeFileSync(transcript, before);
    expect(terminatePartialLine(world, paths)).toBe(Buffer.byteLength(after));
    expect(world.files.readText(transcript)).toBe(after);
  }
});

test('an unmarked process that ignores SIGTERM is ended even if its parent ends first', async () => {
  const { world: here, living } = withProcesses({ pid: 10 }, { pid: 11, parent: 10, isDeaf: true }, { pid: 99 });
  expect(await reap(here, mark, [identity(10)])).toBe(2);
  expect(living()).toEqual([99]);
});

test('processes started while the others are being ended are ended too', async () => {
  const last: MadeUp = { pid: 13, marked: true };
  const heirs: MadeUp[] = [{ pid: 12, marked: true, heirs: [last] }];
  const { world: here, living } = withProcesses({ pid: 11, marked: true, heirs }, { pid: 99 });
  expect(await reap(here, mark, [])).toBe(3);
  expect(living()).toEqual([99]);
});

test('a process that survives every signal is reported after a while', async () => {
  const { world: here } = withProcesses({ pid: 11, marked: true });
  const stuck = { ...here, processes: { ...here.processes, signal: () => false } };
  expect(await reap(stuck, mark, [])).toBe(-1);
});
