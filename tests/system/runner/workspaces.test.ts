/**
 * Promises: a session in a worktree finds the sibling repositories where the user has them. A sibling that it depends
 * on has the work of all earlier sessions. Changes by commands in the user's own repositories are named.
 */
import { expect, test } from 'bun:test';
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { git } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, rig, withRig } from '../../support/rig-ground.ts';
import { makeInRepositories, recordOf, work } from '../../support/runner/repositories.ts';

withRig();

const isolated = (fields: Partial<SessionDefinition> = {}) => ({ isolate: 'worktree' as const, ...fields });
const beside = (group: GroupFixture, name: string, other: string) => join(group.session(name).worktree, '..', other);
const warningsOf = (group: GroupFixture, name: string) =>
  (recordOf(group, name)?.warnings ?? []).filter(({ code }) => code === 'workspace').map(({ message }) => message);

test('a session finds the work of its dependency set up and unchanged', async () => {
  const setup = 'echo made > ignored';
  const group = makeInRepositories([
    { name: 'lib', in: 'lib', fields: isolated({ setup }) },
    {
      name: 'app',
      in: 'app',
      after: ['lib'],
      fields: isolated({ accept: 'test -e ../lib/ignored -a -e ../lib/new.txt' }),
    },
    {
      name: 'third',
      in: 'other',
      after: ['app'],
      fields: isolated({ accept: 'test -e ../lib/new.txt -a -e ../app/app.txt' }),
    },
  ]);
  const run = group.run(rig.env);
  await work(group, 'lib', { 'new.txt': 'new' });
  const app = await work(group, 'app', { 'app.txt': 'app' });
  await work(group, 'third', {});
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(realpathSync(beside(group, 'app', 'lib'))).toBe(group.session('lib').worktree);
  expect(app.hello.env.CCA_DEP_LIB_DIR).toBe(beside(group, 'app', 'lib'));
  expect(git(group.session('lib').worktree, 'status', '--porcelain')).toBe('');
  // Other siblings are as the user has them.
  expect(realpathSync(beside(group, 'lib', 'app'))).toBe(group.project('app'));
});

test('work of several sessions of a repository is merged, set up once, and removed with the worktree', async () => {
  const setup = 'echo made >> ignored';
  const group = makeInRepositories([
    { name: 'a', in: 'lib', fields: isolated({ setup }) },
    { name: 'b', in: 'lib', fields: isolated({ setup }) },
    {
      name: 'app',
      in: 'app',
      after: ['a', 'b'],
      fields: isolated({ accept: 'ls ../lib > seen; cat ../lib/ignored >> seen' }),
    },
  ]);
  const run = group.run(rig.env);
  await Promise.all([work(group, 'a', { 'a.txt': 'a' }), work(group, 'b', { 'b.txt': 'b' })]);
  const app = await begin(group, 'app');
  const lib = join(app.hello.cwd, '../lib');
  expect(lstatSync(lib).isDirectory()).toBe(true);
  expect(['a.txt', 'b.txt'].filter((name) => existsSync(join(lib, name)))).toEqual(['a.txt', 'b.txt']);
  expect(readFileSync(join(lib, 'ignored'), 'utf8')).toBe('made\n');
  await app.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(git(group.project('lib'), 'branch', '--format=%(refname:short)').split('\n')).toHaveLength(3);
});

test('a retried session builds on the commits when the earlier worktree is gone', async () => {
  const group = makeInRepositories([
    { name: 'lib', in: 'lib', fields: isolated({ setup: 'echo made > ignored' }) },
    { name: 'app', in: 'app', after: ['lib'], fields: isolated({ accept: 'test -e go', acceptRetries: 0 }) },
  ]);
  const run = group.run(rig.env);
  await work(group, 'lib', { 'new.txt': 'new' });
  await work(group, 'app', {});
  expect(await run.result).toMatchObject({ status: 'failed' });
  rmSync(group.session('lib').worktree, { recursive: true });
  const retry = group.run(rig.env, { retryFailed: true });
  await work(group, 'app', { go: '' });
  expect(await retry.result).toMatchObject({ status: 'completed' });
  const lib = beside(group, 'app', 'lib');
  expect(['new.txt', 'ignored'].filter((name) => existsSync(join(lib, name)))).toEqual(['new.txt', 'ignored']);
  expect(lstatSync(lib).isDirectory()).toBe(true);
});

