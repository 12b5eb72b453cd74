/**
 * Promises: a runner executes and answers requests of other processes. All sessions wait for a usage limit and one goes
 * first. Stalls are interrupted, timeouts enforced, and budget is topped up while some is left. Only the clock is
 * faster here.
 */
import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { readGroupProgress } from '../../../src/app/watch/live-view.ts';
import { until } from '../../support/cli.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';

withRig((group) => group.remove());

/** Process state as the kernel reports it: R, S, T … (T: halted). */
function processState(pid: number): string {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0] ?? '';
}

/** The session's next claude, once the runner knows that it works; from then on the clock is faster. */
async function later(group: GroupFixture, name: string, speed: number): Promise<Invocation> {
  const fake = await begin(group, name);
  const isIdentified = () => {
    const state = group.state().sessions.get(group.id(name))?.state;
    return state?.status === 'running' && state.attempt.identified === true;
  };
  await until(isIdentified);
  group.hurry(speed);
  return fake;
}

test('a freeze halts the worker and its child processes, and a thaw continues them', async () => {
  const group = make([{ name: 'a' }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const tool = await a.spawn(['sleep', '600']);
  expect(await run.ask({ kind: 'pause', mode: 'freeze' })).toMatchObject({ done: true });
  // A process stops when it is next scheduled, which may be after the answer.
  await until(() => [a.hello.pid, tool].every((pid) => processState(pid) === 'T'));
  expect(await run.ask({ kind: 'thaw' })).toMatchObject({ done: true });
  expect([a.hello.pid, tool].map(processState)).not.toContain('T');
  await a.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('a silent session is interrupted and resumed, and fails the second time; a running tool is progress', async () => {
  const group = make([{ name: 'a', fields: { stallTimeoutMs: 20_000 } }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const call = { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make' } };
  await a.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content: [call] } });
  const live = () => readGroupProgress(group.world, group.paths.progress, group.state()).live.get(group.id('a'));
  await until(() => live()?.currentTool !== undefined);
  group.hurry(40);
  // Much more than the limit passes while the tool runs.
  for (let meter = 0; meter < 4; meter += 1) await a.control('get_usage');
  expect(group.events().map((event) => event.type)).not.toContain('session_stalled');
  // Slow enough for the notice and the interrupt to be two looks.
  group.hurry(10);
  const answer = { type: 'tool_result', tool_use_id: 't1', content: 'made', is_error: false };
  await a.print({ type: 'user', message: { role: 'user', content: [answer] } });
  expect(await run.event('session_stalled')).toMatchObject({ step: 'notice' });
  await obeyInterrupt(a, 0.01);
  expect(await run.event('session_paused')).toMatchObject({ reason: 'stall' });
  group.hurry(1);
  await obeyInterrupt(await later(group, 'a', 40), 0.01);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ failure: { reason: 'stalled' } });
  expect(group.state().usage.costUsd).toBeCloseTo(0.02);
}, 60_000);

test('a session that exceeds its timeout fails with that reason', async () => {
  const group = make([{ name: 'a', fields: { timeoutMs: 30_000 } }]);
  const run = group.run(rig.env);
  await obeyInterrupt(await later(group, 'a', 40), 0.01);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ failure: { reason: 'timeout' } });
});

test('a usage limit parks two groups of one login; after the reset one session goes first', async () => {
  const first = make([{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
  const second = make([{ name: 'd' }, { name: 'e' }], {}, { root: first.root });
  const runs = [first.run(rig.env), second.run(rig.env)] as const;
  const fakes = await Promise.all([
    ...['a', 'b', 'c'].map((name) => begin(first, name)),
    ...['d', 'e'].map((name) => begin(second, name)),
  ]);
  const resetsAt = Math.ceil(first.world.clock.now() / 1000) + 40;
  const info = { status: 'rejected', resetsAt, rateLimitType: 'five_hour' };
  for (const fake of fakes) {
    await fake.print({ type: 'rate_limit_event', rate_limit_info: info });
    await fake.print(resultLine(0, { is_error: true, result: 'You’ve hit your session limit', api_error_status: 429 }));
  }
  const before = rig.invocations.length;
  await Promise.all(runs.map((run) => run.event('limit_reached')));
  for (const group of [first, second]) group.hurry(20);
  // The next session runs alone until the model has answered it.
  const ids = [...['a', 'b', 'c'].map(first.claudeId), ...['d', 'e'].map(second.claudeId)];
  const coming = new Map(ids.map((id) => [id, rig.nextFor(id)]));
  const probe = await Promise.race(coming.values());
  expect(first.world.clock.now()).toBeGreaterThanOrEqual(resetsAt * 1000);
  await probe.prompt();
  await probe.init();
  // The runner answers a request only after it has checked the gate and decided.
  for (const run of runs) {
    await run.ask({ kind: 'thaw' });
    await run.ask({ kind: 'thaw' });
  }
  expect(first.state().running.size + second.state().running.size).toBe(1);
  expect(rig.invocations.length - before).toBe(1);
  await probe.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content: [] } });
  await probe.succeed();
  coming.delete(probe.claudeSessionId);
  for (const next of coming.values()) {
    const fake = await next;
    await fake.prompt();
    await fake.init();
    await fake.succeed();
  }
  for (const run of runs) expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(first.events().map((event) => event.type)).toContain('limit_lifted');
}, 60_000);

test('a plain 429 is reported as throttling', async () => {
  const group = make([{ name: 'a' }], { onLimit: 'pause' });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  await a.print(
    resultLine(0, { is_error: true, result: 'API Error: 429, not your usage limit', api_error_status: 429 }),
  );
  expect(await run.event('session_paused')).toMatchObject({ message: expect.stringContaining('server is throttling') });
  expect(await run.event('limit_reached')).toMatchObject({ limitType: 'throttled' });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
});

test('with the pause option a usage limit pauses the group', async () => {
  const group = make([{ name: 'a' }, { name: 'b', after: ['a'] }], { onLimit: 'pause' });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const info = { status: 'rejected', resetsAt: Math.ceil(Date.now() / 1000) + 3600, rateLimitType: 'five_hour' };
  await a.print({ type: 'rate_limit_event', rate_limit_info: info });
  await a.print(resultLine(0, { is_error: true, result: 'You’ve hit your session limit', api_error_status: 429 }));
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(group.state().reason).toBe('limit');
});

test('a session that has nearly spent its reservation gets a top-up in the same conversation', async () => {
  const group = make([{ name: 'a' }, { name: 'b' }], { maxBudgetUsd: 2, maxConcurrentSessions: 2 }, { speed: 20 });
  const run = group.run(rig.env);
  const [a, b] = await Promise.all([begin(group, 'a'), begin(group, 'b')]);
  await b.succeed(0.1);
  await run.event('session_completed', group.id('b'));
  const usageId = await a.control('get_usage');
  const session = { total_cost_usd: 0.9, model_usage: {} };
  await a.print({
    type: 'control_response',
    response: { subtype: 'success', request_id: usageId, response: { session } },
  });
  await obeyInterrupt(a, 0.9);
  expect(await run.event('session_paused', group.id('a'))).toMatchObject({ reason: 'top-up' });
  const again = await begin(group, 'a');
  const { args } = again.hello;
  expect(Number(args[args.indexOf('--max-budget-usd') + 1])).toBeCloseTo(1, 2);
  await again.succeed(0.3);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(1.3);
});
