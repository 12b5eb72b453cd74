/**
 * F11: whatever a worker puts in the place of a file of its session or group, a FIFO that nobody writes to above all,
 * the run does its work and ends, and so does the next one.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { makeFifo } from '../../../src/system/libc.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

const things: Readonly<Record<string, (path: string) => void>> = {
  'a FIFO': (path) => makeFifo(path, 0o600),
  'a device': (path) => symlinkSync('/dev/zero', path),
  'a loop': (path) => symlinkSync(path, path),
  'a folder': (path) => mkdirSync(path),
};

/** Everything that may be read or written in the course of a run, but the log and what claude itself writes to. */
const ofGroup = ['meta.json', 'progress.json', 'rehearsal.json', 'merge.json', 'subreaper', 'workflow.yaml'];
const ofSession = [
  'meta.json',
  'prompt.md',
  'processes.json',
  'hooks.log',
  'worker-settings.json',
  'mcp.json',
  'workspace.json',
  'accept.log',
  'setup.log',
  'handover.json',
  'handover-copies.json',
  'setup.done',
  'before.txt',
  'accept-before.txt',
];

function putEverywhere(group: GroupFixture, put: (path: string) => void): void {
  const places = [
    ...ofGroup.map((name) => join(group.paths.folder, name)),
    ...ofSession.map((name) => join(group.session('one').folder, name)),
    ...readdirSync(join(group.root, 'limits')).map((name) => join(group.root, 'limits', name)),
  ];
  for (const place of places) {
    rmSync(place, { recursive: true, force: true });
    put(place);
  }
}

const rows = Object.keys(things).flatMap((thing) => [
  [thing, 'completed', {}] as const,
  // What it is to be judged by cannot be written, which is said of it.
  [thing, 'failed', { accept: 'true', expectChanges: true }] as const,
]);

test.each(rows)('F11: %s in the place of every file: the session is %s', async (thing, status, fields) => {
  const group = make([
    { name: 'one', fields },
    { name: 'two', after: ['one'] },
  ]);
  mkdirSync(join(group.root, 'limits'), { recursive: true });
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await run.event('session_identified');
  putEverywhere(group, things[thing] as (path: string) => void);
  await fake.succeed();
  if (status === 'completed') await (await begin(group, 'two')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status });
  expect(group.state().sessions.get(group.id('one'))?.state).toMatchObject({ status });
  const again = group.run(rig.env, { retryFailed: true });
  expect((await again.result).kind).toBe(status === 'completed' ? 'already-completed' : 'settled');
});
