/**
 * Promises of `group merge`: it reports as merged exactly what is merged, its advice works, and its exit code shows
 * whether all work was merged.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellWord } from '../../../src/core/advice.ts';
import { type MergeGroup, MergeUser, type WorkSketch } from '../../support/cli/merge-ground.ts';
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

const merge = (group: MergeGroup, ...more: string[]) => user.run('group', 'merge', group.id, ...more);
const person = ['AUTHOR', 'COMMITTER'].flatMap((who) => ['NAME', 'EMAIL'].map((what) => [`GIT_${who}_${what}`, 'x']));
const shell = (command: string) =>
  Bun.spawnSync(['/bin/sh', '-c', command], { env: { ...user.env, ...Object.fromEntries(person) } });

/** The commands quoted in a sentence; paths in it may contain such quotation marks. */
const commandsIn = (text: string): string[] =>
  text.split(/"(?=git -C)/).flatMap((part) => /^(git -C .+?)"(?:,| then|;|$)/.exec(part)?.[1] ?? []);

describe('work with a merge conflict', () => {
  const clash: readonly WorkSketch[] = [
    { name: 'x', repository: one, tree: { 'shared.txt': 'X\ntwo\nthree\n' } },
    { name: 'y', repository: one, tree: { 'shared.txt': 'Y\ntwo\nthree\n' } },
  ];

  test('with another session: its branch is named, and after a merge by hand it goes through', async () => {
    const group = user.mergeGroup('shop', clash);
    const refused = await merge(group);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('Merge conflict between 002 y and 001 x in');
    const commands = commandsIn(refused.stderr);
    expect(commands).toEqual([`git -C ${shellWord(group.path('y'))} merge ${group.branch('x')}`]);
    expect(shell(commands[0] as string).exitCode).toBe(1);
    // The required steps until the conflict is resolved and committed.
    writeTree(group.path('y'), { 'shared.txt': 'X and Y\ntwo\nthree\n' });
    const unfinished = await merge(group);
    expect(unfinished.code).toBe(1);
    expect(unfinished.stderr).toContain(`First commit the uncommitted files in ${group.path('y')}: shared.txt`);
    git(group.path('y'), 'commit', '--quiet', '--all', '--no-edit');
    expect(await merge(group)).toMatchObject({ code: 0 });
    expect(git(user.folderOf(one), 'show', 'main:shared.txt')).toBe('X and Y\ntwo\nthree');
  }, 30_000);
});

describe('uncommitted work', () => {
  const plain: WorkSketch = { name: 'a', repository: one, fields: { commit: false } };

  test('with nothing else to merge: it is named, and the merge is refused', async () => {
    const group = user.mergeGroup('shop', [plain]);
    writeTree(group.path('a'), { 'work.txt': 'w\n', '.cpm-progress-1.md': 'ours' });
    const { code, stdout } = await merge(group);
    expect(code).toBe(1);
    expect(stdout).toContain(`Nothing of ${group.id} was merged`);
    expect(stdout).toContain('001 a holds uncommitted work: work.txt; commit it on its branch and merge again');
    expect(group.mergedInto('a')).toBeUndefined();
    git(group.path('a'), 'add', 'work.txt');
    git(group.path('a'), 'commit', '--quiet', '-m', 'By hand');
    rmSync(join(group.path('a'), '.cpm-progress-1.md'));
    expect(await merge(group)).toMatchObject({ code: 0 });
    expect(git(user.folderOf(one), 'show', 'main:work.txt')).toBe('w');
  }, 20_000);

  test('next to other work: that is merged, the uncommitted rest is named', async () => {
    const group = user.mergeGroup('shop', [plain, { name: 'b', repository: one, tree: { 'b.txt': 'b\n' } }]);
    writeTree(group.path('a'), { 'work.txt': 'w\n' });
    const { code, stdout } = await merge(group);
    expect(code).toBe(1);
    expect(stdout).toContain('Merged 1 session into main');
    expect(stdout).toContain('Left out: 001 a holds uncommitted work: work.txt');
    expect([group.mergedInto('a'), group.mergedInto('b')]).toEqual([undefined, 'main']);
  }, 20_000);
});

