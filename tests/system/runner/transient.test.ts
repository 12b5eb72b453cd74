/**
 * Promises: a request that the API did not serve is retried, with a limit and without losing money, and an outage is
 * waited out. Only the clock is faster here.
 */
import { expect, test } from 'bun:test';
import type { GroupConfig } from '../../../src/core/group.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture, SessionSketch } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

const transientResult = resultLine(0, { is_error: true, result: 'API Error: 529 Overloaded.', api_error_status: 529 });

test('a transient failure is retried after a delay with the same conversation id', async () => {
  const group = make([{ name: 'a' }], {}, { speed: 40 });
  const run = group.run(rig.env);
  const first = await begin(group, 'a');
  await first.print(transientResult);
  const paused = await run.event('session_paused', group.id('a'));
  expect(paused).toMatchObject({ reason: 'transient' });
  expect(Date.parse((paused as { retryAt?: string }).retryAt ?? '')).toBeGreaterThan(Date.parse(paused.at));
  await (await begin(group, 'a')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().failed.size).toBe(0);
});

test('transient failures beyond the retries fail the session', async () => {
  const group = make([{ name: 'a', fields: { retries: 1 } }], {}, { speed: 40 });
  const run = group.run(rig.env);
  for (let attempt = 1; attempt <= 2; attempt += 1) await (await begin(group, 'a')).print(transientResult);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ failure: { reason: 'api-error' } });
});

test('a session killed from outside is resumed, but not more often than its retries allow', async () => {
  const group = make(
    [
      { name: 'a', fields: { retries: 1 } },
      { name: 'b', after: ['a'] },
    ],
    {},
    { speed: 40 },
  );
  const run = group.run(rig.env);
  process.kill((await begin(group, 'a')).hello.pid, 'SIGKILL');
  const paused = await run.event('session_paused', group.id('a'));
  expect(paused).toMatchObject({ reason: 'interrupted', message: expect.stringContaining('killed by SIGKILL') });
  await (await begin(group, 'a')).succeed();
  await (await begin(group, 'b')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });

  const other = make([{ name: 'a', fields: { retries: 1 } }], {}, { speed: 40 });
  const again = other.run(rig.env);
  for (let attempt = 1; attempt <= 2; attempt += 1) process.kill((await begin(other, 'a')).hello.pid, 'SIGKILL');
  expect(await again.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(other.state().sessions.get(other.id('a'))?.state).toMatchObject({ failure: { reason: 'signalled' } });
});

/** A group whose clock is so fast that a fake would count as stalled before it has started. */
function makeFast(sketches: readonly SessionSketch[], config: Partial<GroupConfig> = {}): GroupFixture {
  const stallTimeoutMs = 24 * 3_600_000;
  const patient = sketches.map((one) => ({ ...one, fields: { ...one.fields, stallTimeoutMs } }));
  return make(patient, config, { speed: 400 });
}

/** As claude reports it: no tokens were used. */
const unserved = { ...transientResult, modelUsage: {} };

test('an API that served the group and is now unavailable is waited for, whatever retries are left', async () => {
  const group = makeFast([{ name: 'a' }, { name: 'b', after: ['a'], fields: { retries: 1 } }]);
  const run = group.run(rig.env);
  await (await begin(group, 'a')).succeed();
  for (let attempt = 1; attempt <= 5; attempt += 1) await (await begin(group, 'b')).print(unserved);
  await (await begin(group, 'b')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('b'))).toMatchObject({ attempts: 6 });
});

test('a failure of a single request, a paid failure, or one that other sessions do not meet is no outage', async () => {
  const paid = { ...unserved, total_cost_usd: 0.02 };
  for (const result of [{ ...unserved, api_error_status: 500 }, paid]) {
    const group = makeFast([{ name: 'a' }, { name: 'b', after: ['a'], fields: { retries: 1 } }]);
    const run = group.run(rig.env);
    await (await begin(group, 'a')).succeed();
    for (let attempt = 1; attempt <= 2; attempt += 1) await (await begin(group, 'b')).print(result);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  }
});

test('during an outage nothing new starts, and the first answer lets all sessions continue', async () => {
  const sketches = [{ name: 'a' }, { name: 'b', after: ['a'] }, { name: 'c', after: ['a'] }];
  const group = makeFast(sketches, { maxConcurrentSessions: 1 });
  const run = group.run(rig.env);
  await (await begin(group, 'a')).succeed();
  await (await begin(group, 'b')).print(unserved);
  const again = await rig.nextFor(group.claudeId('b'));
  expect(group.state().sessions.get(group.id('c'))).toMatchObject({ attempts: 0 });
  // The fake writes no conversation, so it receives the full prompt; the real claude does not, see tests/system/claude.
  expect(await again.prompt()).toContain('do b');
  await again.init();
  await again.succeed();
  await (await begin(group, 'c')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
