/**
 * Promises: a file that set-up creates or changes in a worktree, such as a lockfile, is available to the session and
 * its checks but not part of its work until the session changes it. It keeps no worktree and is never listed as lost.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { git, Repository, writeTree } from '../../support/git/repository.ts';

withNight();

test("commit and merge leave out changes made by set-up alone, and include the session's changes to them", async () => {
  const project = nightUser.project('web');
  new Repository(project).commit({ 'lock.json': 'old\n', 'gone.txt': 'gone\n', 'src/a.ts': 'a\n' });
  const setup = 'echo new > lock.json; echo made > made.json; rm gone.txt';
  const own = ['--project', project, '--isolate', 'worktree', '--setup', setup];
  const accept = ['--accept', 'grep -q new lock.json && test -e made.json'];
  const sessions = { a: [...own, ...accept], b: own, idle: [...own, '--expect-changes'] };
  const group = await nightUser.group('auth', sessions, '--no-warm-cache');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [a, b, idle] = await Promise.all(['a', 'b', 'idle'].map((name) => nightUser.begun(group, name)));
  if (!a || !b || !idle) throw new Error('all sessions have a worker');
  writeTree(a.hello.cwd, { 'src/a.ts': 'changed\n' });
  expect(await nightUser.ok('session', 'diff', 'auth/a', '--stat')).toMatch(/^src\/a\.ts.*\n 1 file changed/);
  writeTree(b.hello.cwd, { 'made.json': 'made\nmore\n' });
  git(b.hello.cwd, 'add', '--all');
  await Promise.all([a, b, idle].map((fake) => fake.succeed()));
  expect(await run.finished).toMatchObject({ code: 0 });
  const changed = async (name: string) => {
    const { base, commit } = await nightUser.json<{ base: string; commit: string }>('session', 'diff', `auth/${name}`);
    return git(project, 'diff', '--name-only', base, commit);
  };
  expect([await changed('a'), await changed('b'), await changed('idle')]).toEqual(['src/a.ts', 'made.json', '']);
  const shown = await nightUser.json<{ warnings: { code: string }[] }>('session', 'show', 'auth/a');
  expect(shown.warnings).toEqual([]);
  expect(await nightUser.ok('session', 'show', 'auth/idle')).toContain('was expected to change files');
  const merged = await nightUser.run('group', 'merge', group);
  expect({ code: merged.code, said: `${merged.stdout}${merged.stderr}` }).toEqual({
    code: 0,
    said: expect.not.stringMatching(/Kept|uncommitted|Left out/),
  });
  expect(git(project, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(['lock.json', 'made.json', 'src/a.ts'].map((name) => readFileSync(join(project, name), 'utf8'))).toEqual([
    'old\n',
    'made\nmore\n',
    'changed\n',
  ]);
  expect(existsSync(join(project, 'gone.txt'))).toBe(true);
}, 60_000);