describe('merged into one branch, requested for another', () => {
  beforeEach(() => {
    for (const name of [one, two]) git(user.folderOf(name), 'branch', 'integ');
  });
  const both: readonly WorkSketch[] = [
    { name: 'a', repository: one, tree: { 'a.txt': 'a\n' } },
    { name: 'b', repository: two, tree: { 'b.txt': 'b\n' } },
  ];

  test('names the branch that has it, and the commands to bring it to the other', async () => {
    const group = user.mergeGroup('shop', both);
    expect(await merge(group, '--into', 'integ')).toMatchObject({ code: 0 });
    const before = user.tip(one);
    const refused = await merge(group, '--into', 'main');
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('merged into "integ" of');
    expect(user.tip(one)).toBe(before);
    const commands = /Merge it from there: (.*)/.exec(refused.stderr)?.[1] ?? '';
    expect(shell(commands).exitCode).toBe(0);
    for (const [name, commit] of [
      [one, group.commit('a')],
      [two, group.commit('b')],
    ] as const) {
      git(user.folderOf(name), 'merge-base', '--is-ancestor', commit, 'main');
    }
    const done = await merge(group, '--into', 'main');
    expect(done).toMatchObject({ code: 0, stdout: `All work of ${group.id} is already merged into main.\n` });
  }, 20_000);
});

describe('session branches are no merge targets', () => {
  const sketch: WorkSketch = { name: 'a', repository: one, tree: { 'a.txt': 'a\n' } };

  test.each([
    ['one of this group', (group: MergeGroup) => group.branch('a'), "the name of a session's own branch"],
    ['one of any group', () => 'cca/other/001-x', "the name of a session's own branch"],
  ])(
    '%s',
    async (_, name, words) => {
      const group = user.mergeGroup('shop', [sketch, { name: 'b', repository: one }]);
      const into = name(group);
      if (into.includes('other')) git(user.folderOf(one), 'branch', into);
      const before = user.snapshot(one);
      const refused = await merge(group, '--into', into);
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toContain(words);
      expect(user.snapshot(one)).toEqual(before);
      expect(await user.run('group', 'pr', group.id, '--into', into)).toMatchObject({ code: 2 });
    },
    20_000,
  );
});

test('without work on a branch nothing is merged, and the exit code reports it', async () => {
  const group = user.mergeGroup('shop', [{ name: 'a', repository: one, isolated: false }]);
  git(user.folderOf(one), 'worktree', 'remove', '--force', group.path('a'));
  const { code, stdout } = await merge(group);
  expect(code).toBe(1);
  expect(stdout).toContain(`Nothing of ${group.id} was merged`);
  const idle = user.mergeGroup('idle', [{ name: 'b', repository: two, status: 'pending' }], 'paused');
  git(user.folderOf(two), 'worktree', 'prune');
  expect(await merge(idle)).toMatchObject({ code: 2, stderr: expect.stringContaining('The only session of') });
  expect(await merge(idle, '--partial')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('nothing to merge'),
  });
}, 20_000);

test('--dry-run names a file in the way', async () => {
  const group = user.mergeGroup('shop', [
    { name: 'a', repository: one, tree: { 'new.txt': 'a\n', 'gone later.txt': 'x\n' } },
    { name: 'b', repository: one, after: ['a'], tree: { 'gone later.txt': null } },
    { name: 'c', repository: one, tree: { 'known.txt': 'same\n' } },
  ]);
  // Files that the target gained or lost meanwhile do not conflict, nor does a path whose file is deleted.
  user.repository(one).commit({ 'known.txt': 'same\n', 'shared.txt': null });
  writeTree(user.folderOf(one), { 'gone later.txt': 'mine', 'shared.txt': 'mine' });
  expect(await merge(group, '--dry-run')).toMatchObject({ code: 0 });
  writeFileSync(join(user.folderOf(one), 'new.txt'), 'mine');
  const before = user.snapshot(one);
  const refused = await merge(group, '--dry-run');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(`Untracked files in ${user.folderOf(one)}`);
  expect(refused.stderr).toContain('"new.txt"');
  expect(user.snapshot(one)).toEqual(before);
}, 20_000);
