/** Promises: `group plan` shows the size and folder of worktrees, and what does not work in them. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { type FileTree, Repository } from '../../support/git/repository.ts';

let user: User;
beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

async function plan(tree: FileTree, ...options: string[]): Promise<string> {
  const web = join(user.folder, 'acme/web');
  mkdirSync(web, { recursive: true });
  new Repository(web).commit(tree);
  const group = await user.ok('group', 'create', 'shop');
  for (const name of ['a', 'b']) {
    await user.ok('session', 'add', group, '--project', web, '--name', name, '--prompt', 'Do it.', ...options);
  }
  return (await user.run('group', 'plan', group)).stdout;
}

test('group plan shows the size of checkouts, the setup runs and the folder of worktrees', async () => {
  const text = await plan({ 'big.txt': 'x'.repeat(3_000_000) }, '--setup', 'npm ci');
  expect(text).toContain(`${user.folder}/acme/web: 2 worktrees of about 3 MB each; setup runs 2 times`);
  expect(text).toContain(`Worktrees are created below ${user.data}/w.`);
  await user.ok('config', 'set', 'worktrees', join(user.folder, 'trees'));
  expect((await user.run('group', 'plan', 'shop')).stdout).toContain(
    `Worktrees are created below ${user.folder}/trees.`,
  );
});

const manifest = (version: string) => JSON.stringify({ dependencies: { '@acme/money': version } });
const lock = '# yarn lockfile v1\n';
const compose = (context: string) => `services:\n  web:\n    build:\n      context: ${context}\n`;

test('group plan names tools that do not follow symlinks, with the remedy', async () => {
  const text = await plan({
    'package.json': manifest('file:../money'),
    'yarn.lock': lock,
    'compose.yaml': compose('..'),
  });
  expect(text).toContain('acme/web/package.json: yarn 1 copies "file:" dependencies');
  expect(text).toContain('acme/web/compose.yaml: a build with the context ".."');
});

test('group plan names ignored, uncommitted and neighbouring files that worktrees lack', async () => {
  const [web, lib] = [join(user.folder, 'acme/web'), join(user.folder, 'acme/lib')];
  for (const path of [web, lib]) mkdirSync(join(path, '.claude'), { recursive: true });
  new Repository(lib).commit({ 'a.ts': '' });
  const ignore = '.env*\nnode_modules\n*.local.*\n*.log\n';
  const tree = { '.gitignore': ignore, '.worktreeinclude': '.env.test\n', 'package.json': manifest('file:../lib') };
  new Repository(web).commit(tree);
  for (const name of ['.env', '.env.test', '.claude/settings.local.json', 'CLAUDE.local.md', 'x.log', 'new.ts']) {
    writeFileSync(join(web, name), '{}');
  }
  const group = await user.ok('group', 'create', 'shop');
  const add = (name: string, project: string, ...more: string[]) =>
    user.ok('session', 'add', group, '--name', name, '--project', project, '--prompt', 'Do it.', ...more);
  await add('lib', lib, '--isolate', 'worktree');
  await add('web', web);
  const said = async () => (await user.run('group', 'plan', group)).stdout;
  expect(await said()).toContain(`${web}: worktrees lack these files, which git ignores: .env. Add them: list them in`);
  expect(await said()).toContain(`${web} has uncommitted changes (new.ts). The session starts from commit`);
  const alone = `002 web uses ${lib} as it is in your checkout: it does not depend on 001 lib, which changes it`;
  expect(await said()).toContain(alone);
  await user.ok('session', 'edit', `${group}/web`, '--depends-on', 'lib');
  expect(await said()).not.toContain('in your checkout:');
});

test('group plan names installed packages that worktrees lack, until a set-up command installs them', async () => {
  const web = join(user.folder, 'acme/web');
  mkdirSync(join(web, 'node_modules/zod'), { recursive: true });
  const text = await plan({ '.gitignore': 'node_modules\n', 'package-lock.json': '{}', 'package.json': '{}' });
  const lack = `${web}: worktrees lack the packages in node_modules. Install them in each one with --setup 'npm ci'`;
  expect(text.split(lack)).toHaveLength(2);
  for (const name of ['a', 'b']) await user.ok('session', 'edit', `shop/${name}`, '--setup', 'npm ci');
  // A project in another language needs none of them.
  mkdirSync(join(web, 'api'));
  const other = ['--name', 'c', '--project', join(web, 'api'), '--prompt', 'x', '--isolate', 'worktree'];
  await user.ok('session', 'add', 'shop', ...other);
  expect((await user.run('group', 'plan', 'shop')).stdout).not.toContain('worktrees lack');
});

test('group plan names submodules, which are empty in worktrees, until a set-up command fills them', async () => {
  const text = await plan({ '.gitmodules': '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n' });
  expect(text).toContain(
    "acme/web: submodules are empty in worktrees. Fill them in each one with --setup 'git submodule",
  );
  for (const name of ['a', 'b'])
    await user.ok('session', 'edit', `shop/${name}`, '--setup', 'git submodule update --init && make');
  expect((await user.run('group', 'plan', 'shop')).stdout).not.toContain('submodules are empty');
});

test('group plan does not mention symlinks where there are none', async () => {
  const inside = { 'package.json': manifest('file:vendor/money'), 'yarn.lock': lock, 'compose.yaml': compose('.') };
  expect(await plan(inside)).not.toContain('without following symlinks');
  const linked = { 'package.json': manifest('link:../money'), 'yarn.lock': lock };
  expect(await plan(linked, '--isolate', 'none')).not.toContain('Worktrees');
});
