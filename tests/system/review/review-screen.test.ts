/**
 * Promises of the review in a real terminal: the list beside the details, keys that merge, send back, discard and say
 * why they cannot; the terminal is restored.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MergeUser } from '../../support/cli/merge-ground.ts';
import { launcher } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { git } from '../../support/git/repository.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

let user: MergeUser;
let terminal: TestTerminal | undefined;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => {
  terminal?.close();
  user.remove();
});

test('review: a person merges, sends back and discards work without leaving the screen', async () => {
  const group = user.mergeGroup('night', [
    { name: 'secret', repository: 'shop', tree: { 'a.js': "const key = 'AKIAIOSFODNN7EXAMPLE';\n" } },
    { name: 'good', repository: 'shop', tree: { 'good.md': 'good\n' } },
    { name: 'other', repository: 'shop', tree: { 'other.md': 'other\n' } },
    { name: 'broken', repository: 'shop', status: 'failed' },
  ]);
  const before = user.tip('shop');
  terminal = new TestTerminal([launcher, 'review', group.id], {
    cwd: user.folder,
    env: user.env,
    columns: 120,
    rows: 40,
  });
  await terminal.shows('3 of 4 sessions completed', 'Not completed', 'Look at this first', 'Safe to merge', 'q leave');
  await terminal.shows('It ended without a result.');
  terminal.type('m');
  await terminal.shows('m merge: The session is not completed.');

  terminal.type('j');
  await terminal.shows('AWS access key', "+const key = 'AKIAIOSFODNN7EXAMPLE';", 'Do secret.', 'secret is done.');
  terminal.type('d');
  await terminal.shows('y: discard 001 secret?');
  terminal.type('y');
  await terminal.shows('001 secret: Removed 001 secret', '2 of 3 sessions completed');
  expect(user.tip('shop', group.branch('secret'))).toBe(group.commit('secret'));
  expect(group.state.sessions.has(group.session('secret'))).toBe(false);

  await terminal.shows('good is done.');
  terminal.type('m');
  await terminal.shows('002 good: Merged 1 session into main', '1 safe to merge, 1 merged.');
  expect(group.mergedInto('good')).toBe('main');
  expect(user.tip('shop')).not.toBe(before);

  terminal.type('j');
  await terminal.shows('other is done.');
  terminal.type('b');
  await terminal.shows('To 003 other:');
  terminal.type('Shorter, please.');
  await terminal.shows('To 003 other: Shorter, please.');
  terminal.type('\u001b[200~ Keep the title.\rNo lists.\u001b[201~');
  await terminal.until((text) => /Shorter, please\. Keep the title\. *\nNo lists\./.test(text));
  terminal.type(key.escape);
  await terminal.until((text) => !text.includes('To 003 other'));
  terminal.type('?');
  await terminal.shows('send it back with words');
  terminal.type('?');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  const { isAlternate, isCooked, showsCursor } = terminal;
  expect({ isAlternate, isCooked, showsCursor }).toEqual({ isAlternate: false, isCooked: true, showsCursor: true });
}, 120_000);

test('review: merging work also merges what it was built on, and the screen and a later review say so', async () => {
  const group = user.mergeGroup('night', [
    { name: 'base', repository: 'shop', tree: { 'base.md': 'base\n' } },
    { name: 'more', repository: 'shop', tree: { 'more.md': 'more\n' }, after: ['base'] },
    { name: 'other', repository: 'shop', tree: { 'other.md': 'other\n' } },
  ]);
  terminal = new TestTerminal([launcher, 'review', group.id], { cwd: user.folder, env: user.env });
  await terminal.shows('3 safe to merge.', '001 base');
  terminal.type('j');
  await terminal.shows('more is done.');
  terminal.type('m');
  await terminal.shows('002 more: Merged 1 session into main', '1 safe to merge, 2 merged.');
  terminal.type('k');
  await terminal.shows('base is done.');
  terminal.type('m');
  await terminal.shows('m merge: It is merged into main.');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  expect(await user.ok('review', group.id)).toMatch(/Merged \(2\)\n *001 base +shop +merged /);
}, 60_000);

test('review opens from the dashboard; 80 columns without colours have room for reasons and changes', async () => {
  const tree = { 'a.js': `const key = 'AKIAIOSFODNN7EXAMPLE';\n${'more();\n'.repeat(30)}` };
  const group = user.mergeGroup('night', [
    { name: 'secret', repository: 'shop', tree },
    { name: 'broken', repository: 'shop', status: 'failed', tree: { 'half.md': 'half\n' } },
  ]);
  const env = { ...user.env, NO_COLOR: '1' };
  terminal = new TestTerminal([launcher, 'group', 'watch', group.id], { cwd: user.folder, env });
  await terminal.shows('001 secret', 'R review', '+1 -0');
  terminal.type('R');
  await terminal.shows('›✗ 002 broken', '! 001 secret', 'AWS access key', '1 of 2');
  terminal.type('j');
  await terminal.shows('›! 001 secret', 'below: space', 'Do secret.');
  terminal.type(key.enter);
  await terminal.shows('+const key', '+more();', 'below: space');
  terminal.type('      ');
  await terminal.until((text) => / end ─/.test(text));
  terminal.type(key.enter);
  await terminal.shows('›! 001 secret');
  // Why an action failed, and the end of a long sentence, need more than one line.
  terminal.type('b');
  terminal.type(`${'Keep the key out of the sources. '.repeat(4)}Use the vault.`);
  await terminal.shows('To 001 secret: Keep the key', 'vault.▏ (Enter sends');
  terminal.type(key.escape);
  await terminal.until((text) => !text.includes('To 001 secret'));
  await Bun.write(join(user.folderOf('shop'), 'README.md'), 'changed\n');
  git(user.folderOf('shop'), 'add', '--all');
  terminal.type('m');
  await terminal.shows('y: merge 001 secret?');
  terminal.type('y');
  await terminal.shows('001 secret: ', 'stash');
  expect(terminal.text()).not.toContain('cca:');
  terminal.type('q');
  await terminal.shows('R review', 'q quit');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  expect(terminal.raw).not.toMatch(/\[(?:3|4|9)[0-7]m/);
}, 120_000);

test('review: other work is read during a long merge; Ctrl-C interrupts it, and nothing moves', async () => {
  const started = join(user.folder, 'started');
  const accept = `touch '${started}'; sleep 600`;
  const group = user.mergeGroup('night', [
    { name: 'slow', repository: 'shop', tree: { 'slow.md': 'slow\n' }, fields: { accept } },
    { name: 'other', repository: 'shop', tree: { 'other.md': 'other\n' }, fields: { accept: 'true' } },
  ]);
  const before = user.tip('shop');
  terminal = new TestTerminal([launcher, 'review', group.id, '--no-check'], { cwd: user.folder, env: user.env });
  await terminal.shows('Safe to merge', '›✓ 001 slow', '002 other');
  terminal.type('m');
  await terminal.shows('001 slow: merge … (Ctrl-C interrupts it)');
  await until(() => existsSync(started));
  terminal.type('q');
  terminal.type('j');
  await terminal.shows('›✓ 002 other', 'other is done.', '001 slow: merge … (Ctrl-C interrupts it)');
  terminal.type(key.ctrlC);
  await terminal.shows('Safe to merge', '001 slow: It was interrupted.');
  expect([user.tip('shop'), group.isTidy()]).toEqual([before, true]);
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
}, 120_000);
