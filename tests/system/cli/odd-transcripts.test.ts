/**
 * F1, F2, F11: what a session can put in the place of its transcript, or of its group's progress, stops neither the
 * runner nor a command that looks at several groups, and the group can be paused and deleted.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { Night, obeyInterrupt } from '../../support/cli/night.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';

let rig: Rig;
let user: Night;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(() => {
  user = new Night(rig);
});
afterEach(() => user.remove());

const folderOf = (group: string) => join(user.data, 'session-groups', group);
const transcriptOf = (group: string, name: string) =>
  join(folderOf(group), 'sessions', user.id(name), 'transcript.jsonl');
const putFolder = (path: string) => mkdirSync(path);
const putDevice = (path: string) => symlinkSync('/dev/zero', path);
/** As long as a file may be on most disks; it takes no room there. */
const makeEndless = (path: string) => truncateSync(path, 15 * 1024 ** 4);

function replace(path: string, put: (path: string) => void): void {
  rmSync(path, { recursive: true, force: true });
  put(path);
}

async function looksAreWhole(...groups: readonly string[]): Promise<void> {
  for (const command of [
    ['group', 'list'],
    ['group', 'list', '--json'],
    ['ps'],
    ...groups.map((group) => ['group', 'show', group]),
    ...groups.map((group) => ['group', 'why', group]),
    ...groups.map((group) => ['group', 'budget', group]),
  ]) {
    const { code, stdout, stderr } = await user.run(...command);
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
    for (const group of command.length === 3 && command[2] !== '--json' ? [] : groups) expect(stdout).toContain(group);
  }
}

test.each([
  ['a folder', putFolder],
  ['a device without an end', putDevice],
])(
  'an interrupted group with %s as transcript',
  async (_name, put) => {
    const bad = await user.group('bad', { a: [] });
    const good = await user.group('good', { b: [] });
    const [a] = await user.abandoned(bad, 'a');
    if (!a) throw new Error('no fake');
    process.kill(a.hello.pid, 'SIGKILL');
    await a.ended;
    replace(transcriptOf(bad, 'a'), put);
    const run = user.start('group', 'run', good, '--output', 'quiet');
    const b = await user.begun(good, 'b');
    await looksAreWhole(bad, good);
    const watched = await user.run('group', 'watch', bad, '--output', 'json');
    expect(watched.stderr).not.toMatch(/\.ts|EISDIR/);
    const stop = user.start('stop', '--all');
    await obeyInterrupt(b, 0.01);
    const stopped = await stop.finished;
    expect(stopped.stdout).toContain(`Paused ${good}.`);
    expect(stopped).toMatchObject({ code: 0, stderr: '' });
    expect((await run.finished).code).toBe(3);
    const again = await user.run('group', 'run', bad, '--output', 'text');
    expect([again.code, `${again.stdout}${again.stderr}`]).toEqual([
      1,
      expect.stringContaining(transcriptOf(bad, 'a')),
    ]);
    await user.ok('group', 'delete', bad, '--force');
  },
  60_000,
);

test('a folder as progress of a group that runs', async () => {
  const bad = await user.group('bad', { a: [] });
  const run = user.start('group', 'run', bad, '--output', 'quiet');
  const a = await user.begun(bad, 'a');
  replace(join(folderOf(bad), 'progress.json'), putFolder);
  await looksAreWhole(bad);
  await a.succeed(0.01);
  expect((await run.finished).code).toBe(0);
}, 60_000);

test('a session that makes its transcript endless holds up no other session, and can be paused', async () => {
  const group = await user.group('bad', { a: [], b: [], c: ['--depends-on', 'b'] });
  const run = user.start('group', 'run', group, '--output', 'quiet');
  const [a, b] = await Promise.all([user.begun(group, 'a'), user.begun(group, 'b')]);
  makeEndless(transcriptOf(group, 'a'));
  await b.succeed(0.01);
  await (await user.begun(group, 'c')).succeed(0.01);
  const pause = user.start('group', 'pause', group);
  // What it answers stands behind what is read.
  await obeyInterrupt(a, 0.01);
  expect(await pause.finished).toMatchObject({ code: 0, stdout: expect.stringContaining(`Paused ${group}.`) });
  expect((await run.finished).code).toBe(3);
}, 120_000);
