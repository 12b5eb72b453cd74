/**
 * Promises: workers of a runner of an earlier program are adopted with control and cost, and none is started again;
 * what that runner was waiting for is waited for by this one.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lives, obeyInterrupt } from '../cli/night.ts';
import { until } from '../support/cli.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { longTest } from '../support/long.ts';
import { Heir, resettingAt } from './heir.ts';
import { hooksOf, runHook } from './hooks.ts';
import { firstKept as commit } from './old-program.ts';

let rig: Rig;
let user: Heir;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(() => {
  user = new Heir(rig);
});
afterEach(() => {
  for (const fake of rig.invocations) {
    // What is halted cannot end.
    if (!fake.hasEnded) process.kill(fake.hello.pid, 'SIGCONT');
    fake.exit(0);
  }
  user.remove();
});

const shown = (group: string) => user.shown(group);

test('workers that live are adopted, told and metered; one that was silent begins its attempt again', async () => {
  const { groupId } = user.inherit({ commit, slug: 'live' });
  const [api, web, mute] = await Promise.all([user.next('api'), user.next('web'), user.next('mute')]);
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  const again = await user.next('mute');
  expect(lives(mute)).toBe(false);
  expect(again.hello.env.CLAUDE_CODE_AGENT_ATTEMPT).toBe(mute.hello.env.CLAUDE_CODE_AGENT_ATTEMPT as string);
  await user.ok('session', 'say', `${groupId}/web`, 'And the fonts.');
  expect(await web.prompt()).toContain('And the fonts.');
  // What a process says it has cost is all it has cost, also before the upgrade.
  await api.succeed(0.08, 'The API is there.');
  await web.succeed(0.02);
  await again.prompt();
  await again.init();
  await again.succeed(0.01);
  await (await user.begun(groupId, 'docs')).succeed(0.04);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await shown(groupId)).cost).toBeCloseTo(0.15, 6);
  const adopted = user.events(groupId).filter(({ type }) => type === 'session_adopted');
  expect(adopted).toHaveLength(2);
  expect(['api', 'web', 'mute', 'docs'].map((name) => user.attempts(groupId, name))).toEqual([1, 1, 1, 1]);
  expect([api.resumed, web.resumed, again.resumed]).toEqual([false, false, false]);
});

test('the hooks of a worker that lives are those of this program now', async () => {
  const { workers } = user.inherit({ commit, slug: 'live' });
  await Promise.all([user.next('api'), user.next('web'), user.next('mute')]);
  const [api] = workers;
  if (api === undefined) throw new Error('no workers');
  const hooks = hooksOf(api.env);
  const ran = Object.values(hooks).flatMap((ofEvent) => ofEvent.map((hook) => runHook(hook, api)));
  expect(ran.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ran.map(() => ({ code: 0, stderr: '' })));
  expect(Object.keys(hooks).toSorted()).toEqual(['PreCompact', 'SessionEnd', 'SessionStart']);
  expect(ran[0]?.stdout).toContain('Do it.');
});

test('stop --all ends them as they were told to end by their own program, and they are resumed', async () => {
  const { groupId } = user.inherit({ commit, slug: 'live' });
  const [api, web, mute] = await Promise.all([user.next('api'), user.next('web'), user.next('mute')]);
  const stop = user.start('stop', '--all');
  await Promise.all([obeyInterrupt(api, 0.06), obeyInterrupt(web, 0.02)]);
  expect(await stop.finished).toMatchObject({ code: 0, stdout: expect.stringContaining(`Paused ${groupId}`) });
  expect([api, web, mute].map(lives)).toEqual([false, false, false]);
  expect(await shown(groupId)).toMatchObject({ status: 'paused', cost: expect.closeTo(0.08, 6) });
  const run = user.start('group', 'resume', groupId, '--output', 'quiet');
  const next = await Promise.all(['api', 'web', 'mute'].map((name) => user.begun(groupId, name)));
  expect(next.map((fake) => fake.resumed)).toEqual([true, true, false]);
  await Promise.all(next.map((fake) => fake.succeed(0.01)));
  await (await user.begun(groupId, 'docs')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await shown(groupId)).cost).toBeCloseTo(0.12, 6);
});

test('a claude whose total holds what was paid before the pause is counted once', async () => {
  const { groupId, shown: doubled } = user.inherit({ commit, slug: 'doubled-live' });
  expect(doubled.cost).toBeCloseTo(0.02, 6);
  const api = await user.next('api');
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  await user.event(groupId, 'session_adopted');
  await api.succeed(0.06);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await shown(groupId)).cost).toBeCloseTo(0.06, 6);
});

longTest('a worker that was halted for a short break goes on', async () => {
  const { groupId } = user.inherit({ commit, slug: 'frozen' });
  const api = await user.next('api');
  process.kill(api.hello.pid, 'SIGSTOP');
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  await user.event(groupId, 'session_adopted');
  await api.succeed(0.03);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect(await shown(groupId)).toMatchObject({ status: 'completed', cost: expect.closeTo(0.03, 6) });
});

test('what claude has done is accepted by this program, and not done again', async () => {
  const { groupId } = user.inherit({ commit, slug: 'accepting' });
  writeFileSync(join(user.project('api'), '..', 'gate'), '');
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  await (await user.begun(groupId, 'web')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect(rig.invocations.filter((fake) => fake.hello.cwd === user.project('api'))).toEqual([]);
  expect(await shown(groupId)).toMatchObject({ status: 'completed', cost: expect.closeTo(0.03, 6) });
  expect(user.attempts(groupId, 'api')).toBe(1);
});

test('a usage limit that holds is waited for; nothing is started, and a pause is a pause', async () => {
  const { groupId } = user.inherit({ commit, slug: 'limit' }, resettingAt(Date.now() + 3_600_000));
  expect(await user.ok('group', 'why', groupId)).toContain('limit');
  const before = rig.invocations.length;
  const { log } = JSON.parse(await user.ok('group', 'run', groupId, '--detach', '--output', 'json')) as { log: string };
  await until(() => readFileSync(log, 'utf8').includes('waiting (limit)'));
  expect(await user.run('group', 'pause', groupId)).toMatchObject({ code: 0 });
  expect(rig.invocations.length).toBe(before);
  expect(await shown(groupId)).toMatchObject({ status: 'paused', cost: expect.closeTo(0.02, 6) });
});

longTest('a usage limit that is over lets the conversation go on', async () => {
  const { groupId } = user.inherit({ commit, slug: 'limit' }, resettingAt(1_700_000_000_000));
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  const api = await user.begun(groupId, 'api');
  expect(api.resumed).toBe(true);
  await api.succeed(0.03);
  await (await user.begun(groupId, 'web')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await shown(groupId)).cost).toBeCloseTo(0.06, 6);
});
