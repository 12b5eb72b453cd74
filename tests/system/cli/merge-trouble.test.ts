/**
 * Promises: whatever keeps a branch or a checkout from moving at the last moment, all others are put back; a checkout
 * that was left half-way is completed without touching what the user changed there since.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import type { Git } from '../../../src/git/git.ts';
import { followBranch, settleMoves } from '../../../src/git/move-refs.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { type MergeGroup, MergeUser } from '../../support/cli/merge-ground.ts';
import { alteredProgram, startCommand } from '../../support/crash-rig.ts';
import { git, writeTree } from '../../support/git/repository.ts';
import { packageRoot } from '../../support/group-fixture.ts';
import { giveToUnprivileged, unprivileged } from '../../support/unprivileged.ts';

const one = 'one';
const two = 'two';

let user: MergeUser;
let group: MergeGroup;
beforeEach(() => {
  user = new MergeUser();
  group = user.mergeGroup('shop', [
    { name: 'a', repository: one, tree: { 'a.txt': 'a\n' } },
    { name: 'b', repository: two, tree: { 'b.txt': 'b\n', 'README.md': null, 'shared.txt': 'B\n' } },
  ]);
});
afterEach(() => {
  Bun.spawnSync(['chmod', '-R', 'u+rwX', user.folder]);
  user.remove();
});

const merge = (...more: string[]) => user.run('group', 'merge', group.id, ...more);

test('a branch that cannot be moved: the other one is put back, and the next merge goes through', async () => {
  const before = [user.snapshot(one), user.snapshot(two)];
  // Its reflog cannot be written, which nothing but the move itself finds out.
  const reflog = join(user.folderOf(two), '.git', 'logs', 'refs', 'heads', 'main');
  rmSync(reflog);
  mkdirSync(join(reflog, 'in the way'), { recursive: true });
  writeFileSync(join(reflog, 'in the way', 'file'), '');
  const refused = await merge();
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain(`The branch "main" of ${user.folderOf(two)} could not be moved`);
  expect(refused.stderr).toContain('No branch was moved');
  expect([user.snapshot(one), user.snapshot(two)]).toEqual(before);
  expect([group.isTidy(), group.mergedInto('a'), group.worktrees()]).toEqual([true, undefined, ['a', 'b']]);
  rmSync(reflog, { recursive: true });
  expect(await merge()).toMatchObject({ code: 0 });
  for (const name of [one, two]) user.expectSound(name);
});

test('a checkout that changes at the last moment keeps the change; everything else is merged', async () => {
  const env = { ...user.env, TEST_WORLD: JSON.stringify({ at: 'before run git read-tree' }) };
  expect(await startCommand([...alteredProgram, 'group', 'merge', group.id], env).finished).toMatchObject({
    code: null,
  });
  writeFileSync(join(user.folderOf(two), 'shared.txt'), 'of the user\n');
  const { code, stderr } = await merge();
  expect(code).toBe(0);
  expect(stderr).toContain('"shared.txt"');
  expect(stderr).toContain('stay as they are');
  expect(git(user.folderOf(two), 'status', '--porcelain')).toBe('M shared.txt');
  expect(readFileSync(join(user.folderOf(two), 'shared.txt'), 'utf8')).toBe('of the user\n');
  expect(git(user.folderOf(one), 'status', '--porcelain')).toBe('');
});

test('a group that a runner holds is busy, and nothing is tried', async () => {
  const held = openGroupWriter(user.world, user.data, group.id, 'run-1');
  if (!held.ok) throw new Error(held.failure.message);
  const before = user.snapshot(one);
  const refused = await merge();
  held.value.close();
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(user.snapshot(one)).toEqual(before);
});

test('a locked worktree of a session is kept, and what it holds is merged', async () => {
  git(user.folderOf(one), 'worktree', 'lock', '--reason', 'on a stick', group.path('a'));
  const { code, stdout } = await merge();
  expect(code).toBe(0);
  expect(stdout).toContain('Kept the worktree of 001 a: It is locked (on a stick)');
  expect([group.mergedInto('a'), group.worktrees()]).toEqual(['main', ['a']]);
  git(user.folderOf(one), 'worktree', 'unlock', group.path('a'));
  // Merged is merged: the next one only tidies up.
  expect(await merge()).toMatchObject({ code: 0 });
  expect(group.worktrees()).toEqual([]);
});

test('a repository that is gone, and one without the commit', async () => {
  rmSync(join(user.folderOf(two), '.git'), { recursive: true });
  const before = user.snapshot(one);
  const refused = await merge();
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('is gone');
  expect(user.snapshot(one)).toEqual(before);
});

const { isPossible, isOther, prefix } = unprivileged;
const command = () => [...prefix, join(packageRoot, 'bin', 'claude-code-agent'), 'group', 'merge', group.id];

/** Everything may be read by everybody, and nothing but the data root may be written. */
function closeRepositories(): void {
  Bun.spawnSync(['chmod', '-R', 'a+rX', user.folder]);
  for (const name of [one, two]) Bun.spawnSync(['chmod', '-R', 'a-w', user.folderOf(name)]);
  giveToUnprivileged(user.data, user.home);
}

