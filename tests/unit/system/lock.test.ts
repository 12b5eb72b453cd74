/**
 * Promises: a lock has one holder across processes and is free when the holder ends, also by `kill -9`. Child
 * processes of the holder do not keep it, and asking for the holder does not disturb it. Network disks are not
 * tested.
 */
import { beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { LockHolder } from '../../../src/system/world.ts';
import { sourceFolder } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const { locks, processes } = world;
const me: LockHolder = { identity: world.machine.self, runId: 'run-1' };
const temp = withTempFolder();
let path: string;

beforeEach(() => {
  path = join(temp.path, 'runner.lock');
});

/** Starts another process that takes the lock, then runs `more`; returns the words of its first line of output. */
async function startHolder(more: string): Promise<{ child: Bun.Subprocess; words: string[] }> {
  const code = `
    const { createRealWorld } = await import(process.argv[1] + '/real-world.ts');
    const world = createRealWorld();
    const [folder, path] = process.argv.slice(2);
    const taken = world.locks.tryLock(path, { identity: world.machine.self, runId: 'child' });
    const words = [taken === null ? 'refused' : 'taken'];
    ${more}
    console.log(words.join(' '));
    setInterval(() => {}, 60_000);`;
  const child = Bun.spawn([process.execPath, '-e', code, sourceFolder, temp.path, path], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const first = await child.stdout.getReader().read();
  return { child, words: new TextDecoder().decode(first.value).trim().split(' ') };
}

test('a second lock attempt is refused with the holder until the first releases', () => {
  expect(locks.holder(path)).toBeNull();
  const lock = locks.tryLock(path, me);
  expect(locks.tryLock(path, { ...me, runId: 'run-2' })).toBeNull();
  expect(locks.holder(path)).toEqual(me);
  lock?.release();
  lock?.release();
  expect(locks.holder(path)).toBeNull();
  // A remaining note would name a living process, and a reader would treat the lock as held.
  expect(readFileSync(path, 'utf8')).toBe('');
  const next = locks.tryLock(path, { ...me, runId: 'a' });
  expect(locks.holder(path)?.runId).toBe('a');
  next?.release();
});

test('a killed holder frees the lock, and its note no longer counts', async () => {
  const { child, words } = await startHolder('');
  expect(words).toEqual(['taken']);
  expect(locks.tryLock(path, me)).toBeNull();
  expect(locks.holder(path)).toEqual({ identity: processes.identify(child.pid)!, runId: 'child' });
  child.kill('SIGKILL');
  await child.exited;
  expect(JSON.parse(readFileSync(path, 'utf8')).runId).toBe('child');
  expect(locks.holder(path)).toBeNull();
  const lock = locks.tryLock(path, me);
  expect(lock).not.toBeNull();
  expect(locks.holder(path)).toEqual(me);
  lock?.release();
});

test('a worker that outlives the holder does not keep the lock', async () => {
  const { child, words } = await startHolder(`
    const worker = world.processes.spawn({ program: '/bin/sh', args: ['-c', 'exec sleep 600'], cwd: folder, env: {},
      stdoutFile: folder + '/out', stderrFile: folder + '/err' });
    words.push(worker.value.identity.pid);`);
  const worker = processes.identify(Number(words[1]))!;
  child.kill('SIGKILL');
  await child.exited;
  expect(processes.isAlive(worker)).toBe(true);
  const lock = locks.tryLock(path, me);
  expect(lock).not.toBeNull();
  lock?.release();
  expect(processes.signal(worker, 'SIGKILL')).toBe(true);
});
