/**
 * Promises: sessions of one repository that may run at once get their own worktrees, and the user's checkout is not
 * changed. A dependent starts with the work of its dependencies. Sessions without a worktree take turns.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/cli.ts';
import { markedProcesses } from '../../support/crash-rig.ts';
import { git, Repository } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';
import { makeInRepositories, recordOf, type Sketch, work } from '../../support/runner/repositories.ts';

withRig();

const workspaceOf = (group: GroupFixture, name: string) => recordOf(group, name)?.workspace;
const files = (folder: string) => git(folder, 'ls-files').split('\n');

function checkoutOf(group: GroupFixture, name: string): string {
  const folder = group.project(name);
  return [
    git(folder, 'rev-parse', 'HEAD'),
    git(folder, 'status', '--porcelain'),
    git(folder, 'branch', '--show-current'),
  ].join();
}

test('a run started by a hook of another repository works in the repositories of its sessions', async () => {
  const isHere = 'test "$(git rev-parse --show-toplevel)" = "$PWD" && git ls-files --error-unmatch base.txt';
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { accept: isHere } }]);
  const other = new Repository(join(group.folder, 'other'));
  other.commit({ 'other.txt': 'other\n' });
  const before = git(other.folder, 'status', '--porcelain');
  const index = join(other.folder, '.git', 'index');
  const call = { GIT_DIR: join(other.folder, '.git'), GIT_WORK_TREE: other.folder, GIT_INDEX_FILE: index };
  const run = group.run({ ...rig.env, ...call });
  const a = await begin(group, 'a');
  expect(a.hello.env).not.toContainKey('GIT_DIR');
  await a.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(git(other.folder, 'status', '--porcelain')).toBe(before);
});

test('two sessions that may run at once each get a worktree, and the checkout is unchanged', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'b', in: 'app' },
  ]);
  const before = checkoutOf(group, 'app');
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const b = await begin(group, 'b');
  for (const [fake, text] of [
    [a, 'from a'],
    [b, 'from b'],
  ] as const) {
    writeFileSync(join(fake.hello.cwd, 'same.txt'), text);
    await fake.succeed();
  }
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(a.hello.cwd).toBe(group.session('a').worktree);
  expect(b.hello.cwd).toBe(group.session('b').worktree);
  expect(workspaceOf(group, 'a')).toMatchObject({ branch: 'cca/fixture/001-a', target: 'main' });
  for (const name of ['a', 'b']) {
    expect(git(group.project('app'), 'show', `cca/fixture/00${name === 'a' ? 1 : 2}-${name}:same.txt`)).toBe(
      `from ${name}`,
    );
    expect(recordOf(group, name)?.state).toMatchObject({ work: { files: 1, insertions: 1, deletions: 0 } });
  }
  expect(checkoutOf(group, 'app')).toBe(before);
  git(group.project('app'), 'fsck', '--strict');
});

test('beside a FABER run, only a session in a worktree that uses FABER is informed of it', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: { context: ['faber'] } },
    { name: 'b', in: 'app' },
  ]);
  // As versions before 2026 left it: committed, so that each worktree has a copy.
  new Repository(group.project('app')).commit({
    '.fractary/faber/.active-run-id': 'run-1\n',
    '.fractary/runs/run-1/state.json': JSON.stringify({ status: 'in_progress' }),
  });
  const run = group.run(rig.env);
  for (const name of ['a', 'b']) await (await begin(group, name)).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  const isTold = (name: string) =>
    recordOf(group, name)?.warnings.some(({ message }) => message.includes('take part in the FABER run'));
  expect([isTold('a'), isTold('b')]).toEqual([true, false]);
});

test('a chain in one repository works in the checkout, one session after another', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'b', in: 'app', after: ['a'] },
  ]);
  const run = group.run(rig.env);
  const a = await work(group, 'a', { 'a.txt': 'a' });
  const b = await work(group, 'b', {});
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect([a.hello.cwd, b.hello.cwd]).toEqual([group.project('app'), group.project('app')]);
  expect(git(group.project('app'), 'status', '--porcelain')).toBe('?? a.txt');
});

test('dependents start with the work of their dependencies, also through another repository', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'lib', in: 'library', after: ['a'] },
    { name: 'b', in: 'app', after: ['lib'] },
    { name: 'c', in: 'app' },
    { name: 'd', in: 'app', after: ['b', 'c'] },
  ]);
  const run = group.run(rig.env);
  await Promise.all([work(group, 'a', { 'a.txt': 'a' }), work(group, 'c', { 'c.txt': 'c' })]);
  await work(group, 'lib', { 'lib.txt': 'lib' });
  const b = await work(group, 'b', { 'b.txt': 'b' });
  expect(existsSync(join(b.hello.cwd, 'a.txt'))).toBe(true);
  // The work in the other repository is not in its checkout.
  const told = readFileSync(join(group.session('b').config, 'CLAUDE.md'), 'utf8');
  expect(told).toContain(`### lib: completed, in \`${workspaceOf(group, 'lib')?.folder}\`, on the branch \`cca/`);
  const d = await begin(group, 'd');
  expect(files(d.hello.cwd).filter((path) => path.length === 5)).toEqual(['a.txt', 'b.txt', 'c.txt']);
  await d.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(recordOf(group, 'b')?.state).toMatchObject({ work: { files: 1 } });
  expect(recordOf(group, 'd')?.state).toMatchObject({ work: { files: 0 } });
});

test('once one session gets a worktree, all sessions without a preference do', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'b', in: 'app' },
    { name: 'alone', in: 'library' },
    { name: 'next', in: 'library', after: ['alone'] },
  ]);
  const run = group.run(rig.env);
  const [alone] = await Promise.all([
    work(group, 'alone', { 'x.txt': 'x' }),
    work(group, 'a', {}),
    work(group, 'b', {}),
  ]);
  const next = await work(group, 'next', {});
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(alone.hello.cwd).toBe(group.session('alone').worktree);
  expect(existsSync(join(next.hello.cwd, 'x.txt'))).toBe(true);
  expect(checkoutOf(group, 'library')).toMatch(/,,main$/);
});

test('a session that builds on work in the checkout runs there; with a worktree it waits for a commit', async () => {
  const group = makeInRepositories([
    { name: 'here', in: 'app', fields: { isolate: 'none' } },
    { name: 'after', in: 'app', after: ['here'] },
    { name: 'apart', in: 'app', after: ['here'], fields: { isolate: 'worktree' } },
  ]);
  const run = group.run(rig.env);
  await work(group, 'here', { 'here.txt': 'here' });
  const after = await work(group, 'after', { 'after.txt': 'after' });
  expect(after.hello.cwd).toBe(group.project('app'));
  expect(await run.result).toMatchObject({ status: 'failed' });
  expect(recordOf(group, 'apart')?.state).toMatchObject({ failure: { reason: 'worktree-failed' } });
  git(group.project('app'), 'add', '--all');
  git(group.project('app'), 'commit', '--quiet', '-m', 'work of the first');
  const retry = group.run(rig.env, { retryFailed: true });
  const apart = await work(group, 'apart', {});
  expect(await retry.result).toMatchObject({ status: 'completed' });
  expect(existsSync(join(apart.hello.cwd, 'here.txt'))).toBe(true);
});

test('each checkout of a repository is a separate starting point', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'b', in: 'feature', of: 'app' },
    { name: 'c', in: 'feature', of: 'app', after: ['a', 'b'] },
  ]);
  const [app, feature] = [group.project('app'), group.project('feature')];
  rmSync(feature, { recursive: true });
  git(app, 'worktree', 'add', '--quiet', '-b', 'feature', feature);
  writeFileSync(join(feature, 'feature.txt'), 'feature');
  git(feature, 'add', '--all');
  git(feature, 'commit', '--quiet', '-m', 'the feature');
  const run = group.run(rig.env);
  const [, b] = await Promise.all([work(group, 'a', { 'a.txt': 'a' }), work(group, 'b', {})]);
  expect(existsSync(join(b.hello.cwd, 'feature.txt'))).toBe(true);
  const c = await work(group, 'c', {});
  expect([existsSync(join(c.hello.cwd, 'a.txt')), existsSync(join(c.hello.cwd, 'feature.txt'))]).toEqual([true, true]);
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect([workspaceOf(group, 'a')?.target, workspaceOf(group, 'b')?.target]).toEqual(['main', 'feature']);
});

test('conflicting work of dependencies fails the session with the names of the files', async () => {
  const group = makeInRepositories([
    { name: 'a', in: 'app' },
    { name: 'b', in: 'app' },
    { name: 'c', in: 'app', after: ['a', 'b'] },
  ]);
  const run = group.run(rig.env);
  await Promise.all([work(group, 'a', { 'base.txt': 'one\n' }), work(group, 'b', { 'base.txt': 'two\n' })]);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  const { state } = recordOf(group, 'c') ?? {};
  expect(state).toMatchObject({ status: 'failed', failure: { reason: 'merge-conflict' } });
  expect(state?.status === 'failed' ? state.failure.message : '').toContain('base.txt');
  expect(existsSync(group.session('c').worktree)).toBe(false);
  git(group.project('app'), 'fsck', '--strict');
  // It continues once the conflict is resolved as the message advises.
  expect(state?.status === 'failed' ? state.failure.next : '').toContain(`merge cca/fixture/001-a`);
  const worktree = group.session('b').worktree;
  expect(() => git(worktree, 'merge', 'cca/fixture/001-a')).toThrow();
  writeFileSync(join(worktree, 'base.txt'), 'one and two\n');
  git(worktree, 'commit', '--quiet', '--all', '-m', 'both');
  const retry = group.run(rig.env, { retryFailed: true });
  const c = await work(group, 'c', {});
  expect(await retry.result).toMatchObject({ status: 'completed' });
  expect(readFileSync(join(c.hello.cwd, 'base.txt'), 'utf8')).toBe('one and two\n');
});

test('sessions that work in the checkout take turns, unless sharing is allowed', async () => {
  const fields = { isolate: 'none' } as const;
  const sketches: readonly Sketch[] = [
    { name: 'a', in: 'app', fields },
    { name: 'b', in: 'app', fields },
  ];
  const turns = makeInRepositories(sketches);
  const run = turns.run(rig.env);
  const a = await begin(turns, 'a');
  expect(turns.state().sessions.get(turns.id('b'))?.state.status).toBe('pending');
  await a.succeed();
  await work(turns, 'b', {});
  expect(await run.result).toMatchObject({ status: 'completed' });

  const shared = makeInRepositories(sketches, { shareCheckouts: true });
  const together = shared.run(rig.env);
  const both = await Promise.all([begin(shared, 'a'), begin(shared, 'b')]);
  for (const fake of both) await fake.succeed();
  expect(await together.result).toMatchObject({ status: 'completed' });
});

test('a paused session resumes in its worktree with its uncommitted changes', async () => {
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { isolate: 'worktree' } }]);
  const run = group.run(rig.env);
  const first = await begin(group, 'a');
  writeFileSync(join(first.hello.cwd, 'half.txt'), 'half');
  await run.event('session_identified');
  run.signal('SIGINT');
  await obeyInterrupt(first, 0);
  expect(await run.result).toMatchObject({ status: 'paused' });
  const again = group.run(rig.env);
  const second = await begin(group, 'a');
  expect(second.hello.cwd).toBe(first.hello.cwd);
  expect(readFileSync(join(second.hello.cwd, 'half.txt'), 'utf8')).toBe('half');
  await second.succeed();
  expect(await again.result).toMatchObject({ status: 'completed' });
  expect(git(group.project('app'), 'show', 'cca/fixture/001-a:half.txt')).toBe('half');
});

test('a new worktree is filled and set up once; if set-up fails, the session names the log', async () => {
  const setup = 'cat ignored; echo again >> ../setups; test -e ../ready || { echo not ready; exit 4; }';
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { isolate: 'worktree', setup } }]);
  writeFileSync(join(group.project('app'), 'ignored'), 'SECRET=1\n');
  writeFileSync(join(group.project('app'), '.worktreeinclude'), 'ignored\n');
  expect(await group.run(rig.env).result).toMatchObject({ status: 'failed' });
  const { state } = recordOf(group, 'a') ?? {};
  const message = `The set-up command \`${setup}\` failed (exit 4): not ready.`;
  expect(state).toMatchObject({ failure: { reason: 'setup-failed', message } });
  const paths = group.session('a');
  expect(readFileSync(paths.setupLog, 'utf8')).toContain('SECRET=1');
  writeFileSync(join(paths.worktree, '../ready'), '');
  const retry = group.run(rig.env, { retryFailed: true });
  const fake = await begin(group, 'a');
  await fake.succeed();
  expect(await retry.result).toMatchObject({ status: 'completed' });
  expect(readFileSync(join(paths.worktree, '../setups'), 'utf8')).toBe('again\nagain\n');
  expect(recordOf(group, 'a')?.state).toMatchObject({ work: { files: 0 } });
});

test('a pause ends a set-up command that never finishes', async () => {
  const setup = 'touch ../begun; sleep 600';
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { isolate: 'worktree', setup } }]);
  const run = group.run(rig.env);
  await until(() => existsSync(join(group.session('a').worktree, '../begun')));
  run.signal('SIGINT');
  expect(await run.result).toMatchObject({ status: 'paused' });
  expect(markedProcesses(group)).toEqual([]);
});

test('a session that was expected to change files and did not gets a warning', async () => {
  for (const isolate of ['worktree', 'none'] as const) {
    const group = makeInRepositories([
      { name: 'idle', in: 'app', fields: { isolate, expectChanges: true } },
      { name: 'busy', in: 'other', fields: { isolate, expectChanges: true } },
    ]);
    const run = group.run(rig.env);
    await Promise.all([work(group, 'idle', {}), work(group, 'busy', { 'new.txt': 'new' })]);
    expect(await run.result).toMatchObject({ status: 'completed' });
    const warned = (name: string) => recordOf(group, name)?.warnings.map(({ code }) => code);
    expect({ isolate, idle: warned('idle'), busy: warned('busy') }).toEqual({
      isolate,
      idle: ['no-changes'],
      busy: [],
    });
  }
});

test("files left by an acceptance command are not committed as the session's work", async () => {
  const accept = 'echo report > report.xml; echo changed >> base.txt; test -e ready.txt';
  const group = makeInRepositories([
    { name: 'a', in: 'app', fields: { isolate: 'worktree', accept, acceptIn: 'worktree' } },
  ]);
  const run = group.run(rig.env);
  const first = await work(group, 'a', { 'new.txt': 'new' });
  git(first.hello.cwd, 'status');
  await work(group, 'a', { 'ready.txt': 'ready' });
  expect(await run.result).toMatchObject({ status: 'completed' });
  const changed = git(group.project('app'), 'diff', '--name-only', 'main', 'cca/fixture/001-a').split('\n');
  expect(changed).toEqual(['base.txt', 'new.txt', 'ready.txt']);
  expect(existsSync(join(first.hello.cwd, 'report.xml'))).toBe(false);
  const warned = recordOf(group, 'a')?.warnings.map(({ message }) => message) ?? [];
  expect(warned.join()).toContain('changed tracked files');
});

test('with --no-commit the work stays uncommitted in the worktree', async () => {
  const group = makeInRepositories([{ name: 'a', in: 'app', fields: { isolate: 'worktree', commit: false } }]);
  const run = group.run(rig.env);
  const fake = await work(group, 'a', { 'new.txt': 'new' });
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(git(fake.hello.cwd, 'status', '--porcelain')).toBe('?? new.txt');
  expect(recordOf(group, 'a')?.state).toMatchObject({ work: { files: 0 } });
});
