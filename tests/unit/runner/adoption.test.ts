/**
 * Promises: a runner may go at any time; its workers go on, the next run takes them over with control and cost, no
 * attempt runs twice and nothing is paid twice. Runners leave here inside this process; tests/crash kills real ones.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { submit } from '../../../src/app/submit.ts';
import { noUsage } from '../../../src/core/group.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { idleLine, type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test('a worker left behind goes on, is adopted, metered and interrupted', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  const begun = await first.event('session_started');
  first.signal('SIGHUP');
  expect(await first.result).toMatchObject({ kind: 'left' });
  expect(alive(fake.hello.pid)).toBe(true);
  // Output written while nobody watched is not lost.
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

test('a worker that ended while nobody watched is completed by what it printed', async () => {
  group = makeGroup([{ name: 'one' }, { name: 'two', after: ['one'] }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  await fake.succeed(0.03);
  fake.exit(0);
  await fake.ended;

  const second = group.run(rig.env);
  const two = await rig.nextFor(group.claudeId('two'));
  await two.prompt();
  await two.init();
  await two.succeed(0.04);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const state = group.state();
  expect(state.usage.costUsd).toBeCloseTo(0.07);
  expect(state.sessions.get(group.id('one'))?.attempts).toBe(1);
  expect(group.events().filter((event) => event.type === 'session_starting').length).toBe(2);
});

test('the time in which a worker had nothing to do and nobody watched is not its own', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  await fake.succeed(0.03);
  const hourMs = 3_600_000;
  const { clock } = group.world;
  const { now } = clock;
  clock.now = () => now() + hourMs;

  const second = group.run(rig.env);
  await second.event('session_adopted');
  fake.exit(0);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const { usage } = group.state().sessions.get(group.id('one')) ?? {};
  expect(usage?.costUsd).toBeCloseTo(0.03);
  expect(usage?.durationMs).toBeLessThan(hourMs);
});

test('a worker that the log does not know any more is ended before another one begins', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  const lines = readFileSync(group.paths.events, 'utf8').split('\n');
  const begun = lines.findIndex((line) => line.includes('session_starting'));
  writeFileSync(group.paths.events, `${lines.slice(0, begun).join('\n')}\n`);

  const second = group.run(rig.env);
  const again = await rig.nextFor(group.claudeId('one'));
  expect(alive(fake.hello.pid)).toBe(false);
  await again.prompt();
  await again.init();
  await again.succeed(0.01);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.events().find((event) => event.type === 'session_paused')).toMatchObject({
    reason: 'interrupted',
    message: expect.stringContaining('does not know'),
  });
});

test('one that was just being started when a person took it over is theirs, and begins when they leave', async () => {
  group = makeGroup([{ name: 'one' }]);
  const { groupId, paths, root, world } = group;
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await first.event('session_started');
  first.signal('SIGHUP');
  await first.result;
  fake.die('SIGKILL');
  await fake.ended;
  // Its runner was killed before it could say that it had started it.
  const lines = readFileSync(paths.events, 'utf8').split('\n');
  const begun = lines.findIndex((line) => line.includes('session_starting'));
  writeFileSync(paths.events, `${lines.slice(0, begun + 1).join('\n')}\n`);
  const [sessionId, attachmentId] = [group.id('one'), 'visit'];
  const writer = openGroupWriter(world, root, groupId, 'asked');
  if (!writer.ok) throw new Error(writer.failure.message);
  const { attempt } = JSON.parse(lines[begun] ?? '');
  writer.value.record([
    { type: 'session_attaching', sessionId, attachmentId, process: world.machine.self },
    { type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'user' },
  ]);
  writer.value.close();

  const second = group.run(rig.env);
  expect(await second.event('session_paused')).toMatchObject({
    message: expect.stringContaining('a person takes it over'),
  });
  const left = { kind: 'detach-session', sessionId, attachmentId, usage: noUsage, claudeSessionIds: [] } as const;
  const notes = { line() {}, passing() {} };
  expect(await submit({ world, notes }, { root, groupId, paths }, left)).toMatchObject({ ok: true });
  const again = await rig.nextFor(group.claudeId('one'));
  await again.prompt();
  await again.init();
  await again.succeed(0.01);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('a worker that died without a result is interrupted and tried again as the next attempt', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  fake.die('SIGKILL');
  await fake.ended;

  const second = group.run(rig.env);
  const again = await rig.nextFor(group.claudeId('one'));
  await again.prompt();
  await again.init();
  await again.succeed(0.01);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const events = group.events();
  expect(events.find((event) => event.type === 'session_paused')).toMatchObject({ reason: 'interrupted' });
  expect(group.state().sessions.get(group.id('one'))?.attempts).toBe(2);
});

test('a worker that died while its background work went on is tried again: its first words are no result', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  const task = { type: 'system', subtype: 'task_started', task_id: 'build', task_type: 'local_bash' };
  await fake.printAll([task, resultLine(0.01, { result: 'I wait for the build.' }), idleLine]);
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  fake.die('SIGKILL');
  await fake.ended;

  const second = group.run(rig.env);
  const again = await rig.nextFor(group.claudeId('one'));
  await again.prompt();
  await again.init();
  await again.succeed(0.01, 'It is built.');
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('one'))).toMatchObject({ attempts: 2, state: { result: 'It is built.' } });
});

test('a worker that has printed nothing is ended and started again as the same attempt', async () => {
  group = makeGroup([{ name: 'one' }]);
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

test('a stop that an earlier runner had begun is carried on, and the session goes on afterwards', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGTERM');
  await fake.control('interrupt');
  first.signal('SIGTERM');
  expect(await first.result).toMatchObject({ kind: 'left' });

  const second = group.run(rig.env);
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(resultLine(0.01, { subtype: 'error_during_execution', is_error: true }));
  const again = await rig.nextFor(group.claudeId('one'));
  await again.prompt();
  await again.init();
  await again.succeed(0.05);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.06);
});

test('a stop that was obeyed while nobody watched is an interruption, not a failure', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGINT');
  const requestId = await fake.control('interrupt');
  first.signal('SIGINT');
  expect(await first.result).toMatchObject({ kind: 'left' });
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  const aborted = { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' };
  await fake.print(resultLine(0.01, aborted));

  const second = group.run(rig.env);
  const again = await rig.nextFor(group.claudeId('one'));
  await again.prompt();
  await again.init();
  await again.succeed(0.02);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.events().find((event) => event.type === 'session_paused')).toMatchObject({ reason: 'interrupted' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.03);
});

test('everything the worker started is ended with it, also what left its tree or wiped its environment', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  const tool = await fake.spawn(['sleep', '600']);
  const wiped = await fake.spawn(['sleep', '601'], 'wiped');
  expect(alive(tool) && alive(wiped)).toBe(true);
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect([fake.hello.pid, tool, wiped].filter(alive)).toEqual([]);
});

test('a second runner is refused while the first one lives', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'refused', failure: { reason: 'busy' } });
  await fake.prompt();
  await fake.init();
  await fake.succeed();
  await first.result;
});

test('a project that vanished meanwhile does not keep a finished worker from being counted', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  await first.event('session_identified');
  first.signal('SIGHUP');
  await first.result;
  rmSync(group.project('one'), { recursive: true });
  await fake.succeed(0.02);
  const second = group.run(rig.env);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.02);
});
