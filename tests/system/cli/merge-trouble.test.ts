/**
 * Promises: if one branch or checkout cannot be moved at the last moment, all others are restored. A half-updated
 * checkout is completed without changing the user's later edits.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { type MergeGroup, MergeUser } from '../../support/cli/merge-ground.ts';
import { git } from '../../support/git/repository.ts';

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

test('a branch that cannot be moved: the other one is restored, and the next merge succeeds', async () => {
  const before = [user.snapshot(one), user.snapshot(two)];
  // Its reflog cannot be written, which only the move itself discovers.
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

test('a group with a live runner is busy, and nothing is tried', async () => {
  const held = openGroupWriter(user.world, user.data, group.id, 'run-1');
  if (!held.ok) throw new Error(held.failure.message);
  const before = user.snapshot(one);
  const refused = await merge();
  held.value.close();
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(user.snapshot(one)).toEqual(before);
});

test("a session's locked worktree is kept, and its work is merged", async () => {
  git(user.folderOf(one), 'worktree', 'lock', '--reason', 'on a stick', group.path('a'));
  const { code, stdout } = await merge();
  expect(code).toBe(0);
  expect(stdout).toContain('Kept the worktree of 001 a: It is locked (on a stick)');
  expect([group.mergedInto('a'), group.worktrees()]).toEqual(['main', ['a']]);
  git(user.folderOf(one), 'worktree', 'unlock', group.path('a'));
  // The work is merged already: the next merge only cleans up.
  expect(await merge()).toMatchObject({ code: 0 });
  expect(group.worktrees()).toEqual([]);
});

test('a missing repository, and one without the commit', async () => {
  rmSync(join(user.folderOf(two), '.git'), { recursive: true });
  const before = user.snapshot(one);
  const refused = await merge();
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('is gone');
  expect(user.snapshot(one)).toEqual(before);
});
