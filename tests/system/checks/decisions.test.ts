/**
 * Promises: what a person decides about changed tests holds, an unproven change is sent back, a check that needs
 * uncommitted files is accepted without another turn once that is allowed, and a killed check starts again.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inboxOf } from '../../../src/app/inbox.ts';
import { until } from '../../support/cli.ts';
import { writeTree } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { runInProcess } from '../../support/in-process.ts';
import { rig, withRig } from '../../support/rig-ground.ts';
import { makeInRepositories, recordOf, work } from '../../support/runner/repositories.ts';

withRig();

const accept = '! grep -q broken base.txt && grep -q new test/a.txt';
const isolated = { accept, acceptRetries: 1, isolate: 'worktree' } as const;
const reasonOf = (group: GroupFixture) => {
  const state = recordOf(group, 'a')?.state;
  return state?.status === 'paused' ? state.reason : state?.status === 'failed' ? state.failure.reason : state?.status;
};

/** With a test that is there before the session, which then changes it. */
function withTest(fields: object = {}): GroupFixture {
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { ...isolated, ...fields } }]);
  commitTest(group);
  return group;
}

function commitTest(group: GroupFixture): void {
  writeTree(group.project('app'), { 'test/a.txt': 'old\n' });
  Bun.spawnSync(['git', 'add', '-A'], { cwd: group.project('app') });
  const identity = ['-c', 'user.name=T', '-c', 'user.email=t@example.org'];
  Bun.spawnSync(['git', ...identity, 'commit', '-qm', 'Test'], { cwd: group.project('app') });
}

test('a change of tests waits for a decision; denied with a sentence, it goes back', async () => {
  const group = withTest();
  const run = group.run(rig.env);
  await work(group, 'a', { 'test/a.txt': 'new\n' });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(reasonOf(group)).toBe('guard-changed');
  const [item] = inboxOf(group.state());
  expect(item).toMatchObject({
    kind: 'guard',
    options: ['allow', 'deny'],
    text: expect.stringContaining('test/a.txt'),
  });
  expect(readFileSync(item?.diff ?? '', 'utf8')).toContain('+new');
  expect(item?.logs?.map((log) => readFileSync(log, 'utf8').split('\n')[0])).toEqual([`$ ${accept}`, `$ ${accept}`]);

  const cli = (...args: string[]) =>
    runInProcess({ args, cwd: '/', env: { HOME: '/nonexistent', CLAUDE_CODE_AGENT_HOME: group.root } });
  const { stdout } = await cli('inbox');
  for (const text of ['guard', item?.diff ?? '', `answer ${item?.id} allow`]) expect(stdout).toContain(text);
  expect(await cli('answer', item?.id ?? '', 'perhaps')).toMatchObject({ code: 2 });
  expect(await cli('answer', item?.id ?? '', 'deny', '--note', 'Keep the old test.')).toMatchObject({ code: 0 });
  expect(await cli('answer', item?.id ?? '', 'allow')).toMatchObject({ code: 2 });
  const shown = (await cli('group', 'show', group.groupId)).stdout;
  expect(shown).toContain('Your answer is recorded and applies when the group runs.');
  expect(shown).toContain('All questions are answered');
  expect((await cli('session', 'show', `${group.groupId}/a`)).stdout).toContain('Your answer is recorded');
  const later = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('a'));
  const prompt = await fake.prompt();
  expect(prompt).toContain('Keep the old test.');
  expect(prompt).toContain('changed test/a.txt');
  await fake.init();
  await fake.succeed();
  expect(await later.result).toMatchObject({ status: 'paused' });
  // It came back with the same change, which now is allowed, after the run has ended.
  const [second] = inboxOf(group.state());
  expect(await cli('answer', second?.id ?? '', 'allow')).toMatchObject({ code: 0 });
  const logs = readFileSync(group.session('a').acceptLog, 'utf8');
  expect(await group.run(rig.env).result).toMatchObject({ status: 'completed' });
  expect(readFileSync(group.session('a').acceptLog, 'utf8')).toBe(logs);
  expect(recordOf(group, 'a')?.evidence?.guarded).toEqual([{ path: 'test/a.txt', change: 'changed' }]);
});

test('allowed in a group where another session failed, the advised command does not try that one again', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: isolated },
    { name: 'b', in: 'lib', fields: { ...isolated, accept: 'false', acceptRetries: 0 } },
  ]);
  commitTest(group);
  const run = group.run(rig.env);
  await work(group, 'b', { 'new.txt': 'new\n' });
  await work(group, 'a', { 'test/a.txt': 'new\n' });
  await run.result;
  expect(reasonOf(group)).toBe('guard-changed');
  const cli = (...args: string[]) =>
    runInProcess({ args, cwd: '/', env: { HOME: '/nonexistent', CLAUDE_CODE_AGENT_HOME: group.root } });
  const { stdout } = await cli('answer', inboxOf(group.state())[0]?.id ?? '', 'allow');
  expect(stdout).toMatch(new RegExp(`Continue with: claude-code-agent group run ${group.groupId}$`, 'm'));
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(recordOf(group, 'a')?.state.status).toBe('completed');
  const turns = (name: string) => rig.invocations.filter((one) => one.claudeSessionId === group.claudeId(name)).length;
  expect([turns('a'), turns('b')]).toEqual([1, 1]);
});

