/**
 * Promises: `session diff` and `group diff` show the changes of sessions before and after they end, even without
 * their worktrees, or say what to run instead. They change no repository, hide no change, and print no terminal
 * controls.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateNow } from '../../../src/git/diff.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import { colourStyle, plainStyle } from '../../../src/view/format.ts';
import { diffLines } from '../../../src/view/terminal-text.ts';
import { type MergeGroup, MergeUser } from '../../support/cli/merge-ground.ts';
import { git, writeTree } from '../../support/git/repository.ts';
import { fc } from '../../support/property.ts';

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => user.remove());

/** Terminal controls, except newlines and tabs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

const added = (text: string): string[] => [...text.matchAll(/^\+(?!\+\+)(.*)$/gm)].map((match) => match[1] as string);

function makeShop(): MergeGroup {
  return user.mergeGroup('shop', [
    { name: 'api', repository: 'back "end"', tree: { 'api.txt': 'one\n', 'shared.txt': 'one\ntwo\nTHREE\n' } },
    { name: 'site', repository: 'front', tree: { 'site.txt': 'site\n' }, after: ['api'] },
    { name: 'docs', repository: 'back "end"', tree: { 'docs.md': 'docs\n' }, after: ['api'] },
  ]);
}

test('session diff compares completed sessions with the commit where they began', async () => {
  const group = makeShop();
  const before = ['back "end"', 'front'].map((name) => user.snapshot(name));
  const { code, stdout, stderr } = await user.run('session', 'diff', 'shop/docs');
  expect({ code, stderr, lines: added(stdout) }).toEqual({ code: 0, stderr: '', lines: ['docs'] });
  expect(await user.ok('session', 'diff', 'shop/api', '--stat')).toMatch(
    /^api\.txt +\| 1 \+\n shared\.txt \| 2 \+-\n 2 files changed, 2 insertions\(\+\), 1 deletion\(-\)$/,
  );
  const all = await user.ok('group', 'diff', 'shop');
  expect(added(all)).toEqual(['one', 'THREE', 'docs', 'site']);
  const heads = all.split('\n').filter((line) => /^(?:\/|\d{3} )/.test(line));
  expect(heads).toEqual([
    user.folderOf('back "end"'),
    '001 api  completed  cca/shop/001-api  2 files changed, +2 -1',
    '003 docs  completed  cca/shop/003-docs  1 file changed, +1 -0',
    user.folderOf('front'),
    '002 site  completed  cca/shop/002-site  1 file changed, +1 -0',
  ]);
  const json = await user.json<{ repositories: { repository: string; sessions: Record<string, unknown>[] }[] }>(
    'group',
    'diff',
    'shop',
    '--stat',
  );
  expect(json.repositories.map(({ sessions }) => sessions.map(({ name }) => name))).toEqual([
    ['api', 'docs'],
    ['site'],
  ]);
  expect(json.repositories[0]?.sessions[1]).toEqual({
    sessionId: group.session('docs'),
    name: 'docs',
    status: 'completed',
    repository: `${user.folderOf('back "end"')}/.git`,
    branch: 'cca/shop/003-docs',
    base: group.commit('api'),
    commit: group.commit('docs'),
    stat: { files: 1, insertions: 1, deletions: 0 },
  });
  expect(['back "end"', 'front'].map((name) => user.snapshot(name))).toEqual(before);
});

test('session diff shows the current files of an unfinished session', async () => {
  const group = user.mergeGroup('shop', [
    { name: 'api', repository: 'shop', tree: { 'a.txt': 'a\n' }, status: 'failed' },
  ]);
  writeTree(group.path('api'), {
    'a.txt': 'a\nb\n',
    'new file.txt': 'new\n',
    'docs/plans/.cpm-progress-1.md': 'ours\n',
  });
  const before = git(group.path('api'), 'status', '--porcelain');
  expect(added(await user.ok('session', 'diff', 'shop/api'))).toEqual(['a', 'b', 'new']);
  const { stat, commit } = await user.json<{ stat: unknown; commit?: string }>('session', 'diff', 'shop/api');
  expect({ stat, commit }).toEqual({ stat: { files: 2, insertions: 3, deletions: 0 }, commit: undefined });
  expect(git(group.path('api'), 'status', '--porcelain')).toBe(before);
  // Its folder is missing, its branch is not.
  rmSync(group.path('api'), { recursive: true });
  const gone = await user.run('session', 'diff', 'shop/api');
  expect(added(gone.stdout)).toEqual(['a']);
  expect(gone.stderr).toMatch(/worktree of session 001 api is gone: .* A resumed session gets a new worktree/);
  expect((await user.run('group', 'diff', 'shop', '--stat')).stderr).toContain('001 api is gone');
  const { gone: told } = await user.json<{ gone?: string }>('session', 'diff', 'shop/api');
  expect(told).toContain('001 api is gone');
});

test('session diff shows uncommitted work that a completed session left', async () => {
  const tree = { 'a.txt': 'a\n' };
  const group = user.mergeGroup('shop', [{ name: 'api', repository: 'shop', tree, fields: { commit: false } }]);
  writeTree(group.path('api'), { 'b.txt': 'b\n' });
  expect(added(await user.ok('session', 'diff', 'shop/api'))).toEqual(['a', 'b']);
});

test('session diff works after the worktree and its branch were removed', async () => {
  const group = makeShop();
  const text = await user.ok('session', 'diff', 'shop/docs');
  for (const name of ['api', 'docs']) {
    git(user.folderOf('back "end"'), 'worktree', 'remove', group.path(name));
    git(user.folderOf('back "end"'), 'branch', '-D', group.branch(name));
  }
  group.write((writer) =>
    writer.record(['api', 'docs'].map((name) => ({ type: 'session_cleaned', sessionId: group.session(name) }))),
  );
  expect(await user.ok('session', 'diff', 'shop/docs')).toBe(text);
  git(user.folderOf('back "end"'), 'reflog', 'expire', '--expire=now', '--all');
  git(user.folderOf('back "end"'), 'gc', '--quiet', '--prune=now');
  const { code, stdout, stderr } = await user.run('session', 'diff', 'shop/docs');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/The work of session 003 docs is no longer in the repository .*session logs/);
  // Everything that can still be shown is shown.
  const some = await user.run('group', 'diff', 'shop');
  expect({ code: some.code, lines: added(some.stdout) }).toEqual({ code: 1, lines: ['site'] });
  expect(some.stderr).toContain('The work of session 001 api');
  renameSync(user.folderOf('front'), `${user.folderOf('front')} away`);
  expect((await user.run('session', 'diff', 'shop/site')).stderr).toMatch(/repository .*front.* is gone/);
  const none = await user.run('group', 'diff', 'shop');
  expect({ code: none.code, stdout: none.stdout }).toEqual({ code: 2, stdout: '' });
});

test('session diff without a worktree says what to run instead', async () => {
  user.mergeGroup(
    'shop',
    [
      { name: 'here', repository: 'shop', isolated: false },
      { name: 'later', repository: 'shop', status: 'pending' },
      { name: 'idle', repository: 'shop' },
    ],
    'paused',
  );
  const here = await user.run('session', 'diff', 'shop/here');
  expect({ code: here.code, stdout: here.stdout }).toEqual({ code: 1, stdout: '' });
  expect(here.stderr).toMatch(/Session 001 here worked in the project folder itself, .* git -C '.*shop' diff/);
  expect((await user.run('session', 'diff', 'shop/later')).stderr).toMatch(
    /002 later has not started.*group resume \S*shop/,
  );
  const idle = await user.run('session', 'diff', 'shop/idle');
  expect({ code: idle.code, stdout: idle.stdout }).toEqual({ code: 0, stdout: '' });
  expect(idle.stderr).toContain('Session 003 idle changed no files.');
  const all = await user.run('group', 'diff', 'shop');
  expect(all.code).toBe(0);
  expect(all.stdout).toContain('003 idle  completed  cca/shop/003-idle  nothing changed');
  expect(all.stderr.trim().split('\n')).toHaveLength(2);
  const { without } = await user.json<{ without: { reason: string }[] }>('group', 'diff', 'shop');
  expect(without.map(({ reason }) => reason)).toEqual(['illegal-transition', 'illegal-transition']);
  user.mergeGroup('other', [
    { name: 'one', repository: 'shop', isolated: false },
    { name: 'two', repository: 'shop', isolated: false },
  ]);
  const other = await user.run('group', 'diff', 'other');
  expect({ code: other.code, stdout: other.stdout }).toEqual({ code: 1, stdout: '' });
  expect(other.stderr).toMatch(/No session of group .*other has a worktree\. See them with: git -C/);
  const empty = await user.ok('group', 'create', 'empty');
  expect((await user.run('group', 'diff', empty)).stderr).toContain('has no sessions');
  expect((await user.run('group', 'diff', 'nowhere')).code).toBe(2);
});

test('session diff escapes files with terminal controls', async () => {
  const tree = {
    'a.txt': 'before\n\u001b]0;title and what follows is hidden\n\u001b[31mred\u001b[0m\u009b2J\n',
    'b\u001b[2J.txt': 'if (isAdmin\u202e // \u2066) {\u200b\n',
    'crlf.txt': 'one\r\ntwo\rhidden\r\n',
  };
  user.mergeGroup('shop', [{ name: 'api', repository: 'shop', tree }]);
  const text = await user.ok('session', 'diff', 'shop/api');
  expect(added(text)).toEqual([
    'before',
    '\\x1b]0;title and what follows is hidden',
    '\\x1b[31mred\\x1b[0m\\x9b2J',
    'if (isAdmin\\u202e // \\u2066) {\\u200b',
    'one',
    'two\\x0dhidden',
  ]);
  for (const args of [['--stat'], ['--json'], []]) {
    expect(await user.ok('group', 'diff', 'shop', ...args)).not.toMatch(obeyed);
  }
});

test('session diff prints every changed line as text, whatever it contains', () => {
  const line = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.constantFrom('diff --git a/x b/x', '@@ -1 +1 @@', '+\u001b[2J', '-\u001b]8;;x', '+++ b/x', '\u001bP', ''),
  );
  void fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 20 }), (lines) => {
      const text = lines.map((one) => one.replaceAll('\n', ' ')).join('\n');
      const shown = diffLines(`${text}\n`, plainStyle);
      expect(shown).toHaveLength(text.split('\n').length);
      expect(shown.join('')).not.toMatch(obeyed);
      expect(diffLines(`${text}\n`, colourStyle).map(Bun.stripANSI)).toEqual(shown);
    }),
  );
});

test('session diff shows file names as they are written', async () => {
  const group = user.mergeGroup('shop', [
    { name: 'api', repository: 'shop', tree: { 'ä datei.txt': 'a\n' } },
    { name: 'web', repository: 'shop', tree: { 'a.txt': 'a\n' }, status: 'failed' },
  ]);
  writeTree(group.path('web'), { '漢字.txt': 'a\n' });
  for (const form of [[], ['--stat']]) {
    const told = await user.ok('group', 'diff', 'shop', ...form);
    expect(told).toContain('ä datei.txt');
    expect(told).toContain('漢字.txt');
    expect(told).not.toMatch(/\\\d{3}/);
    expect(await user.ok('session', 'diff', 'shop/api', ...form)).toContain('ä datei.txt');
  }
});

test('session diff without a worktree shows changes in the folder since the session began', async () => {
  const group = user.mergeGroup('shop', [{ name: 'here', repository: 'shop', isolated: false }]);
  const folder = user.folderOf('shop');
  writeFileSync(join(folder, 'shared.txt'), 'mine\n');
  for (const name of ['old', 'draft']) writeFileSync(join(folder, `${name}.txt`), `${name}\n`);
  // The index belongs to the user, also where git would refresh it.
  utimesSync(join(folder, 'README.md'), 1, 1);
  const index = readFileSync(join(folder, '.git/index'));
  const begin = await stateNow({ world: user.world, env: user.env }, folder);
  expect(readFileSync(join(folder, '.git/index')).equals(index)).toBe(true);
  if (!begin.ok || begin.value === null) throw new Error('no state');
  user.world.files.writeAtomic(sessionPaths(group.paths, group.session('here')).begin, begin.value);
  writeFileSync(join(folder, 'shared.txt'), 'mine\nits\n');
  writeFileSync(join(folder, 'new.txt'), 'new\n');
  writeFileSync(join(folder, 'draft.txt'), 'draft, finished\n');
  git(folder, 'add', 'new.txt');
  git(folder, 'commit', '--quiet', '-m', 'It committed this');
  const text = await user.ok('session', 'diff', 'shop/here');
  expect(text).toContain('+its');
  expect(text).toContain('b/new.txt');
  expect(text).toContain('+draft, finished');
  expect(text).not.toContain('+mine');
  expect(text).not.toContain('old.txt');
  const all = await user.ok('group', 'diff', 'shop', '--stat');
  expect(all).toContain(
    '001 here  completed  in the project folder itself, including changes by others  3 files changed',
  );
  const merge = await user.run('group', 'merge', 'shop');
  expect(merge.stdout).toContain('(use --isolate worktree to get a branch)');
});
