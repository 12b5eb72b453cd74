/**
 * Promises of `group merge`: work goes in graph order into the branches it came from, in all repositories or in none. A
 * refused merge leaves every repository, checkout and the group unchanged.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellWord } from '../../../src/core/advice.ts';
import { type MergeGroup, MergeUser, type RepositoryState, type WorkSketch } from '../../support/cli/merge-ground.ts';
import { git, writeTree } from '../../support/git/repository.ts';

const one = `o n"e's`;
const two = 'two';

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => {
  for (const name of [one, two]) user.expectSound(name);
  user.remove();
});

/** B builds on A; C needs A and D, which is in another repository. */
const shop: readonly WorkSketch[] = [
  { name: 'a', repository: one, tree: { 'a.txt': 'a\n', 'shared.txt': 'ONE\ntwo\nthree\n' } },
  { name: 'b', repository: one, after: ['a'], tree: { 'sub dir/b.txt': 'b\n', 'a.txt': 'a, then b\n' } },
  { name: 'd', repository: two, tree: { 'd.txt': 'd\n' } },
  { name: 'c', repository: one, after: ['a', 'd'], tree: { 'c.txt': 'c\n', 'README.md': null } },
];

const merge = (group: MergeGroup, ...more: string[]) => user.run('group', 'merge', group.id, ...more);
const status = (name: string) => git(user.folderOf(name), 'status', '--porcelain', '--untracked-files=all');
const read = (name: string, path: string) => readFileSync(join(user.folderOf(name), path), 'utf8');

/** The command fails with this code, its message contains these words, and nothing has changed. */
async function expectRefused(group: MergeGroup, code: number, words: readonly string[], ...more: string[]) {
  const before = [one, two].map((name): RepositoryState => user.snapshot(name));
  const events = readFileSync(group.paths.events, 'utf8');
  const refused = await merge(group, ...more);
  expect(refused).toMatchObject({ code, stdout: '' });
  for (const word of words) expect(refused.stderr).toContain(word);
  expect([one, two].map((name) => user.snapshot(name))).toEqual(before);
  expect(readFileSync(group.paths.events, 'utf8')).toBe(events);
  expect(group.isTidy()).toBe(true);
}

