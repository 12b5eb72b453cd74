/** Promises: `group plan` says what worktrees take, where the work will be, and what does not work in them. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { Repository, type Tree } from '../../support/git/repository.ts';

let user: User;
beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

async function plan(tree: Tree, ...options: string[]): Promise<string> {
  const web = join(user.folder, 'acme/web');
  mkdirSync(web, { recursive: true });
  new Repository(web).commit(tree);
  const group = await user.ok('group', 'create', 'shop');
  for (const name of ['a', 'b']) {
    await user.ok('session', 'add', group, '--project', web, '--name', name, '--prompt', 'Do it.', ...options);
  }
  return (await user.run('group', 'plan', group)).stdout;
}

test('the size of the checkouts, the runs of setup and the folder of the worktrees', async () => {
  const text = await plan({ 'big.txt': 'x'.repeat(3_000_000) }, '--setup', 'npm ci');
  expect(text).toContain(`${user.folder}/acme/web: 2 worktrees of about 3 MB each; setup runs 2 times`);
  expect(text).toContain(`They lie below ${user.data}/w.`);
  await user.ok('config', 'set', 'worktrees', join(user.folder, 'trees'));
  expect((await user.run('group', 'plan', 'shop')).stdout).toContain(`They lie below ${user.folder}/trees.`);
});

const manifest = (version: string) => JSON.stringify({ dependencies: { '@acme/money': version } });
const lock = '# yarn lockfile v1\n';
const compose = (context: string) => `services:\n  web:\n    build:\n      context: ${context}\n`;

test('what does not follow links is named with the way out', async () => {
  const text = await plan({
    'package.json': manifest('file:../money'),
    'yarn.lock': lock,
    'compose.yaml': compose('..'),
  });
  expect(text).toContain('acme/web/package.json: yarn 1 copies "file:" dependencies');
  expect(text).toContain('acme/web/compose.yaml: a build with the context ".."');
});

test('nothing is said of links where none is met', async () => {
  const inside = { 'package.json': manifest('file:vendor/money'), 'yarn.lock': lock, 'compose.yaml': compose('.') };
  expect(await plan(inside)).not.toContain('without following links');
  const linked = { 'package.json': manifest('link:../money'), 'yarn.lock': lock };
  expect(await plan(linked, '--isolate', 'none')).not.toContain('Worktrees');
});
