/**
 * Promises: sessions without a worktree take turns in a repository, also across groups and after the other runner
 * died. Waiting sessions show their reason and continue automatically. Sessions with worktrees, shared checkouts or
 * on other hosts do not wait. Groups of different data roots do not know each other.
 */
import { afterEach, expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../../src/claude/launch/attempt-mark.ts';
import type { GroupConfig } from '../../../src/core/group.ts';
import { otherGroups } from '../../../src/runner/checkouts.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

const repository = '/somewhere/app/.git';
let groups: GroupFixture[] = [];
withRig();
afterEach(() => {
  for (const group of groups.reverse()) group.remove();
  groups = [];
});

/** A group whose one session works in the repository's checkout; all groups have one data root. */
function make(config: Partial<GroupConfig> = {}, of = repository): GroupFixture {
  const root = groups[0]?.root;
  const fields = { repository: of, isolate: 'none' as const };
  const group = makeGroup([{ name: 'a', fields }], config, { speed: 20, ...(root === undefined ? {} : { root }) });
  groups.push(group);
  return group;
}

async function begin(group: GroupFixture): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId('a'));
  await fake.prompt();
  await fake.init();
  return fake;
}

const claims = (group: GroupFixture) => readdirSync(join(group.root, 'checkouts')).filter((name) => name !== 'lock');

test('a group waits for the checkout that another group uses, says so, and then continues automatically', async () => {
  const [first, second] = [make(), make()];
  const firstRun = first.run(rig.env);
  const one = await begin(first);
  const started = rig.invocations.length;
  const waits = Promise.withResolvers<string[]>();
  const secondRun = second.run(rig.env, { onWaiting: (...said) => waits.resolve(said) });
  expect(await waits.promise).toEqual(['other-group', expect.stringContaining(first.groupId)]);
  expect(rig.invocations.length).toBe(started);
  await one.succeed();
  expect(await firstRun.result).toMatchObject({ kind: 'settled', status: 'completed' });
  await (await begin(second)).succeed();
  expect(await secondRun.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(claims(first)).toEqual([]);
});

test('groups in other repositories or with shared checkouts do not wait', async () => {
  const [first, elsewhere, sharing] = [make(), make({}, '/somewhere/web/.git'), make({ shareCheckouts: true })];
  const runs = [first, elsewhere, sharing].map((group) => group.run(rig.env));
  for (const fake of await Promise.all([first, elsewhere, sharing].map(begin))) await fake.succeed();
  for (const run of runs) expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('a group started inside a session does not wait for that session', async () => {
  const [outer, inner] = [make(), make()];
  const outerRun = outer.run(rig.env);
  const session = await begin(outer);
  const innerRun = inner.run({ ...rig.env, [attemptMark]: 'an attempt of the outer group' });
  await (await begin(inner)).succeed();
  expect(await innerRun.result).toMatchObject({ kind: 'settled', status: 'completed' });
  await session.succeed();
  expect(await outerRun.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('a group without a runner keeps its checkout as long as its worker lives', async () => {
  const [first, second] = [make(), make()];
  const firstRun = first.run(rig.env);
  const one = await begin(first);
  firstRun.signal('SIGHUP');
  expect(await firstRun.result).toMatchObject({ kind: 'left' });
  const [claim] = claims(first);
  const path = join(first.root, 'checkouts', claim as string);
  const written = JSON.parse(await Bun.file(path).text());
  // The process of this test, which contained that runner, is still alive.
  writeFileSync(path, JSON.stringify({ ...written, runner: { ...written.runner, startTime: '1' } }));
  const ask = () => otherGroups(first.world, first.root, second.groupId).workingIn(repository);
  expect(ask()).toBe(first.groupId);
  expect(otherGroups(first.world, first.root, first.groupId).workingIn(repository)).toBeUndefined();
  const session = first.state().sessions.get(first.id('a'))?.state;
  const worker = session?.status === 'running' ? session.attempt.process : undefined;
  if (worker === undefined) throw new Error('The session runs no worker.');
  one.exit(1);
  while (first.world.processes.isAlive(worker)) await Bun.sleep(5);
  expect(ask()).toBeUndefined();
  const secondRun = second.run(rig.env);
  await (await begin(second)).succeed();
  expect(await secondRun.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