test('both repositories get all the work, the checkouts follow and the worktrees are removed', async () => {
  const group = user.mergeGroup('shop', shop);
  const before = { one: user.tip(one), two: user.tip(two) };
  writeFileSync(join(user.folderOf(one), 'mine.txt'), 'not tracked');
  const { code, stdout } = await merge(group);
  expect(code).toBe(0);
  expect(stdout).toContain(`Merged 3 sessions into main of ${user.folderOf(one)}`);
  expect(stdout).toContain(`Merged 1 session into main of ${user.folderOf(two)}`);
  for (const name of ['a', 'b', 'c', 'd']) {
    const repository = name === 'd' ? two : one;
    git(user.folderOf(repository), 'merge-base', '--is-ancestor', group.commit(name), 'main');
    expect(group.mergedInto(name)).toBe('main');
  }
  expect([read(one, 'a.txt'), read(one, 'sub dir/b.txt'), read(one, 'c.txt')]).toEqual(['a, then b\n', 'b\n', 'c\n']);
  expect(existsSync(join(user.folderOf(one), 'README.md'))).toBe(false);
  expect([status(one), status(two)]).toEqual(['?? mine.txt', '']);
  // It precedes its dependents, and each is merged once.
  const messages = git(user.folderOf(one), 'log', '--first-parent', '--format=%s', `${before.one}..main`);
  expect(messages.split('\n').at(0)).toBe(`Merge ${group.branch('c')}`);
  const merged = group.state.sessions.get(group.session('d'));
  expect(merged?.workspace).toBeUndefined();
  expect([group.worktrees(), group.isTidy()]).toEqual([[], true]);
  expect(git(user.folderOf(one), 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
  expect(before.two).not.toBe(user.tip(two));

  const again = await merge(group);
  expect(again).toMatchObject({ code: 0, stdout: `All work of ${group.id} is already merged into main.\n` });
});

test('a merge that the user undid is not reported as merged; the named command repeats it', async () => {
  const group = user.mergeGroup('shop', [{ name: 'a', repository: one, tree: { 'a.txt': 'a\n' } }]);
  const before = user.tip(one);
  expect((await merge(group)).code).toBe(0);
  git(user.folderOf(one), 'reset', '--quiet', '--hard', before);
  const { code, stdout } = await merge(group);
  expect(code).toBe(0);
  expect(stdout).not.toContain('already merged');
  const command = /but "main" no longer has its commit; merge it again with: (.*)\.$/m.exec(stdout)?.[1] ?? 'false';
  expect(Bun.spawnSync(['/bin/sh', '-c', command]).exitCode).toBe(0);
  expect(user.tip(one)).toBe(group.commit('a'));
  expect((await merge(group)).stdout).toBe(`All work of ${group.id} is already merged into main.\n`);
});

test('merged work that the user rebased is merged', async () => {
  const group = user.mergeGroup('shop', [{ name: 'a', repository: one, tree: { 'a.txt': 'a\n' } }]);
  const before = user.tip(one);
  expect((await merge(group)).code).toBe(0);
  const folder = user.folderOf(one);
  git(folder, 'reset', '--quiet', '--hard', before);
  git(folder, 'commit', '--quiet', '--allow-empty', '-m', 'theirs');
  git(folder, 'cherry-pick', group.commit('a'));
  expect((await merge(group)).stdout).toBe(`All work of ${group.id} is already merged into main.\n`);
});

test('--json lists what was merged, from which branch into which', async () => {
  const group = user.mergeGroup('shop', shop);
  const from = user.tip(two);
  const { code, stdout } = await merge(group, '--json');
  expect(code).toBe(0);
  const document = JSON.parse(stdout);
  expect(document).toMatchObject({ groupId: group.id, outcome: 'merged', leftOut: [], kept: [] });
  expect(document.repositories[1]).toEqual({
    repository: join(user.folderOf(two), '.git'),
    into: 'main',
    from,
    to: user.tip(two),
    checkouts: [user.folderOf(two)],
    sessions: [
      {
        id: group.session('d'),
        name: 'd',
        branch: group.branch('d'),
        commit: group.commit('d'),
        contained: false,
      },
    ],
  });
  expect(document.cleaned.length).toBe(4);
});

test('--dry-run prints the steps and does nothing', async () => {
  const group = user.mergeGroup('shop', shop);
  const before = [user.snapshot(one), user.snapshot(two)];
  const { code, stdout } = await merge(group, '--dry-run');
  expect(code).toBe(0);
  expect(stdout).toContain(`Into main of ${user.folderOf(one)}`);
  expect(stdout.indexOf('001 a')).toBeLessThan(stdout.indexOf('002 b'));
  expect(stdout).toContain('Nothing was done.');
  expect([user.snapshot(one), user.snapshot(two)]).toEqual(before);
});

test('--into accepts a branch that is not checked out', async () => {
  const group = user.mergeGroup('shop', shop);
  for (const name of [one, two]) git(user.folderOf(name), 'branch', `next"1'`);
  const before = [status(one), user.tip(one), user.tip(two)];
  expect(await merge(group, '--into', `next"1'`)).toMatchObject({ code: 0 });
  expect([status(one), user.tip(one), user.tip(two)]).toEqual(before);
  git(user.folderOf(one), 'merge-base', '--is-ancestor', group.commit('c'), `next"1'`);
  expect(group.mergedInto('c')).toBe(`next"1'`);
  expect(group.worktrees()).toEqual([]);
}, 20_000);

test('work corrected by hand on its branch is merged as corrected', async () => {
  const group = user.mergeGroup('shop', shop);
  user.repository(one).commit({ 'shared.txt': 'EINS\ntwo\nthree\n' });
  await expectRefused(group, 1, [
    '001 a',
    'both changed "shared.txt"',
    'No branch was moved',
    shellWord(group.path('a')),
  ]);
  git(group.path('a'), '-c', 'merge.conflictStyle=merge', 'merge', '--strategy-option=theirs', '--no-edit', 'main');
  expect(await merge(group)).toMatchObject({ code: 0 });
  expect(read(one, 'shared.txt')).toBe('EINS\ntwo\nthree\n');
});

describe('acceptance checks', () => {
  const accept = (command: string, more: object = {}): Partial<WorkSketch> => ({
    fields: { accept: command, ...more },
  });

  test('they run in the project folder on the merged whole', async () => {
    const seen = join(user.folder, 'seen');
    const list = `{ basename "$PWD"; ls; } >>'${seen}'`;
    const group = user.mergeGroup('shop', [
      { name: 'a', repository: one, tree: { 'sub dir/a.txt': 'a' }, project: 'sub dir', ...accept(list) },
      {
        name: 'b',
        repository: one,
        tree: { 'sub dir/b.txt': 'b' },
        project: 'sub dir',
        // Files left by a command reach neither the next command nor the merge.
        ...accept(`${list}; echo x >litter.txt; echo y >>a.txt; git commit --quiet -am Mine 2>/dev/null; true`),
      },
      { name: 'c', repository: one, tree: { 'sub dir/c.txt': 'c' }, project: 'sub dir', ...accept(list) },
    ]);
    expect(await merge(group)).toMatchObject({ code: 0 });
    const lines = readFileSync(seen, 'utf8').trim().split('\n');
    const whole = ['sub dir', 'a.txt', 'b.txt', 'c.txt'];
    expect(lines).toEqual([...whole, ...whole, ...whole]);
    expect(read(one, 'sub dir/a.txt')).toBe('a');
    expect(status(one)).toBe('');
  });

  test('a failing check keeps all branches of all repositories where they are', async () => {
    const group = user.mergeGroup('shop', [
      ...shop,
      {
        name: 'e',
        repository: two,
        after: ['d'],
        tree: { 'e.txt': 'e' },
        ...accept('cat e.txt; echo no good; exit 7'),
      },
    ]);
    const log = join(group.paths.sessions, group.session('e'), 'merge-accept.log');
    await expectRefused(group, 1, ['005 e', '(exit 7)', 'no good', 'No branch was moved', log]);
    expect(readFileSync(log, 'utf8')).toContain('no good');
  });

  test('set-up of everything merged runs once before the checks', async () => {
    const counted = join(user.folder, 'set up');
    const setup = `echo once >>'${counted}'; cat *.need 2>/dev/null >have.ignored; true`;
    const fields = (need: string) => ({ setup, accept: `grep -q '${need}' have.ignored` });
    const group = user.mergeGroup('shop', [
      { name: 'a', repository: one, tree: { 'a.need': 'alpha\n' }, fields: fields('alpha') },
      { name: 'b', repository: one, tree: { 'b.need': 'beta\n' }, fields: fields('beta') },
      { name: 'c', repository: one, tree: { 'c.txt': 'c\n' }, fields: fields('beta') },
    ]);
    expect(await merge(group)).toMatchObject({ code: 0 });
    expect(readFileSync(counted, 'utf8')).toBe('once\n');
  });
});

describe('refused before anything is tried', () => {
  test('a checkout with changes', async () => {
    const group = user.mergeGroup('shop', shop);
    writeFileSync(join(user.folderOf(two), 'README.md'), 'changed');
    await expectRefused(group, 2, [user.folderOf(two), 'README.md', 'stash them']);
    git(user.folderOf(two), 'add', 'README.md');
    await expectRefused(group, 2, [user.folderOf(two), 'README.md']);
  });

  test('a checkout in the middle of a merge or a rebase, or locked by git', async () => {
    const group = user.mergeGroup('shop', shop);
    const folder = user.folderOf(two);
    git(folder, 'branch', 'other');
    user.repository(two).commit({ 'shared.txt': 'ours\n' });
    git(folder, 'checkout', '--quiet', 'other');
    user.repository(two).commit({ 'shared.txt': 'theirs\n' });
    git(folder, 'checkout', '--quiet', 'main');
    expect(() => git(folder, 'merge', 'other')).toThrow();
    await expectRefused(group, 2, [folder, 'in the middle of a merge']);
    git(folder, 'merge', '--abort');
    expect(() => git(folder, 'rebase', 'other')).toThrow();
    await expectRefused(group, 2, ['in the middle of a rebase']);
    git(folder, 'rebase', '--abort');
    const lock = join(folder, '.git', 'index.lock');
    writeFileSync(lock, '');
    await expectRefused(group, 2, ['locked by another git command', lock]);
    rmSync(lock);
    expect(await merge(group)).toMatchObject({ code: 0 });
  }, 20_000);

  test.each([
    ['a file', 'd.txt', 'd.txt'],
    ['an ignored file', 'deep/d.ignored', 'deep/d.ignored'],
    ['a file where a folder must be', 'deep', 'deep'],
    ['a folder where a file is to be', 'd.txt/inside', 'd.txt/inside'],
  ])('an untracked %s in the way', async (_, path, named) => {
    const group = user.mergeGroup('shop', [
      { name: 'd', repository: two, tree: { 'd.txt': 'd\n', 'deep/d.ignored': 'd\n', 'deep/e.txt': 'e\n' } },
    ]);
    writeTree(user.folderOf(two), { [path]: 'of the user\n' });
    await expectRefused(group, 2, ['would be overwritten', JSON.stringify(named)]);
    expect(read(two, path)).toBe('of the user\n');
  });

  test('work that started on two branches', async () => {
    const group = user.mergeGroup('shop', [
      shop[0] as WorkSketch,
      { ...(shop[3] as WorkSketch), after: [], target: 'next' },
      shop[2] as WorkSketch,
    ]);
    await expectRefused(group, 2, ['"main", "next"', '--into']);
  });

  test('a group with incomplete sessions, unless they are left out', async () => {
    const sketches: WorkSketch[] = [
      ...shop.slice(0, 3),
      { ...(shop[3] as WorkSketch), status: 'failed' },
      { name: 'e', repository: two, status: 'pending' },
    ];
    const group = user.mergeGroup('shop', sketches, 'failed');
    await expectRefused(group, 2, ['2 of 5 sessions', '004 c (failed)', '005 e (pending)', '--partial']);
    const { code, stdout } = await merge(group, '--partial');
    expect(code).toBe(0);
    expect(stdout).toContain('Left out: 004 c is not completed (failed).');
    expect(stdout).toContain('Left out: 005 e is not completed (pending).');
    expect(group.worktrees()).toEqual(['c']);
  });

  test('a session that worked in the folder itself is left out', async () => {
    const group = user.mergeGroup('shop', [shop[2] as WorkSketch, { name: 'a', repository: one, isolated: false }]);
    git(user.folderOf(one), 'worktree', 'remove', '--force', group.path('a'));
    const { code, stdout } = await merge(group);
    expect(code).toBe(0);
    expect(stdout).toContain('Merged 1 session');
    const why = 'worked in the project folder itself (use --isolate worktree to get a branch)';
    expect(stdout).toContain(`Left out: 002 a ${why}.`);
  });
});

test('an interrupted merge leaves nothing', async () => {
  const began = join(user.folder, 'began');
  const group = user.mergeGroup('shop', [
    { ...(shop[2] as WorkSketch), fields: { accept: `touch '${began}'; sleep 1000` } },
  ]);
  const before = user.snapshot(two);
  const running = user.start('group', 'merge', group.id);
  while (!existsSync(began)) await Bun.sleep(10);
  running.kill('SIGINT');
  expect(await running.finished).toMatchObject({ code: 130, stdout: 'Interrupted: no branch was moved.\n' });
  expect(user.snapshot(two)).toEqual(before);
  expect(group.isTidy()).toBe(true);
});
