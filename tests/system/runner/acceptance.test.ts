/**
 * Promises: a session is completed only if its acceptance command succeeded; a failure gives it one more turn that is
 * told why; whatever interrupts the acceptance, claude's turn is paid once and never repeated for it.
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

/** The next turn of the session: its fake, and the prompt that it was given. */
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

/** Waits until `go` exists in the project, and leaves word that it began. */
const held = 'echo began >> began; until [ -e go ]; do sleep 0.05; done';
const release = (group: GroupFixture) => writeFileSync(join(group.project('a'), 'go'), '');
const began = (group: GroupFixture) => {
  const file = join(group.project('a'), 'began');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
};

test('a session is completed once its command succeeded', async () => {
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

test('a failure gives one more turn, which is told what the command printed; both turns are counted once', async () => {
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

test('after its last retry the session has failed, and its dependents do not start', async () => {
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
  // A retry begins with a turn that knows why, and has its retries anew.
  const retry = group.run(rig.env, { retryFailed: true });
  const { fake, prompt } = await turn(group);
  expect(prompt).toContain('The acceptance command `echo no; exit 7` failed (exit 7): no.');
  await fake.succeed();
  await (await turn(group)).fake.succeed();
  expect(await retry.result).toMatchObject({ kind: 'settled', status: 'failed' });
});

test('U7: of a quiet failure claude and the user are told the command and that it printed nothing', async () => {
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

test('a pause ends the command; a resume accepts the same work without another turn', async () => {
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

test('a runner that leaves takes the command along; the next one begins it anew', async () => {
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

test('a command that takes too long is ended with all it started', async () => {
  const group = make({ accept: 'sleep 600 & echo waiting; sleep 600', acceptTimeoutMs: 60_000, acceptRetries: 0 }, 60);
  const run = group.run(rig.env);
  await (await turn(group)).fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(recordOf(group)?.state).toMatchObject({
    failure: { reason: 'not-accepted', message: expect.stringMatching(/^The acceptance .* did not end within 60 sec/) },
  });
  expect(markedProcesses(group)).toEqual([]);
});

test('the command sees no login and works in the project; what it leaves running is ended', async () => {
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
