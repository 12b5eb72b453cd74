/**
 * Promises: a process starts with exactly the given environment, files and folder, and its end is reported correctly,
 * also for foreign children. A reused pid is never signalled, and mark and tree together find every process of a
 * worker.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, constants, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFifos } from '../../../src/system/libc.ts';
import { createProcTable } from '../../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import type { SpawnOptions } from '../../../src/system/world.ts';
import { basePath, eventually, exitOf, makeTempFolder, Shell, writtenLines } from '../../support/system/rig.ts';

const table = createProcTable();
const processes = createProcesses(table);
let temp: ReturnType<typeof makeTempFolder>;
let shell: Shell;

beforeEach(() => {
  temp = makeTempFolder();
  shell = new Shell(processes, temp.path);
});
afterEach(() => {
  shell.cleanUp();
  temp.remove();
});

const failureOf = (options: Partial<SpawnOptions>): string => {
  const result = processes.spawn({
    program: 'sh',
    args: [],
    cwd: temp.path,
    env: { PATH: basePath },
    stdoutFile: join(temp.path, 'out'),
    stderrFile: join(temp.path, 'err'),
    ...options,
  });
  return result.ok ? 'started' : result.failure.reason;
};

function makeFifo(): string {
  const path = join(temp.path, 'stdin.fifo');
  createFifos().create(path);
  return path;
}

test('exit codes and signals are distinguished, even after the end', async () => {
  const exited = shell.start('exit 7');
  const killed = shell.start('kill -TERM $$');
  expect(await exitOf(exited)).toEqual({ kind: 'exited', code: 7 });
  expect(await exitOf(killed)).toEqual({ kind: 'signalled', signal: 'SIGTERM' });
  const seen: string[] = [];
  exited.onExit((status) => seen.push(status.kind));
  expect(seen).toEqual([]);
  await exitOf(exited);
  expect(seen).toEqual(['exited']);
  expect(processes.isAlive(exited.identity)).toBe(false);
});

test('output of the child is appended to private files', async () => {
  writeFileSync(shell.out, 'before\n');
  await exitOf(shell.start('echo "ü"; echo trouble >&2; pwd; echo "$$"; ps -o sid= -p $$'));
  const [before, text, cwd, pid, sid] = readFileSync(shell.out, 'utf8').split('\n');
  expect([before, text, cwd]).toEqual(['before', 'ü', temp.path]);
  expect(Number(sid)).toBe(Number(pid));
  expect(readFileSync(join(temp.path, 'err'), 'utf8')).toBe('trouble\n');
  expect(statSync(join(temp.path, 'err')).mode & 0o777).toBe(0o600);
});

test.skipIf(process.platform !== 'linux')(
  'output that must survive a power cut is synced, also that of grandchildren',
  async () => {
    const flagsWith = async (options: Pick<SpawnOptions, 'syncsStdout'>): Promise<number[]> => {
      const started = processes.spawn({
        program: 'sh',
        args: ['-c', 'cat /proc/self/fdinfo/1; (exec 5>&1; cat /proc/self/fdinfo/5)'],
        cwd: temp.path,
        env: { PATH: basePath },
        stdoutFile: shell.out,
        stderrFile: join(temp.path, 'err'),
        ...options,
      });
      if (!started.ok) throw new Error(started.failure.message);
      await exitOf(started.value);
      const text = readFileSync(shell.out, 'utf8');
      writeFileSync(shell.out, '');
      return [...text.matchAll(/^flags:\s+(\d+)/gm)].map(([, flags]) => Number.parseInt(flags ?? '', 8));
    };
    const isSynced = (flags: number) => (flags & constants.O_DSYNC) !== 0;
    expect((await flagsWith({ syncsStdout: true })).map(isSynced)).toEqual([true, true]);
    expect((await flagsWith({})).map(isSynced)).toEqual([false, false]);
  },
);

test('the environment is exactly the given one, and stdin without a FIFO is empty', async () => {
  await exitOf(shell.start('exec env', { MARK: 'a b=ü' }));
  const lines = readFileSync(shell.out, 'utf8').trim().split('\n').sort();
  expect(lines.filter((line) => !/^(PWD|SHLVL|_)=/.test(line))).toEqual(['MARK=a b=ü', `PATH=${basePath}`]);
  expect(await exitOf(shell.start('read line || exit 9'))).toEqual({ kind: 'exited', code: 9 });
});

test('stdin from a FIFO accepts one writer after another and never ends', async () => {
  const fifo = makeFifo();
  const fifos = createFifos();
  const running = shell.start('read a; echo "$a"; read b; echo "$b"; exit 3', {}, fifo);
  const first = fifos.openWriter(fifo);
  first?.writeLine('one');
  await writtenLines(shell.out, 1);
  first?.close();
  const second = fifos.openWriter(fifo);
  second?.writeLine('two');
  expect(await exitOf(running)).toEqual({ kind: 'exited', code: 3 });
  expect(readFileSync(shell.out, 'utf8')).toBe('one\ntwo\n');
  second?.close();
  expect(fifos.openWriter(fifo)).toBeNull();
});

test('a failed start names what is missing: the folder first, then the program, then the rest', () => {
  const at = (name: string): string => join(temp.path, name);
  writeFileSync(at('plain'), 'text');
  writeFileSync(at('lost'), '#!/no/such/interpreter\n');
  chmodSync(at('lost'), 0o755);
  expect(failureOf({ cwd: at('none') })).toBe('project-missing');
  expect(failureOf({ cwd: at('none'), program: at('none') })).toBe('project-missing');
  expect(failureOf({ cwd: at('plain') })).toBe('project-missing');
  for (const program of ['no-such-program', at('none'), './none', at('plain'), temp.path, at('lost')]) {
    expect([program, failureOf({ program })]).toEqual([program, 'claude-missing']);
  }
  expect(failureOf({ env: {} })).toBe('claude-missing');
  expect(failureOf({ stdinFifo: at('none') })).toBe('spawn-failed');
  expect(failureOf({ stdoutFile: join(temp.path, 'none', 'out') })).toBe('spawn-failed');
  expect(failureOf({ args: ['x'.repeat(3_000_000)] })).toBe('spawn-failed');
});

test('a program is found relative to the folder and on the child’s PATH', async () => {
  writeFileSync(join(temp.path, 'my tool'), '#!/bin/sh\nexit 5\n');
  chmodSync(join(temp.path, 'my tool'), 0o755);
  expect(failureOf({ program: './my tool' })).toBe('started');
  expect(failureOf({ program: 'my tool', env: { PATH: temp.path } })).toBe('started');
});

test('the end of a process that is not a child is detected', async () => {
  await exitOf(shell.start('sleep 600 & echo $!'));
  const [orphan] = await shell.printed(1);
  const followers = [processes.attach(orphan!), processes.attach(orphan!)];
  const ends = followers.map((follower) => exitOf(follower!));
  expect(processes.signal(orphan!, 'SIGTERM')).toBe(true);
  expect(await Promise.all(ends)).toEqual([{ kind: 'unknown' }, { kind: 'unknown' }]);
  expect(processes.attach(orphan!)).toBeNull();
  expect(processes.signal(orphan!, 'SIGTERM')).toBe(false);
});

test('a zombie is not alive', async () => {
  const parent = shell.start('sleep 600 & echo $!; exec sleep 600');
  const [child] = await shell.printed(1);
  expect(processes.signal(child!, 'SIGKILL')).toBe(true);
  await eventually(() => table.find([child!.pid])[0]?.zombie);
  expect(processes.isAlive(child!)).toBe(false);
  expect(processes.identify(child!.pid)).toBeNull();
  expect(processes.attach(child!)).toBeNull();
  expect(processes.findDescendants([parent.identity])).toEqual([]);
});

test('a process with a reused pid is a different process', () => {
  const { identity } = shell.start('exec sleep 600');
  const strangers = [
    { ...identity, startTime: `${Number(identity.startTime) - 1}` },
    { ...identity, bootId: 'an earlier boot' },
  ];
  for (const stranger of strangers) {
    expect(processes.isAlive(stranger)).toBe(false);
    expect(processes.signal(stranger, 'SIGKILL')).toBe(false);
    expect(processes.attach(stranger)).toBeNull();
  }
  for (const pid of [0, -1, -identity.pid, 2 ** 30]) expect(processes.identify(pid)).toBeNull();
  expect(processes.isAlive(identity)).toBe(true);
  // A machine with a new name is the same machine.
  expect(processes.isAlive({ ...identity, host: 'a former name' })).toBe(true);
});

test('the mark finds the worker and a grandchild in its own session, but no partial match', async () => {
  const attempt = crypto.randomUUID();
  const worker = shell.start('setsid sleep 600 & echo $!; sleep 600 & echo $!; wait', { CCA_TEST_MARK: attempt });
  const other = shell.start('exec sleep 600', { CCA_TEST_MARK: `${attempt}0`, XCCA_TEST_MARK: attempt });
  const children = await shell.printed(2);
  // Its environment cannot be read while a child becomes `sleep`.
  const found = await eventually(() => {
    const marked = processes.findMarked('CCA_TEST_MARK', attempt);
    return marked.length >= 3 && marked;
  });
  expect(found.sort(byPid)).toEqual([worker.identity, ...children].sort(byPid));
  expect(processes.findMarked('CCA_TEST_MARK', attempt.slice(1))).toEqual([]);
  expect(processes.isAlive(other.identity)).toBe(true);
});

test('the tree finds a child without environment, one in its own session, and an orphan', async () => {
  const worker = shell.start(`
    env -i sleep 600 & echo $!
    setsid sh -c 'sleep 600 & echo $! >&2; wait' & echo $!
    (sleep 600 & echo $!)
    wait`);
  const printed = await shell.printed(3);
  const [inner] = await writtenLines(join(temp.path, 'err'), 1);
  const expected = [...printed, processes.identify(Number(inner))!];
  // The parent of the orphan may take a moment to end.
  const found = await eventually(() => {
    const below = processes.findDescendants([worker.identity]);
    return below.length <= expected.length && below;
  });
  expect(found.sort(byPid)).toEqual(expected.sort(byPid));

  // After the death of the worker, its session identifies the orphans, except those in new sessions.
  processes.signal(worker.identity, 'SIGKILL');
  await exitOf(worker);
  const left = processes.findDescendants([worker.identity]).map(({ pid }) => pid);
  expect(left.sort()).toEqual([printed[0]!.pid, printed[2]!.pid].sort());
  processes.signal(processes.identify(Number(inner))!, 'SIGKILL');
});

const byPid = (a: { pid: number }, b: { pid: number }): number => a.pid - b.pid;
