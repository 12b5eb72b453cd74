/**
 * Promises: a worker that had printed nothing when the next runner looked, but does before it is ended, has begun to
 * work. What it cost counts; what it printed after our signal is no finished work, so the next attempt goes on.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { appendFileSync } from 'node:fs';
import { runGroup } from '../../../src/runner/run-group.ts';
import { stopGroup } from '../../../src/runner/stop-group.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import type { World } from '../../../src/system/world.ts';
import { expectSettled, work } from '../../support/crash-rig.ts';
import { type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup, packageRoot } from '../../support/group-fixture.ts';
import { unwrap } from '../../support/store-world.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

/** A runner leaves a worker that has its prompt and is silent. The world in which it speaks when it is signalled. */
async function leaveSilentWorker(): Promise<World> {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  first.signal('SIGHUP');
  expect(await first.result).toMatchObject({ kind: 'left' });
  const { processes } = group.world;
  let words = `${JSON.stringify({ session_id: group.claudeId('one'), ...resultLine(0.07) })}\n`;
  return {
    ...group.world,
    processes: {
      ...processes,
      signal: (identity, name) => {
        appendFileSync(group.session('one').transcript, words);
        words = '';
        return processes.signal(identity, name);
      },
    },
  };
}

test('the next run counts it', async () => {
  const world = await leaveSilentWorker();
  const run = runGroup(world, {
    root: group.root,
    groupId: group.groupId,
    callerEnv: { PATH: process.env.PATH, ...rig.env },
    packageRoot,
    overrides: {},
    retryFailed: false,
    reporter: { event: () => {}, progress: () => {}, waiting: () => {}, summarize: () => {} },
    onSignal: () => () => {},
  });
  await work(await rig.nextFor(group.claudeId('one')));
  expect(await run).toMatchObject({ kind: 'settled', status: 'completed' });
  expectSettled(group);
  expect(group.state().usage.costUsd).toBeCloseTo(0.07 + 0.01);
  expect(group.state().sessions.get(group.id('one'))?.attempts).toBe(2);
}, 30_000);

test('so does a command that only stops the group', async () => {
  const world = await leaveSilentWorker();
  const writer = unwrap(openGroupWriter(world, group.root, group.groupId, 'command-stop'));
  await stopGroup(world, writer, 'user');
  writer.close();
  expect(group.state().usage.costUsd).toBeCloseTo(0.07);
  expect(group.state().sessions.get(group.id('one'))?.state.status).toBe('paused');
}, 30_000);
