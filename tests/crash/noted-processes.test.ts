/**
 * Promise: a process without the mark, in a session of its own, is ended with its attempt also when the runner was
 * killed after it had told the worker to end, whose tree is gone by then.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import type { ProcessIdentity } from '../../src/core/event.ts';
import { expectSettled, expectWorkedOnce, Runners, removeGroup, work } from '../support/crash-rig.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
let daemon: ProcessIdentity | null = null;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => {
  if (daemon !== null) group.world.processes.signal(daemon, 'SIGKILL');
  removeGroup(group);
});

test('what wiped its environment is ended by the next run', async () => {
  group = makeGroup([{ name: 'one' }]);
  const runners = new Runners(group, rig.env);
  const first = runners.crash({ at: 'after signal SIGTERM' });
  const worker = await rig.nextFor(group.claudeId('one'));
  daemon = group.world.processes.identify(await worker.spawn(['sleep', '604'], 'wiped'));
  await work(worker);
  await first;
  await worker.ended;
  expect(daemon !== null && group.world.processes.isAlive(daemon)).toBe(true);
  await runners.complete();
  expect(daemon !== null && group.world.processes.isAlive(daemon)).toBe(false);
  expectSettled(group);
  expectWorkedOnce(group, ['one']);
}, 60_000);