test.skipIf(!isPossible || !isOther)('repositories of another user', async () => {
  closeRepositories();
  const before = [user.snapshot(one), user.snapshot(two)];
  const distrusted = await startCommand(command(), user.env).finished;
  expect(distrusted).toMatchObject({ code: 1, stdout: '' });
  expect(distrusted.stderr).toContain('safe.directory');
  expect([user.snapshot(one), user.snapshot(two)]).toEqual(before);
});

test.skipIf(!isPossible)('a repository in which the user may not write', async () => {
  closeRepositories();
  const before = [user.snapshot(one), user.snapshot(two)];
  const allowed = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' };
  const refused = await startCommand(command(), { ...user.env, ...allowed }).finished;
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('git worktree refused');
  expect(refused.stderr.toLowerCase()).toContain('permission');
  expect(refused.stderr).toContain('Get the right to write');
  expect(refused.stderr).not.toContain('--isolate');
  expect([user.snapshot(one), user.snapshot(two)]).toEqual(before);
  expect(group.isTidy()).toBe(true);
});

test('a checkout that cannot follow: the branch goes back, and the sentence says which', async () => {
  const folder = user.folderOf(one);
  const from = user.tip(one);
  const move = { repository: join(folder, '.git'), into: 'main', from, to: group.commit('a'), sessionIds: [] };
  const journal = { step: 'moving', mark: 'm', scratches: [], moves: [{ ...move, checkouts: [folder] }] } as const;
  const lock = join(folder, '.git', 'index.lock');
  writeFileSync(lock, '');
  const own: Git = { world: user.world, env: user.env };
  const settled = await settleMoves(own, journal, { forwards: 'on', backwards: 'back' }, () => ok(undefined));
  rmSync(lock);
  if (!settled.ok || settled.value.outcome !== 'undone') throw new Error('it followed');
  expect(settled.value.cause).toStartWith(`A checkout of the branch "main" of ${folder} could not follow: `);
  expect([user.tip(one), git(folder, 'status', '--porcelain')]).toEqual([from, '']);
}, 20_000);

describe('a checkout in which git was cut off', () => {
  let folder: string;
  let from: string;
  let to: string;
  beforeEach(() => {
    const repository = user.repository('half');
    folder = repository.folder;
    from = repository.commit({
      'old/x.txt': 'x',
      'changed.txt': 'before',
      kind: { link: 'README.md' },
      'stays.txt': 's',
    });
    git(folder, 'checkout', '--quiet', '-b', 'work');
    to = repository.commit({ 'old/x.txt': null, 'changed.txt': 'after', 'new/y.txt': 'y', kind: 'a file' });
    git(folder, 'checkout', '--quiet', 'main');
    git(folder, 'update-ref', 'refs/heads/main', to, from);
  });

  const follow = () => {
    const own: Git = { world: user.world, env: user.env };
    return followBranch(own, join(folder, '.git'), { checkout: folder, branch: 'main', from, to });
  };
  const status = () => git(folder, 'status', '--porcelain', '--untracked-files=all');

  test.each([
    ['nothing was written', {}],
    ['some files are new', { 'changed.txt': 'after', 'new/y.txt': 'y' }],
    ['some files are gone', { old: null, kind: null }],
    ['all is written but the index', { old: null, 'changed.txt': 'after', 'new/y.txt': 'y', kind: 'a file' }],
  ])('%s', async (_, written) => {
    writeTree(folder, written);
    const followed = await follow();
    expect(followed).toMatchObject({ ok: true });
    expect(status()).toBe('');
    expect(existsSync(join(folder, 'old'))).toBe(false);
    expect(readFileSync(join(folder, 'new', 'y.txt'), 'utf8')).toBe('y');
  });

  test('what the user changed since stays, and is named', async () => {
    writeTree(folder, { 'changed.txt': 'mine', 'new/y.txt': 'y', 'stays.txt': 'mine too', 'untracked.txt': 'u' });
    expect(await follow()).toEqual({ ok: true, value: [expect.stringContaining('"changed.txt"')] });
    expect(status()).toBe('M changed.txt\n M stays.txt\n?? untracked.txt');
    expect(readFileSync(join(folder, 'changed.txt'), 'utf8')).toBe('mine');
    // Again: there is nothing left to do.
    expect(await follow()).toEqual({ ok: true, value: [] });
  });

  test('a checkout that is on another branch meanwhile is left alone', async () => {
    git(folder, 'symbolic-ref', 'HEAD', 'refs/heads/work');
    expect(await follow()).toEqual({ ok: true, value: [] });
    expect(readFileSync(join(folder, 'changed.txt'), 'utf8')).toBe('before');
  });

  test('a lock that nobody releases is a sentence, and nothing is written', async () => {
    writeFileSync(join(folder, '.git', 'index.lock'), '');
    expect(await follow()).toMatchObject({ ok: false, failure: { reason: 'worktree-failed' } });
    expect(readFileSync(join(folder, 'changed.txt'), 'utf8')).toBe('before');
    rmSync(join(folder, '.git', 'index.lock'));
    expect(await follow()).toEqual({ ok: true, value: [] });
    expect(status()).toBe('');
  }, 20_000);
});
