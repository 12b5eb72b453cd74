/**
 * Promises: workers survive the end of their runner. The next runner adopts them, controls them and counts their cost,
 * no attempt runs twice and nothing is charged twice. Here the runners live in the test process; `tests/system/crash`
 * kills real ones.
 */
import { expect, test } from 'bun:test';
import { resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test('a worker without a runner continues and is adopted, metered and interrupted by the next runner', async () => {
  group = make([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await begin(group, 'one');
  await first.event('session_identified');
  const begun = await first.event('session_started');
  first.signal('SIGHUP');
  expect(await first.result).toMatchObject({ kind: 'left' });
  expect(alive(fake.hello.pid)).toBe(true);
  // Output written without a runner is not lost.
  await fake.print({ type: 'assistant', message: { id: 'm1', content: [{ type: 'text', text: 'alone' }] } });

  const second = group.run(rig.env);
  expect(await second.event('session_adopted')).toMatchObject({
    process: 'process' in begun && begun.process,
    attempt: 1,
  });
  second.signal('SIGTERM');
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(
    resultLine(0.02, { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }),
  );
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(alive(fake.hello.pid)).toBe(false);
  const record = group.state().sessions.get(group.id('one'));
  expect(record?.state).toMatchObject({ status: 'paused', reason: 'signal' });
  expect(record?.usage.costUsd).toBeCloseTo(0.02);
  expect(record?.attempts).toBe(1);
});

test('a worker that completed without a runner is completed from its output', async () => {
  group = make([{ name: 'one' }, { name: 'two', after: ['one'] }]);
  const first = group.run(rig.env);
  const fake = await begin(group, 'one');
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  await fake.succeed(0.03);
  fake.exit(0);
  await fake.ended;

  const second = group.run(rig.env);
  const two = await begin(group, 'two');
  await two.succeed(0.04);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const state = group.state();
  expect(state.usage.costUsd).toBeCloseTo(0.07);
  expect(state.sessions.get(group.id('one'))?.attempts).toBe(1);
  expect(group.events().filter((event) => event.type === 'session_starting').length).toBe(2);
});

test('a worker that died without a result is interrupted and retried as the next attempt', async () => {
  group = make([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await begin(group, 'one');
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  fake.die('SIGKILL');
  await fake.ended;

  const second = group.run(rig.env);
  const again = await begin(group, 'one');
  await again.succeed(0.01);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const events = group.events();
  expect(events.find((event) => event.type === 'session_paused')).toMatchObject({ reason: 'interrupted' });
  expect(group.state().sessions.get(group.id('one'))?.attempts).toBe(2);
});

test('a worker without output is ended and started again as the same attempt', async () => {
  group = make([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  first.signal('SIGHUP');
  await first.result;

  const second = group.run(rig.env);
  const again = await rig.nextFor(group.claudeId('one'));
  await fake.ended;
  expect(alive(fake.hello.pid)).toBe(false);
  expect(again.hello.env.CLAUDE_CODE_AGENT_ATTEMPT).toBe(fake.hello.env.CLAUDE_CODE_AGENT_ATTEMPT);
  expect(await again.prompt()).toContain('do one');
  await again.init();
  await again.succeed();
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('one'))?.attempts).toBe(1);
});

test('a stop begun by the previous runner is completed, and the session resumes afterwards', async () => {
  group = make([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await begin(group, 'one');
  await first.event('session_identified');
  first.signal('SIGTERM');
  await fake.control('interrupt');
  first.signal('SIGTERM');
  expect(await first.result).toMatchObject({ kind: 'left' });

  const second = group.run(rig.env);
  await obeyInterrupt(fake, 0.01);
  const again = await begin(group, 'one');
  await again.succeed(0.05);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.06);
});
