/**
 * Promises: a session is completed only if its acceptance command succeeds. A failure gives it one more turn with the
 * command's output. Interrupting the acceptance never repeats claude's turn.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../../src/claude/launch/environment.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { until } from '../../support/cli.ts';
import { markedProcesses } from '../../support/crash-rig.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { make as makeFixture, rig, withRig } from '../../support/rig-ground.ts';

withRig();

function make(fields: Partial<SessionDefinition>, speed = 1): GroupFixture {
  return makeFixture([{ name: 'a', fields }], {}, { speed });
}

/** The next turn of the session: its fake claude and the prompt it received. */
async function turn(group: GroupFixture): Promise<{ fake: Invocation; prompt: string }> {
  const fake = await rig.nextFor(group.claudeId('a'));
  const prompt = await fake.prompt();
  await fake.init();
  return { fake, prompt };
}

const turnsOf = (group: GroupFixture) =>
  rig.invocations.filter(({ claudeSessionId }) => claudeSessionId === group.claudeId('a')).length;
const recordOf = (group: GroupFixture) => group.state().sessions.get(group.id('a'));
const log = (group: GroupFixture) => readFileSync(group.session('a').acceptLog, 'utf8');

/** Signals that it has started, then waits until `go` exists in the project. */
const held = 'echo began >> began; until [ -e go ]; do sleep 0.05; done';
const release = (group: GroupFixture) => writeFileSync(join(group.project('a'), 'go'), '');
const began = (group: GroupFixture) => {
  const file = join(group.project('a'), 'began');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
};

test('a session is completed when its acceptance command succeeds', async () => {
  const group = make({ accept: 'echo looks good' });
  const run = group.run(rig.env);
  const { fake } = await turn(group);
  await fake.succeed(0.02, 'all done');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(recordOf(group)).toMatchObject({
    state: { status: 'completed', result: 'all done' },
    usage: { costUsd: 0.02 },
  });
  expect(log(group)).toBe('$ echo looks good\nlooks good\n');
});

test('a failed acceptance command gives one more turn with its output, and each turn is counted once', async () => {
  const group = make({ accept: 'test -e fixed || { echo "fixed is missing"; exit 3; }' });
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed(0.02);
  const { fake, prompt } = await turn(group);
  expect(prompt).toContain('was not accepted');
  expect(prompt).toContain('```text\nfixed is missing\n```');
  expect(prompt).toContain('do a');
  writeFileSync(join(group.project('a'), 'fixed'), '');
  await fake.succeed(0.03);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(recordOf(group)?.usage.costUsd).toBeCloseTo(0.05, 9);
  const reasons = group.events().flatMap((event) => (event.type === 'session_paused' ? [event.reason] : []));
  expect(reasons).toEqual(['not-accepted']);
});

test('after its last retry the session fails, and its dependents do not start', async () => {
  const group = makeFixture([
    { name: 'a', fields: { accept: 'echo no; exit 7', acceptRetries: 1 } },
    { name: 'b', after: ['a'] },
  ]);
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed();
  await (await turn(group)).fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(recordOf(group)?.state).toMatchObject({
    status: 'failed',
    failure: { reason: 'not-accepted', message: 'The acceptance command `echo no; exit 7` failed (exit 7): no.' },
  });
  expect(group.state().counts).toMatchObject({ failed: 1, pending: 1 });
  // A retry begins with a turn that quotes the failure, and resets the count of retries.
  const retry = group.run(rig.env, { retryFailed: true });
  const { fake, prompt } = await turn(group);
  expect(prompt).toContain('The acceptance command `echo no; exit 7` failed (exit 7): no.');
  await fake.succeed();
  await (await turn(group)).fake.succeed();
  expect(await retry.result).toMatchObject({ kind: 'settled', status: 'failed' });
});

test('a silent acceptance failure: claude and the user see the command and that it printed nothing', async () => {
  const group = make({ accept: 'test -e done.txt &&\n test -s done.txt' });
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed();
  const { fake, prompt } = await turn(group);
  const message = 'The acceptance command `test -e done.txt && test -s done.txt` failed (exit 1) and printed nothing.';
  expect(prompt).toContain(message);
  expect(group.events()).toContainEqual(expect.objectContaining({ type: 'session_paused', message }));
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(recordOf(group)?.state).toMatchObject({ failure: { message } });
});

test('a pause ends the acceptance command; a resume runs it again without another turn', async () => {
  const group = make({ accept: held });
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed(0.02);
  await until(() => began(group) === 1);
  run.signal('SIGINT');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(markedProcesses(group)).toEqual([]);
  expect(recordOf(group)).toMatchObject({ state: { status: 'paused' }, usage: { costUsd: 0.02 } });
  release(group);
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(turnsOf(group)).toBe(1);
  expect(recordOf(group)?.usage.costUsd).toBeCloseTo(0.02, 9);
  expect(began(group)).toBe(2);
});

test('a runner that exits ends the acceptance command; the next runner starts it again', async () => {
  const group = make({ accept: held });
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed(0.02);
  await until(() => began(group) === 1);
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  expect(recordOf(group)?.state).toMatchObject({ status: 'running', attempt: { accepting: { costUsd: 0.02 } } });
  const next = group.run(rig.env);
  await until(() => began(group) === 2);
  release(group);
  expect(await next.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(turnsOf(group)).toBe(1);
  expect(recordOf(group)?.usage.costUsd).toBeCloseTo(0.02, 9);
});

test('an acceptance command that exceeds its timeout is ended with all its processes', async () => {
  const group = make({ accept: 'sleep 600 & echo waiting; sleep 600', acceptTimeoutMs: 60_000, acceptRetries: 0 }, 60);
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(recordOf(group)?.state).toMatchObject({
    failure: { reason: 'not-accepted', message: expect.stringMatching(/^The acceptance .* did not end within 60 sec/) },
  });
  expect(markedProcesses(group)).toEqual([]);
});

test('the acceptance command gets no login, runs in the project, and its background processes are ended', async () => {
  const group = make({ accept: 'env > seen; pwd > where; setsid sleep 600 >/dev/null 2>&1 &' });
  const run = group.run({ ...rig.env, ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_OAUTH_TOKEN: 'test-token' });
  await (await turn(group)).fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const seen = readFileSync(join(group.project('a'), 'seen'), 'utf8');
  expect(seen).not.toContain('test-key');
  expect(seen).not.toContain('test-token');
  expect(seen).toContain(attemptMark);
  expect(readFileSync(join(group.project('a'), 'where'), 'utf8').trim()).toBe(group.project('a'));
  expect(markedProcesses(group)).toEqual([]);
});
