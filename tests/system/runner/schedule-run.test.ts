/**
 * Promises: dependents start only after their dependencies, there are never more workers than slots, and costs and
 * tokens are summed. The first Ctrl-C pauses all sessions resumably, the second exits at once, and the error threshold
 * holds back the rest.
 */
import { expect, test } from 'bun:test';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

test('a diamond runs in order, and its costs and tokens are summed', async () => {
  group = make([
    { name: 'top' },
    { name: 'left', after: ['top'] },
    { name: 'right', after: ['top'] },
    { name: 'bottom', after: ['left', 'right'] },
  ]);
  const run = group.run(rig.env);
  const started = rig.invocations.length;
  const top = await begin(group, 'top');
  expect(rig.invocations.length - started).toBe(1);
  await top.succeed(0.1);
  const [left, right] = await Promise.all([begin(group, 'left'), begin(group, 'right')]);
  await left.succeed(0.2);
  await run.event('session_completed', group.id('left'));
  expect(rig.invocations.length - started).toBe(3);
  await right.succeed(0.3);
  await (await begin(group, 'bottom')).succeed(0.4);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const state = group.state();
  expect(state.usage.costUsd).toBeCloseTo(1);
  expect(state.usage.tokens).toEqual({ input: 4000, output: 800, cacheRead: 120, cacheCreation: 16 });
  const meta = JSON.parse(await Bun.file(group.session('left').meta).text());
  expect(meta).toMatchObject({
    status: 'completed',
    cost: 0.2,
    claudeSessionId: group.claudeId('left'),
    tokens: { input: 1000, output: 200 },
  });
  expect(meta.completedAt).toBeString();
});

test('never more workers than slots; a raised concurrency holds for a later run', async () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  group = make(
    names.map((name) => ({ name })),
    { maxConcurrentSessions: 2 },
  );
  let running = 0;
  let most = 0;
  const run = group.run(rig.env, {
    onEvent: (event) => {
      if (event.type === 'session_starting') running += 1;
      if (event.type === 'session_completed') running -= 1;
      most = Math.max(most, running);
    },
  });
  for (const name of names) await (await begin(group, name)).succeed();
  await run.result;
  expect(most).toBe(2);
});

test('the first signal pauses all sessions, and a later run resumes the conversations', async () => {
  group = make([{ name: 'one' }, { name: 'two', after: ['one'] }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await run.event('session_identified');
  run.signal('SIGINT');
  await obeyInterrupt(fake, 0.02);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(group.state().sessions.get(group.id('two'))?.state.status).toBe('pending');

  const second = group.run(rig.env);
  const resumed = await begin(group, 'one');
  expect(resumed.hello.args).toContain('--model=claude-opus-4-8');
  await resumed.succeed(0.03);
  await (await begin(group, 'two')).succeed(0.05);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.1);
});

test('a worker that ignores the interrupt gets SIGTERM', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await run.event('session_identified');
  run.signal('SIGINT');
  await fake.control('interrupt');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  await fake.ended;
}, 20_000);

test('at the error threshold nothing new starts, running sessions finish, and the group pauses', async () => {
  group = make(['a', 'b', 'c', 'd'].map((name) => ({ name })));
  const run = group.run(rig.env);
  const [a, b, c] = await Promise.all([begin(group, 'a'), begin(group, 'b'), begin(group, 'c')]);
  a.exit(1);
  await run.event('session_failed', group.id('a'));
  b.exit(1);
  const d = await begin(group, 'd');
  await run.event('session_failed', group.id('b'));
  await c.succeed();
  await d.succeed();
  // Nothing was left to start when the threshold was reached: the group has failed, not paused.
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });

  const retry = group.run(rig.env, { retryFailed: true });
  await (await begin(group, 'a')).succeed();
  await (await begin(group, 'b')).succeed();
  expect(await retry.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
