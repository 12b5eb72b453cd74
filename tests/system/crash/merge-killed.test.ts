/**
 * Promises: after `group merge` is killed (kill -9) at any moment and one more command ran, either all branches have
 * moved or none has. Checkouts match their branches, the log records the outcome, and the next merge completes.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { finishInterruptedMerge } from '../../../src/app/delivery/merge.ts';
import type { Context } from '../../../src/cli/context.ts';
import type { Alteration } from '../../support/altered-world.ts';
import { type MergeGroup, MergeUser } from '../../support/cli/merge-ground.ts';
import { alteredProgram, startCommand } from '../../support/crash-rig.ts';
import { git } from '../../support/git/repository.ts';
import type { ProgramResult } from '../../support/in-process.ts';
import { sampled } from '../../support/long.ts';

const repositories = ['one "1"', 'two', 'three'];

let user: MergeUser;
let group: MergeGroup;
let before: string[];
beforeEach(() => {
  user = new MergeUser();
  group = makeGroup();
  before = tips();
});
afterEach(() => user.remove());

function makeGroup(): MergeGroup {
  return user.mergeGroup('shop', [
    { name: 'a', repository: 'one "1"', tree: { 'a.txt': 'a\n' }, fields: { accept: 'test -e a.txt' } },
    { name: 'b', repository: 'one "1"', tree: { 'b.txt': 'b\n', 'shared.txt': 'B\n' } },
    { name: 'c', repository: 'two', after: ['a'], tree: { 'c.txt': 'c\n', 'README.md': null } },
    // It changed nothing, so its repository has no commit to move to.
    { name: 'd', repository: 'three' },
  ]);
}

const tips = (): string[] => repositories.map((name) => user.tip(name));

function mergeAltered(alteration: Alteration): Promise<ProgramResult> {
  const env = { ...user.env, TEST_WORLD: JSON.stringify(alteration) };
  return startCommand([...alteredProgram, 'group', 'merge', group.id], env).finished;
}

/** The first step of any command on the group. */
async function finish(): Promise<void> {
  const said: string[] = [];
  const context = { world: user.world, env: user.env, notes: { line: (text: string) => said.push(text) } };
  const reference = { root: user.data, groupId: group.id, paths: group.paths };
  const finished = await finishInterruptedMerge(context as unknown as Context, reference);
  expect(finished).toMatchObject({ ok: true });
}

/** All or none, and nothing in between. */
function expectWhole(): 'all' | 'none' {
  const now = tips();
  const moved = ['a', 'b', 'c'].map((name) => contains(name === 'c' ? 'two' : 'one "1"', group.commit(name)));
  expect(new Set(moved).size).toBe(1);
  const all = moved[0] === true;
  if (!all) expect(now).toEqual(before);
  for (const name of repositories) {
    expect(git(user.folderOf(name), 'status', '--porcelain', '--untracked-files=all')).toBe('');
    user.expectSound(name);
  }
  expect(group.isTidy()).toBe(true);
  expect(['a', 'b', 'c', 'd'].map((name) => group.mergedInto(name))).toEqual(Array(4).fill(all ? 'main' : undefined));
  return all ? 'all' : 'none';
}

function contains(name: string, commit: string): boolean {
  try {
    git(user.folderOf(name), 'merge-base', '--is-ancestor', commit, 'main');
    return true;
  } catch {
    return false;
  }
}

async function expectMergeable(): Promise<void> {
  const { code, stderr } = await user.run('group', 'merge', group.id);
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  expect(expectWhole()).toBe('all');
  expect(group.worktrees()).toEqual([]);
}

const moments: readonly (Alteration & { readonly at: string; readonly ends: 'all' | 'none' })[] = [
  { at: 'after write merge.json', ends: 'none' },
  { at: 'during run git worktree', nth: 3, ends: 'none' },
  { at: 'during run git merge', ends: 'none' },
  { at: 'after spawn', ends: 'none' },
  { at: 'before write merge.json', nth: 2, ends: 'none' },
  { at: 'after write merge.json', nth: 2, ends: 'all' },
  { at: 'during run git update-ref', ends: 'all' },
  { at: 'after run git update-ref', ends: 'all' },
  { at: 'during run git update-ref', nth: 2, ends: 'all' },
  { at: 'before run git read-tree', ends: 'all' },
  { at: 'during run git read-tree', ends: 'all' },
  { at: 'after run git read-tree', ends: 'all' },
  { at: 'after run git read-tree', nth: 2, ends: 'all' },
  { at: 'before log group_merged', ends: 'all' },
  { at: 'before sync group_merged', ends: 'all' },
  { at: 'after log group_merged', ends: 'all' },
  { at: 'before remove merge.json', ends: 'all' },
];

test.each(sampled(moments, 4).map((moment) => ({ nth: 1, ...moment })))(
  'killed $at ($nth): $ends',
  async ({ ends, ...alteration }) => {
    expect(await mergeAltered(alteration)).toMatchObject({ code: null });
    await finish();
    expect(expectWhole()).toBe(ends);
    await expectMergeable();
  },
  30_000,
);
