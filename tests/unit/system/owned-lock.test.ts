/**
 * Promises: a lock tells a living owner from one that has ended, also when its pid was given to another process since;
 * what was made elsewhere is nobody's, what is no lock is foreign; there is no instant without an owner.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedBunFlags } from '../../../src/system/own-program.ts';
import { ownedLocks } from '../../../src/system/owned-lock.ts';
import { makeTempFolder } from '../../support/system/rig.ts';

let temp: ReturnType<typeof makeTempFolder>;
let lock: string;
beforeEach(() => {
  temp = makeTempFolder();
  lock = join(temp.path, 'a lock');
});
afterEach(() => temp.remove());

const program = JSON.stringify(join(import.meta.dir, '../../../src/system/owned-lock.ts'));
const owner = () => ownedLocks.look(lock)?.owner;

/** Another process that takes the lock; resolves when it has. */
async function another(): Promise<{ end(): Promise<unknown> }> {
  const code = `
    const { ownedLocks } = await import(${program});
    console.log(ownedLocks.take(${JSON.stringify(lock)}));
    setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, ...isolatedBunFlags, '-e', code], { stdin: 'ignore', stdout: 'pipe' });
  const said = new TextDecoder().decode((await child.stdout.getReader().read()).value);
  expect(said).toBe('true\n');
  return {
    end() {
      child.kill('SIGKILL');
      return child.exited;
    },
  };
}

function rewritten(fields: object): void {
  const note = { ...JSON.parse(readlinkSync(lock)), ...fields };
  unlinkSync(lock);
  symlinkSync(JSON.stringify(note), lock);
}

test('of this process: taken once, with its owner and its time', () => {
  expect(ownedLocks.look(lock)).toBeNull();
  expect([ownedLocks.take(lock), ownedLocks.take(lock)]).toEqual([true, false]);
  expect(ownedLocks.look(lock)).toEqual({ owner: 'self', mtimeMs: lstatSync(lock).mtimeMs });
});

test('of a living process, of another one with its pid, and of one that has ended', async () => {
  const isLinux = process.platform === 'linux';
  const other = await another();
  expect(owner()).toBe(isLinux ? 'alive' : 'unknown');
  const { startTime } = JSON.parse(readlinkSync(lock));
  rewritten({ startTime: '1' });
  expect(owner()).toBe(isLinux ? 'gone' : 'unknown');
  rewritten({ startTime });
  await other.end();
  expect(owner()).toBe('gone');
});

test('of another host, boot or namespace: its pids say nothing here', async () => {
  const other = await another();
  await other.end();
  rewritten({ realm: 'elsewhere' });
  expect(owner()).toBe('unknown');
});

test.each(['', ' ', 'null', '7', '[]', '{}', '{"pid":0}', '{"pid":1.5,"startTime":"","realm":""}', '{'])(
  'a file that holds %j is nobody’s, and a link to it is foreign',
  (text) => {
    writeFileSync(lock, text);
    expect(owner()).toBe('unknown');
    unlinkSync(lock);
    symlinkSync(text === '' ? 'x' : text, lock);
    expect(owner()).toBe('foreign');
    expect(ownedLocks.take(lock)).toBe(false);
  },
);

test('a folder of that name is foreign, and a folder that is not there is told', () => {
  mkdirSync(lock);
  expect([owner(), ownedLocks.take(lock)]).toEqual(['foreign', false]);
  expect(() => ownedLocks.take(join(temp.path, 'none', 'lock'))).toThrow('ENOENT');
  expect(ownedLocks.look(join(temp.path, 'none', 'lock'))).toBeNull();
  expect(readdirSync(temp.path)).toEqual(['a lock']);
});
