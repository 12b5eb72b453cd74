/**
 * Promises: a claude that does not want to end is ended all the same, with the right reason and its cost, and nothing
 * of it is left: one that ignores SIGTERM, one that forks a daemon, one that closes its output and lives on.
 */

import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/cli.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test('one that ignores interrupt and SIGTERM is killed and can be resumed', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await fake.ignore('SIGTERM');
  await run.event('session_identified');
  run.signal('SIGINT');
  await fake.control('interrupt');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(alive(fake.hello.pid)).toBe(false);

  const second = group.run(rig.env);
  await (await begin(group, 'one')).succeed(0.02);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
}, 40_000);

test('one that has printed its result and then hangs is ended, and its work counts', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await fake.ignore('SIGTERM');
  await fake.succeed(0.03);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(alive(fake.hello.pid)).toBe(false);
  expect(group.state().usage.costUsd).toBeCloseTo(0.03);
}, 40_000);

test('one that closes its output after the result and lives on leaves nothing', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  // Its parent ends at once, so neither a mark nor the tree below its parent leads to it.
  const note = join(group.project('one'), 'daemon');
  await fake.spawn(['sh', '-c', `setsid sleep 600 & echo $! > '${note}.new'; mv '${note}.new' '${note}'`], 'wiped');
  await until(() => existsSync(note));
  const daemon = Number(readFileSync(note, 'utf8'));
  expect(alive(daemon)).toBe(true);
  await fake.succeed(0.03);
  await fake.closeOutput();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect([fake.hello.pid, daemon].filter(alive)).toEqual([]);
});
