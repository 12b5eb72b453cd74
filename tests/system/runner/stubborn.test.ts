/**
 * Promises: a claude that does not exit is ended with the right reason and its cost, and leaves no process: one that
 * ignores SIGTERM, one that forks a daemon, one that closes its output and keeps running.
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

test('a claude that ignores interrupt and SIGTERM is killed and can be resumed', async () => {
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

test('a claude that hangs after printing its result is ended, and its result counts', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await fake.ignore('SIGTERM');
  await fake.succeed(0.03);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(alive(fake.hello.pid)).toBe(false);
  expect(group.state().usage.costUsd).toBeCloseTo(0.03);
}, 40_000);

test('a claude that closes its output after the result and keeps running leaves no process', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  // Its parent exits at once, so neither the mark nor the process tree leads to it.
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
