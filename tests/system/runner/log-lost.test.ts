/**
 * Promises: a runner whose log is removed or cut off says so, ends all that runs and brings nothing back; it never
 * calls such a group completed.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeFifo } from '../../../src/system/libc.ts';
import { until } from '../../support/cli.ts';
import { type Invocation, type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

async function begin(): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  return fake;
}

test.each([
  ['removed', true, () => rmSync(group.paths.events)],
  ['replaced or cut off', true, () => writeFileSync(group.paths.events, '')],
  ['replaced or cut off', true, () => rmSync(group.paths.events) ?? symlinkSync('events.jsonl', group.paths.events)],
  ['replaced or cut off', true, () => rmSync(group.paths.events) ?? makeFifo(group.paths.events, 0o600)],
  ['replaced or cut off', true, () => rmSync(group.paths.events) ?? mkdirSync(group.paths.events)],
  ['removed', false, () => rmSync(group.paths.folder, { recursive: true })],
  ['removed', false, () => renameSync(group.paths.folder, `${group.paths.folder}-moved`)],
])(
  'a log that is %s during a run ends the run with its workers, and nothing comes back',
  async (what, isFolderLeft, takeAway) => {
    group = makeGroup([{ name: 'one' }]);
    const run = group.run(rig.env);
    const fake = await begin();
    await run.event('session_identified');
    await fake.ignore('SIGTERM');
    const note = join(group.project('one'), 'daemon');
    await fake.spawn(['sh', '-c', `setsid sleep 600 & echo $! > '${note}.new'; mv '${note}.new' '${note}'`], 'wiped');
    await until(() => existsSync(note));
    const daemon = Number(readFileSync(note, 'utf8'));
    takeAway();
    const left = group.world.files.entryKind(group.paths.events);
    const message = expect.stringContaining(`${group.paths.events} was ${what}`);
    expect(await run.result).toMatchObject({ kind: 'refused', failure: { reason: 'gone', message } });
    expect([fake.hello.pid, daemon].filter(alive)).toEqual([]);
    expect(group.world.files.entryKind(group.paths.events)).toBe(left);
    if (left === 'file') expect(readFileSync(group.paths.events, 'utf8')).toBe('');
    expect(existsSync(group.paths.folder)).toBe(isFolderLeft);
  },
  20_000,
);

test('a log that is removed from its folder: nobody is told to move a folder back', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  rmSync(group.paths.events);
  expect(await run.result).toMatchObject({
    kind: 'refused',
    failure: {
      reason: 'gone',
      next: { sentence: 'Restore the file from a backup, or', commands: [['group', 'delete', group.groupId]] },
    },
  });
  await fake.ended;
});

test('a log that is removed at the very end leaves no completed group', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env, {
    onEvent: ({ type }) => {
      if (type === 'group_completed') rmSync(group.paths.folder, { recursive: true });
    },
  });
  await (await begin()).succeed(0.02);
  expect(await run.result).toMatchObject({ kind: 'refused', failure: { reason: 'gone' } });
  expect(existsSync(group.paths.folder)).toBe(false);
});

test('F8: what a worker writes into the log is moved aside, and the run goes on and says so', async () => {
  group = makeGroup([{ name: 'one' }, { name: 'two', after: ['one'] }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  const forged = { seq: 99, at: new Date().toISOString(), groupId: group.groupId, type: 'group_completed' };
  appendFileSync(group.paths.events, `rubbish\n${JSON.stringify(forged)}\n`);
  await fake.succeed(0.25);
  const second = await rig.nextFor(group.claudeId('two'));
  await second.prompt();
  await second.init();
  await second.succeed(0.25);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const state = group.state();
  expect([state.status, state.usage.costUsd]).toEqual(['completed', 0.5]);
  const warnings = state.sessions.get(group.id('one'))?.warnings;
  expect(warnings).toMatchObject([{ code: 'foreign-bytes', message: expect.stringContaining('.foreign') }]);
  expect(readFileSync(`${group.paths.events}.foreign`, 'utf8')).toContain('rubbish\n');
});

test('a folder that is moved away during a run is named with what to do, and goes on where it was', async () => {
  group = makeGroup([{ name: 'one' }]);
  const { folder, progress } = group.paths;
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  renameSync(folder, `${folder}-moved`);
  // As a claude does whose configuration is gone.
  mkdirSync(join(folder, 'sessions'), { recursive: true });
  const sentence = `If its folder was moved, move that back to ${folder} and run the group again.`;
  expect(await run.result).toMatchObject({
    kind: 'refused',
    failure: { reason: 'gone', next: { sentence: expect.stringContaining(sentence) } },
  });
  await fake.ended;
  expect(existsSync(progress)).toBe(false);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}-moved`, folder);
  const again = group.run(rig.env);
  await (await begin()).succeed(0.02);
  expect(await again.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