test('conflicting work of earlier sessions fails the session with the names of the files', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'lib', fields: isolated() },
    { name: 'b', in: 'lib', fields: isolated() },
    { name: 'app', in: 'app', after: ['a', 'b'], fields: isolated() },
  ]);
  const run = group.run(rig.env);
  await Promise.all([work(group, 'a', { 'base.txt': 'a\n' }), work(group, 'b', { 'base.txt': 'b\n' })]);
  expect(await run.result).toMatchObject({ status: 'failed' });
  const failed = recordOf(group, 'app')?.state;
  expect(failed).toMatchObject({ failure: { reason: 'merge-conflict' } });
  expect(failed?.status === 'failed' ? failed.failure.message : '').toContain('base.txt');
});

test('a changed linked repository is named once, with the session that changed it', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: isolated({ setup: 'echo x > ../lib/by-setup.txt' }) },
    { name: 'b', in: 'lib', fields: { isolate: 'none' } },
    { name: 'c', in: 'app', after: ['a'], fields: isolated() },
  ]);
  mkdirSync(group.project('tools'));
  git(group.project('tools'), 'init', '--quiet');
  const run = group.run(rig.env);
  const b = await begin(group, 'b');
  writeFileSync(join(b.hello.cwd, 'b.txt'), 'b');
  const a = await begin(group, 'a');
  writeFileSync(join(a.hello.cwd, '../tools/by-session.txt'), 'x');
  await a.succeed();
  await b.succeed();
  await work(group, 'c', {});
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(warningsOf(group, 'a')).toEqual([
    expect.stringContaining(`${group.project('tools')} changed while the session ran`),
  ]);
  expect(warningsOf(group, 'a')[0]).toContain('by-session.txt');
  expect(warningsOf(group, 'c')).toEqual([]);
});

test('a repository that the user changed between two attempts is not named', async () => {
  const fields = isolated({ accept: 'test -e go', acceptRetries: 0 });
  const group = makeInRepositories([{ name: 'a', in: 'app', fields }]);
  mkdirSync(group.project('tools'));
  git(group.project('tools'), 'init', '--quiet');
  const run = group.run(rig.env);
  await work(group, 'a', {});
  expect(await run.result).toMatchObject({ status: 'failed' });
  writeFileSync(join(group.project('tools'), 'by-user.txt'), 'x');
  const retry = group.run(rig.env, { retryFailed: true });
  await work(group, 'a', { go: '' });
  expect(await retry.result).toMatchObject({ status: 'completed' });
  expect(warningsOf(group, 'a')).toEqual([]);
});

test('every session has ten ports, and in a worktree a compose project unless one is named', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: isolated() },
    { name: 'b', in: 'app', fields: isolated() },
    { name: 'c', in: 'named', fields: isolated() },
    { name: 'd', in: 'place', fields: { isolate: 'none' } },
  ]);
  writeFileSync(join(group.project('named'), 'compose.yaml'), 'name: mine\nservices: {}\n');
  git(group.project('named'), 'add', '--all');
  git(group.project('named'), 'commit', '--quiet', '-m', 'compose');
  const run = group.run(rig.env, { overrides: { maxConcurrentSessions: 4 } });
  const fakes = await Promise.all(['a', 'b', 'c', 'd'].map((name) => begin(group, name)));
  const ports = fakes.map(({ hello }) => Number(hello.env.CCA_PORT_BASE));
  expect(new Set(ports).size).toBe(4);
  for (const port of ports) expect(port % 10 === 0 && port >= 20_000 && port <= 29_990).toBe(true);
  const [first = '', second = '', ...others] = fakes.map(({ hello }) => hello.env.COMPOSE_PROJECT_NAME);
  for (const name of [first, second]) expect(name).toMatch(/^fixture-[a-z0-9]+$/);
  expect(first).not.toBe(second);
  expect(others).toEqual([undefined, undefined]);
  expect(fakes.map(({ hello }) => hello.env.CCA_SESSION)).toEqual(['a', 'b', 'c', 'd']);
  const [a, , , d] = fakes;
  expect([a?.hello.env.CCA_WORKSPACE, a?.hello.env.CCA_PROJECT_DIR]).toEqual([a?.hello.cwd, group.project('app')]);
  expect(d?.hello.env.CCA_WORKSPACE).toBe(group.project('place'));
  for (const fake of fakes) await fake.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  // From here on its changes can be detected.
  expect(readFileSync(group.session('d').begin, 'utf8')).toContain(git(group.project('place'), 'rev-parse', 'HEAD'));
  expect(['a', 'b', 'c', 'd'].map((name) => recordOf(group, name)?.portBase)).toEqual(ports);
});