test('with prove, a change that its tests do not need is sent back, then fails', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: { ...isolated, accept: 'test -e base.txt', prove: true } },
  ]);
  const run = group.run(rig.env);
  await work(group, 'a', { 'new.txt': 'new\n' });
  const again = await rig.nextFor(group.claudeId('a'));
  expect(await again.prompt()).toContain('The tests do not prove the change: they also pass without it.');
  await again.init();
  await again.succeed();
  expect(await run.result).toMatchObject({ status: 'failed' });
  expect(reasonOf(group)).toBe('not-proven');
});

test('a check that needs an ignored file fails without another turn; allowed, it is only checked again', async () => {
  const needs = { ...isolated, accept: 'test -e ignored' };
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: needs }]);
  const run = group.run(rig.env);
  await work(group, 'a', { ignored: 'needed\n', 'new.txt': 'new\n' });
  expect(await run.result).toMatchObject({ status: 'failed' });
  const record = recordOf(group, 'a');
  expect(record?.evidence?.needsUncommitted).toEqual(['ignored']);
  expect(record?.state).toMatchObject({
    failure: {
      message: expect.stringContaining('in no commit: ignored.'),
      next: expect.stringContaining('--accept-in'),
    },
  });
  const args = ['session', 'edit', `${group.groupId}/a`, '--accept-in', 'worktree'];
  const env = { HOME: '/nonexistent', CLAUDE_CODE_AGENT_HOME: group.root };
  expect(await runInProcess({ args, cwd: '/', env })).toMatchObject({ code: 0 });
  expect(await group.run(rig.env, { retryFailed: true }).result).toMatchObject({ status: 'completed' });
  expect(recordOf(group, 'a')?.evidence).toMatchObject({ runs: [{ where: 'worktree', exitCode: 0 }] });
  const turns = rig.invocations.filter(({ claudeSessionId }) => claudeSessionId === group.claudeId('a'));
  expect(turns).toHaveLength(1);
});

test('a check that fails without packages or submodules says how to get them', async () => {
  const group = makeInRepositories([
    {
      name: 'a',
      in: 'app',
      fields: { accept: 'test -e node_modules/zod', acceptRetries: 0, isolate: 'worktree' },
    },
  ]);
  const app = group.project('app');
  mkdirSync(join(app, 'node_modules/zod'), { recursive: true });
  writeTree(app, { 'package.json': '{}', 'package-lock.json': '{}', '.gitmodules': '[submodule "lib"]\n' });
  const run = group.run(rig.env);
  await work(group, 'a', { 'new.txt': 'new\n' });
  expect(await run.result).toMatchObject({ status: 'failed' });
  const next = expect.stringContaining(
    `${app}: submodules are empty in worktrees. Fill them in each one with --setup 'git submodule update --init'. ` +
      `${app}: worktrees lack the packages in node_modules. Install them in each one with --setup 'npm ci'.`,
  );
  expect(recordOf(group, 'a')?.state).toMatchObject({ failure: { reason: 'not-accepted', next } });
});

test('after a runner that left during a fresh check, the next one checks again and cleans up', async () => {
  const waits = 'until [ -e "$CCA_PROJECT_DIR/go" ]; do sleep 0.05; done';
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { ...isolated, accept: waits } }]);
  const run = group.run(rig.env);
  await work(group, 'a', { 'new.txt': 'new\n' });
  const worktrees = dirname(dirname(dirname(group.session('a').worktree)));
  await until(() => readdirSync(worktrees).length === 2);
  await until(() => existsSync(group.session('a').acceptLog));
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  expect(readdirSync(worktrees)).toHaveLength(2);
  writeFileSync(join(group.project('app'), 'go'), '');
  expect(await group.run(rig.env).result).toMatchObject({ status: 'completed' });
  expect(readdirSync(worktrees)).toHaveLength(1);
});

test('the check sees the new work of a sibling, as the session does', async () => {
  const group = makeInRepositories([
    { name: 'lib', in: 'lib', fields: { isolate: 'worktree' } },
    {
      ...{ name: 'app', in: 'app', after: ['lib'] },
      fields: { isolate: 'worktree', accept: 'grep -q new ../lib/api.txt && grep -q new "$CCA_DEP_LIB_DIR/api.txt"' },
    },
  ]);
  const run = group.run(rig.env);
  await work(group, 'lib', { 'api.txt': 'new\n' });
  await work(group, 'app', { 'uses.txt': 'new\n' });
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(recordOf(group, 'app')?.evidence?.runs).toMatchObject([{ where: 'fresh', exitCode: 0 }]);
});
