/**
 * Promises, with the real claude in a rehearsal: sessions of two repositories work in their own worktrees, one starts
 * with the work of another, and the checkouts are unchanged until the merge, which moves both main branches or none.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { git, Repository } from '../../support/git/repository.ts';

let user: User;
let app: string;
let library: string;

/** Each session reads the existing files and writes a file of its own. */
const script = `
version: 1
sessions:
  a:
    steps:
      - { tool: Write, input: { file_path: "{{cwd}}/a.txt", content: "from a\\n" } }
      - { text: a is done }
  b:
    steps:
      - { tool: Bash, input: { command: "cat a.txt > b.txt; echo 'and b' >> b.txt" } }
      - { text: b is done }
  c:
    steps:
      - { tool: Bash, input: { command: "cat a.txt > c.txt" } }
      - { text: c is done }
  d:
    steps:
      - { tool: Bash, input: { command: "echo 'from d' > d.txt && git add d.txt && git commit -qm 'by claude'" } }
      - { text: d is done }
`;

beforeEach(() => {
  user = new User();
  app = user.project('app with blanks');
  library = user.project("li'brary");
  for (const folder of [app, library]) new Repository(folder).commit({ 'readme.md': 'hello\n' });
  for (const folder of [app, library]) {
    git(folder, 'config', 'user.name', 'Ann');
    git(folder, 'config', 'user.email', 'ann@example.org');
  }
  writeFileSync(join(user.folder, 'script.yaml'), script.replaceAll('{{cwd}}/', ''));
});
afterEach(() => user.remove());

async function makeGroup(options: Readonly<Record<string, readonly string[]>> = {}): Promise<string> {
  const group = await user.ok('group', 'create', 'hand-over');
  const add = (name: string, folder: string, ...after: string[]) =>
    user.ok(
      ...['session', 'add', group, '--name', name, '--project', folder, '--prompt', `do ${name}`],
      ...['--allowed-tools', 'Bash', ...after.flatMap((other) => ['--depends-on', other]), ...(options[name] ?? [])],
    );
  await add('a', app);
  await add('b', app, 'a');
  await add('d', library, ...[]);
  await add('c', app, 'a', 'd');
  return group;
}

const rehearse = (group: string) =>
  user.run('group', 'run', group, '--rehearse', 'script.yaml', '--keep', '--output', 'json');
const standing = (folder: string) => [git(folder, 'rev-parse', 'HEAD'), git(folder, 'status', '--porcelain')].join();
const commits = (folder: string) => git(folder, 'log', '--format=%s', '--no-merges', 'main').split('\n').length;

test("separate worktrees; dependents start with their dependencies' work; both main branches advance", async () => {
  const group = await makeGroup();
  const before = [standing(app), standing(library)];
  const run = await rehearse(group);
  expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
  expect([standing(app), standing(library)]).toEqual(before);
  expect(git(app, 'worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(4);

  const stat = await user.ok('group', 'diff', group, '--stat');
  for (const file of ['a.txt', 'b.txt', 'c.txt', 'd.txt']) expect(stat).toContain(file);
  expect(await user.ok('session', 'diff', `${group}/b`)).toContain('+and b');

  expect((await user.run('group', 'merge', group)).code).toBe(0);
  expect(readFileSync(join(app, 'b.txt'), 'utf8')).toBe('from a\nand b\n');
  expect(readFileSync(join(app, 'c.txt'), 'utf8')).toBe('from a\n');
  expect(readFileSync(join(library, 'd.txt'), 'utf8')).toBe('from d\n');
  for (const folder of [app, library]) {
    expect(git(folder, 'status', '--porcelain')).toBe('');
    git(folder, 'fsck', '--strict');
    expect(git(folder, 'worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(1);
    expect(git(folder, 'branch', '--list', 'cca/*')).toBe('');
  }
  expect([commits(app), commits(library)]).toEqual([4, 2]);
  expect(git(app, 'log', '-1', '--format=%an', '--no-merges')).toBe('Ann');
}, 120_000);

test('one failing check of the merge keeps every branch of every repository where it is', async () => {
  // It passes in its own worktree and fails only next to the work of others.
  const group = await makeGroup({ c: ['--accept', 'test ! -e b.txt'] });
  expect((await rehearse(group)).code).toBe(0);
  const before = [standing(app), standing(library)];
  const merge = await user.run('group', 'merge', group);
  expect(merge.code).toBe(1);
  expect(merge.stderr).toContain('c');
  expect([standing(app), standing(library)]).toEqual(before);
  for (const folder of [app, library]) git(folder, 'fsck', '--strict');
  expect(git(app, 'worktree', 'list', '--porcelain').match(/^worktree /gm)).toHaveLength(4);
  expect(existsSync(join(app, 'a.txt'))).toBe(false);
}, 120_000);
