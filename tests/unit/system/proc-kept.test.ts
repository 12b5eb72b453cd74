/**
 * Promises: a process that is kept is told of as one that is not, as it is at each look; what is kept tells of nobody
 * else, and lets go of its files once.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeptProcesses } from '../../../src/system/processes/proc-kept.ts';
import { createLinuxTable } from '../../../src/system/processes/proc-linux.ts';
import { makeTempFolder } from '../../support/system/rig.ts';

let temp: ReturnType<typeof makeTempFolder>;
let kept: KeptProcesses;
beforeEach(() => {
  temp = makeTempFolder();
  kept = new KeptProcesses(temp.path);
});
afterEach(() => temp.remove());

/** As the system would say it of a process with this pid. */
function say(pid: number, stat: string, children: string): void {
  const task = join(temp.path, String(pid), 'task', String(pid));
  mkdirSync(task, { recursive: true });
  writeFileSync(join(temp.path, String(pid), 'stat'), stat);
  writeFileSync(join(task, 'children'), children);
}

const openFiles = (): number => readdirSync('/proc/self/fd').length;

test('what is kept is read anew at each look, however long it is', () => {
  say(10, 'one', '11 12 ');
  kept.keep(10);
  expect([kept.stat(10), kept.children(10)]).toEqual(['one', '11 12 ']);
  const many = Array.from({ length: 3_000 }, (_, index) => `${100_000 + index} `).join('');
  say(10, 'another', many);
  expect([kept.stat(10), kept.children(10)]).toEqual(['another', many]);
  say(10, 'a', '');
  expect([kept.stat(10), kept.children(10)]).toEqual(['a', '']);
});

test('nothing is said of one that is not kept, was let go or could not be kept; no file stays open', () => {
  say(10, 'one', '');
  const before = openFiles();
  mkdirSync(join(temp.path, '12'));
  writeFileSync(join(temp.path, '12', 'stat'), 'half of it is there');
  kept.keep(11)();
  kept.keep(12)();
  expect([10, 11, 12].map((pid) => kept.stat(pid) ?? kept.children(pid))).toEqual([null, null, null]);
  const letGo = kept.keep(10);
  expect(openFiles()).toBe(before + 2);
  letGo();
  expect([kept.stat(10), kept.children(10)]).toEqual([null, null]);
  expect(openFiles()).toBe(before);
});

test('where many files are open already nothing is kept, so that those who need one get it', () => {
  say(10, 'one', '');
  const before = openFiles();
  const at = (most: number) => new KeptProcesses(temp.path, () => most);
  const [scarce, enough] = [at(3), at(3 * before + 30)];
  const letGo = [scarce, enough].map((each) => each.keep(10));
  expect([scarce.stat(10), enough.stat(10)]).toEqual([null, 'one']);
  expect(openFiles()).toBe(before + 2);
  for (const each of letGo) each();
  expect(openFiles()).toBe(before);
});

test('whoever lets go twice closes nothing of what came later', () => {
  say(10, 'one', '');
  const before = openFiles();
  const letGo = kept.keep(10);
  letGo();
  const letNextGo = kept.keep(10);
  const mine = openSync(join(temp.path, '10', 'stat'), 'r');
  letGo();
  expect(kept.stat(10)).toBe('one');
  expect(readdirSync('/proc/self/fd')).toContain(String(mine));
  // One that is kept twice is let go twice.
  kept.keep(10)();
  letNextGo();
  expect(openFiles()).toBe(before + 1);
});

test('what is kept is the process, not its pid', () => {
  say(10, 'one', '11 ');
  kept.keep(10);
  rmSync(join(temp.path, '10'), { recursive: true });
  say(10, 'the next one of that pid', '');
  expect([kept.stat(10), kept.children(10)]).toEqual(['one', '11 ']);
});

test.skipIf(process.platform !== 'linux')(
  'a real process is told of as by its path, until it is waited for',
  async () => {
    const byPath = createLinuxTable('/proc');
    const table = createLinuxTable('/proc');
    const shell = Bun.spawn(
      ['sh', '-c', 'read line; sleep 600 & echo $!; read line; kill $!; wait; echo ended; read line'],
      {
        stdin: 'pipe',
        stdout: 'pipe',
      },
    );
    const letGo = table.keep(shell.pid);
    const reader = shell.stdout.getReader();
    const said = async () => new TextDecoder().decode((await reader.read()).value).trim();
    const go = () => void shell.stdin.write('\n');
    const both = () => [table, byPath].map((one) => one.children(shell.pid));
    expect(both()).toEqual([[], []]);
    go();
    const sleeping = Number(await said());
    expect(both()).toEqual([[sleeping], [sleeping]]);
    expect(table.find([shell.pid])).toMatchObject([{ ...byPath.find([shell.pid])[0] }]);
    go();
    expect(await said()).toBe('ended');
    expect(both()).toEqual([[], []]);
    go();
    await shell.exited;
    expect(table.find([shell.pid])).toEqual([]);
    expect(table.children(shell.pid) ?? []).toEqual([]);
    letGo();
    expect(table.children(shell.pid)).toBeNull();
  },
);
