/**
 * Promises: the note in a lock file tells a living process from one that has ended, also when its pid was given to
 * another one since; what was written elsewhere, or is no note at all, is nobody's.
 */
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { lockOwners } from '../../src/world/lock-owner.ts';
import { isolatedBunFlags } from '../../src/world/own-program.ts';

const owner = JSON.stringify(join(import.meta.dir, '../../src/world/lock-owner.ts'));
const script = `console.log((await import(${owner})).lockOwners.note().trim())`;

function another(rest = ''): { readonly note: Promise<string>; end(): Promise<unknown> } {
  const child = Bun.spawn([process.execPath, ...isolatedBunFlags, '-e', `${script}; ${rest}`], {
    stdin: 'ignore',
    stdout: 'pipe',
  });
  const first = async () => new TextDecoder().decode((await child.stdout.getReader().read()).value);
  return {
    note: first(),
    end() {
      child.kill('SIGKILL');
      return child.exited;
    },
  };
}

const changed = (note: string, fields: object) => JSON.stringify({ ...JSON.parse(note), ...fields });

test('this process, a living one and one that has ended', async () => {
  expect(lockOwners.stateOf(lockOwners.note())).toBe('self');
  const other = another('setInterval(() => {}, 1000)');
  const note = await other.note;
  const isLinux = process.platform === 'linux';
  expect(lockOwners.stateOf(note)).toBe(isLinux ? 'alive' : 'unknown');
  // The same pid, given to another process since.
  expect(lockOwners.stateOf(changed(note, { startTime: '1' }))).toBe(isLinux ? 'gone' : 'unknown');
  await other.end();
  expect(lockOwners.stateOf(note)).toBe('gone');
});

test('another host, boot or namespace: its pids say nothing here', async () => {
  const other = another();
  const note = await other.note;
  await other.end();
  expect(lockOwners.stateOf(changed(note, { realm: 'elsewhere' }))).toBe('unknown');
});

test.each(['', ' ', 'null', '7', '[]', '{}', '{"pid":0}', '{"pid":1.5,"startTime":"","realm":""}', '\u0000', '{'])(
  '%j is no note',
  (text) => expect(lockOwners.stateOf(text)).toBe('unknown'),
);
