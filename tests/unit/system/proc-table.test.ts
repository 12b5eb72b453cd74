/**
 * Promises: both sources of process facts are parsed correctly, with hostile names, and agree about real processes.
 * Output of a real macOS is not tested; its format is given here as text.
 */
import { expect, test } from 'bun:test';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createLinuxTable,
  createPsTable,
  parseMarked,
  parsePs,
  parseStat,
} from '../../../src/system/processes/proc-table.ts';
import { createProcesses } from '../../../src/system/processes/processes.ts';
import { Shell } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const linux = createLinuxTable('/proc');
const temp = withTempFolder();

const statLine = (name: string, state: string): string =>
  `42 (${name}) ${state} 7 42 40 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 112586 180224 0 18446744073709551615`;

test('a stat line is parsed whatever the program’s name', () => {
  for (const name of ['sleep', 'a b', 'x) Z 1 (y', ') R 9 9 9', '']) {
    const expected = { pid: 42, parent: 7, session: 40, startTime: '112586', zombie: false };
    expect(parseStat(statLine(name, 'S'))).toEqual(expected);
  }
  expect(['Z', 'X', 'R', 'T', 'D'].map((state) => parseStat(statLine('a', state))?.zombie)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  for (const torn of ['', '42', '42 (a', '42 (a) S 1']) expect(parseStat(torn)).toBeNull();
});

test('a real process with a hostile name is parsed', () => {
  const program = join(temp.path, 'a) Z 1 (b');
  copyFileSync('/bin/sleep', program);
  const child = Bun.spawn([program, '600'], { detached: true });
  expect(linux.find([child.pid])).toMatchObject([
    { pid: child.pid, parent: process.pid, session: child.pid, zombie: false },
  ]);
  child.kill('SIGKILL');
});

test('a mark is found as a whole entry only, and unreadable processes are skipped', () => {
  const environments: Record<string, string> = {
    '10': 'A=1\0MARK=x\0B=2\0',
    '11': 'MARK=x',
    '12': 'MARK=xy\0',
    '13': 'UNMARK=x\0',
    '14': 'OTHER=MARK=x\0MARK=x\0',
    '15': '',
  };
  for (const [pid, text] of Object.entries(environments)) {
    mkdirSync(join(temp.path, pid));
    writeFileSync(join(temp.path, pid, 'environ'), text);
    writeFileSync(join(temp.path, pid, 'stat'), statLine('a', 'S').replace('42', pid));
  }
  mkdirSync(join(temp.path, '16'));
  mkdirSync(join(temp.path, 'self'));
  expect(createLinuxTable(temp.path).marked('MARK', 'x').sort()).toEqual([10, 11, 14]);
});

test('children of all threads are found; where the kernel does not report them they are unknown', () => {
  const childrenOf = (thread: string): string => join(temp.path, '10', 'task', thread, 'children');
  for (const thread of ['10', '11']) mkdirSync(join(temp.path, '10', 'task', thread), { recursive: true });
  const table = createLinuxTable(temp.path);
  writeFileSync(childrenOf('10'), '');
  expect(table.children(10)).toBeNull();
  writeFileSync(childrenOf('11'), '');
  expect(table.children(10)).toEqual([]);
  writeFileSync(childrenOf('10'), '12 13 ');
  writeFileSync(childrenOf('11'), '14 ');
  expect(table.children(10)?.sort()).toEqual([12, 13, 14]);
  expect(table.children(13)).toBeNull();
  expect(createPsTable(() => '').children(10)).toBeNull();
});

const macOutput = `
    1     0     1 Ss   Sun Nov  2 01:03:00 2025
  501     1   501 S+   Sat Nov 22 00:56:54 2025
  777   501   777 Z    Sat Nov 22 00:57:01 2025
 garbage
`;

test('the output of ps is parsed', () => {
  expect(parsePs(macOutput)).toEqual([
    { pid: 1, parent: 0, session: 1, startTime: 'Sun Nov 2 01:03:00 2025', zombie: false },
    { pid: 501, parent: 1, session: 501, startTime: 'Sat Nov 22 00:56:54 2025', zombie: false },
    { pid: 777, parent: 501, session: 777, startTime: 'Sat Nov 22 00:57:01 2025', zombie: true },
  ]);
});

test('a mark is found behind the command, as far as ps shows it', () => {
  const text = '  10 /bin/claude -p HOME=/Users/a b MARK=x TERM=dumb\n 11 sh MARK=x\n 12 sh MARK=xy XMARK=x\n';
  expect(parseMarked(text, 'MARK=x')).toEqual([10, 11]);
});

test('a reused pid is not the marked process', () => {
  const folder = join(temp.path, '10');
  mkdirSync(folder);
  writeFileSync(join(folder, 'environ'), 'MARK=x\0');
  const write = (startTime: string): void => {
    writeFileSync(
      join(folder, 'stat'),
      statLine('a', 'S').replace('42 (a) S 7', '10 (a) S 0').replace('112586', startTime),
    );
  };
  write('112586');
  const table = createLinuxTable(temp.path);
  expect(table.marked('MARK', 'x')).toEqual([10]);
  write('112999');
  writeFileSync(join(folder, 'environ'), 'OTHER=y\0');
  expect(table.marked('MARK', 'x')).toEqual([]);
});

test('ps runs in a fixed language, and not at all without pids', () => {
  const asked: string[] = [];
  const table = createPsTable((program, args) => {
    asked.push([program, ...args].join(' '));
    return '';
  });
  expect([table.find([]), table.find([5, 6]), table.all(), table.marked('A', 'b'), table.bootId()]).toEqual([
    [],
    [],
    [],
    [],
    '',
  ]);
  expect(asked).toEqual([
    'ps -o pid=,ppid=,pgid=,stat=,lstart= -p 5,6',
    'ps -ax -o pid=,ppid=,pgid=,stat=,lstart=',
    'ps -axEww -o pid=,command=',
    'sysctl -n kern.bootsessionuuid',
  ]);
});

test.skipIf(Bun.which('ps') === null)('a real ps shows processes, their children and their end', async () => {
  const processes = createProcesses({ ...createPsTable(), bootId: () => 'this boot' });
  const shell = new Shell(processes, temp.path);
  const worker = shell.start('sleep 600 & echo $!; setsid sleep 600 & echo $!; wait');
  const children = await shell.printed(2);
  expect(processes.identify(worker.identity.pid)).toEqual(worker.identity);
  const found = processes.findDescendants([worker.identity]).map(({ pid }) => pid);
  expect(found.sort()).toEqual(children.map(({ pid }) => pid).sort());
  expect(linux.find([process.pid])[0]?.parent).toBe(createPsTable().find([process.pid])[0]?.parent);
  const ended = new Promise((resolve) => processes.attach(worker.identity)?.onExit(resolve));
  shell.cleanUp();
  expect(await ended).toEqual({ kind: 'unknown' });
  expect(processes.isAlive(worker.identity)).toBe(false);
});

test('a process with a reused pid has no descendants, and a dead process still has its session', () => {
  const entry = (pid: number, parent: number, session: number, startTime: string) => ({
    ...{ pid, parent, session, startTime, zombie: false },
  });
  const table = {
    all: () => [entry(10, 1, 10, '5'), entry(11, 10, 10, '6'), entry(21, 1, 20, '7')],
    find: () => [entry(9, 1, 9, '1')],
    marked: () => [],
    children: () => null,
    valuesOf: () => [],
    bootId: () => 'boot',
  };
  const processes = createProcesses(table);
  const identity = processes.identify(9);
  if (identity === null) throw new Error('not found');
  const below = (pid: number, startTime: string) =>
    processes.findDescendants([{ ...identity, pid, startTime }]).map((one) => one.pid);
  expect([below(10, '5'), below(10, '1'), below(20, '1')]).toEqual([[11], [], [21]]);
});
