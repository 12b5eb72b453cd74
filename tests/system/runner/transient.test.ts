/**
 * Promises: a request that the API did not serve is tried again, not for ever and never for money alone; an outage is
 * waited for. Time runs faster here, nothing else is different.
 */
import { expect, test } from 'bun:test';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

const transientResult = resultLine(0, { is_error: true, result: 'API Error: 529 Overloaded.', api_error_status: 529 });

/** A reply that breaks off in mid-stream: it is paid for, and nothing was done. */
const brokenReply = resultLine(0.02, { is_error: true, result: 'API Error: Overloaded' });

test('a transient failure is tried again after a while, with the same conversation id', async () => {
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

test('transient failures beyond the retries are failures', async () => {
  const group = make([{ name: 'a', fields: { retries: 1 } }], {}, { speed: 40 });
  const run = group.run(rig.env);
  for (let attempt = 1; attempt <= 2; attempt += 1) await (await begin(group, 'a')).print(transientResult);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ failure: { reason: 'api-error' } });
});

/** As claude tells it: nothing was used. */
const unserved = { ...transientResult, modelUsage: {} };

test('an API that served the group and serves nobody now is waited for, whatever is left of the retries', async () => {
  const group = make([{ name: 'a' }, { name: 'b', after: ['a'], fields: { retries: 1 } }], {}, { speed: 400 });
  const run = group.run(rig.env);
  await (await begin(group, 'a')).succeed();
  for (let attempt = 1; attempt <= 5; attempt += 1) await (await begin(group, 'b')).print(unserved);
  await (await begin(group, 'b')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('b'))).toMatchObject({ attempts: 6 });
});

test('what only one request meets, what is paid for, and what others do not meet, is no outage', async () => {
  const paid = { ...unserved, total_cost_usd: 0.02 };
  for (const result of [{ ...unserved, api_error_status: 500 }, paid]) {
    const group = make([{ name: 'a' }, { name: 'b', after: ['a'], fields: { retries: 1 } }], {}, { speed: 400 });
    const run = group.run(rig.env);
    await (await begin(group, 'a')).succeed();
    for (let attempt = 1; attempt <= 2; attempt += 1) await (await begin(group, 'b')).print(result);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  }
});

test('attempts that only cost money use up the retries, with a growing delay', async () => {
  const group = make([{ name: 'a', fields: { retries: 2 } }], {}, { speed: 100 });
  const run = group.run(rig.env);
  for (let attempt = 1; attempt <= 3; attempt += 1) await (await begin(group, 'a')).print(brokenReply);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  const delays = group.events().flatMap((event) => {
    if (event.type !== 'session_paused' || event.retryAt === undefined) return [];
    return [Date.parse(event.retryAt) - Date.parse(event.at)];
  });
  expect(delays).toHaveLength(2);
  expect(delays[1]).toBeGreaterThan(delays[0] ?? Number.POSITIVE_INFINITY);
  expect(group.state().failed.size).toBe(1);
});

test('progress begins the count of retries anew, but not for ever', async () => {
  const group = make([{ name: 'a', fields: { retries: 1 } }], {}, { speed: 400 });
  const run = group.run(rig.env);
  const call = { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make' } };
  const answer = { type: 'tool_result', tool_use_id: 't1', content: 'made', is_error: false };
  for (let attempt = 1; attempt <= 21; attempt += 1) {
    const fake = await begin(group, 'a');
    await fake.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content: [call] } });
    await fake.print({ type: 'user', message: { role: 'user', content: [answer] } });
    await fake.print(brokenReply);
  }
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.state().sessions.get(group.id('a'))).toMatchObject({ attempts: 21, transients: 1 });
}, 60_000);

test.each(['timeoutMs', 'stallTimeoutMs'] as const)(
  'an API that does not answer until the %s of a session is over is waited for like any other',
  async (limit) => {
    const group = make(
      [{ name: 'a' }, { name: 'b', after: ['a'], fields: { retries: 1, [limit]: 60_000 } }],
      {},
      // The last attempt has to begin and to end within its limit, which is real time to the machine.
      { speed: 100 },
    );
    const run = group.run(rig.env);
    await (await begin(group, 'a')).succeed();
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const fake = await begin(group, 'b');
      await fake.print({ type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 6, error: 'server_error' });
      const requestId = await fake.control('interrupt');
      await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
      await fake.print({ ...unserved, subtype: 'error_during_execution', result: undefined });
    }
    await (await begin(group, 'b')).succeed();
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    const reasons = group.events().flatMap((event) => (event.type === 'session_paused' ? [event.reason] : []));
    expect(reasons).toEqual(['transient', 'transient', 'transient']);
  },
  60_000,
);

test('in an outage nothing new is begun, and the first answer lets everything go on', async () => {
  const group = make(
    [{ name: 'a' }, { name: 'b', after: ['a'] }, { name: 'c', after: ['a'] }],
    { maxConcurrentSessions: 1 },
    { speed: 400 },
  );
  const run = group.run(rig.env);
  await (await begin(group, 'a')).succeed();
  await (await begin(group, 'b')).print(unserved);
  const again = await rig.nextFor(group.claudeId('b'));
  expect(group.state().sessions.get(group.id('c'))).toMatchObject({ attempts: 0 });
  // The fake writes no conversation, so it is told everything; the real one is not, see tests/claude.
  expect(await again.prompt()).toContain('do b');
  await again.init();
  await again.succeed();
  await (await begin(group, 'c')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});
