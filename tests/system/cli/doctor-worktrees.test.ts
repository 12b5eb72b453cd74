/** Promises of `doctor --worktrees`: each leftover is found with its fix, and --fix loses nothing. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WorktreeUser } from '../../support/cli/worktree-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: WorktreeUser;
beforeEach(() => {
  user = new WorktreeUser();
});
afterEach(() => user.remove());

interface Check {
  readonly check: string;
  readonly level: string;
  readonly message: string;
  readonly next: string;
}

async function examine(...more: string[]): Promise<{ readonly code: number | null; readonly checks: Check[] }> {
  const { code, stdout } = await user.runWith({ cwd: user.shop }, 'doctor', '--worktrees', '--json', ...more);
  return { code, checks: JSON.parse(stdout).checks };
}

test('nothing left behind', async () => {
  user.group('auth', ['api']);
  const { code, checks } = await examine();
  expect(code).toBe(0);
  expect(checks).toMatchObject([{ level: 'ok', message: '1 repository, nothing left behind' }]);
  expect(await user.run('doctor', '--fix')).toMatchObject({ code: 2 });
});

test('a group deleted by hand: its worktree entries go, its branches are only listed', async () => {
  const group = user.group('auth', ['api']);
  rmSync(group.folder, { recursive: true });
  const found = await examine();
  expect(found.code).toBe(1);
  expect(found.checks).toMatchObject([
    { level: 'broken', message: expect.stringContaining('a worktree whose group is gone') },
  ]);
  expect(found.checks[0]?.next).toContain('doctor --worktrees --fix');
  const fixed = await examine('--fix');
  expect(fixed.code).toBe(0);
  expect(user.worktrees()).toEqual([]);
  const { code, checks } = await examine();
  expect(code).toBe(0);
  expect(checks).toMatchObject([{ level: 'warning', message: expect.stringContaining(group.branch('api')) }]);
  expect(checks[0]?.next).toContain(`branch -d ${group.branch('api')}`);
  expect(user.branches()).toContain(group.branch('api'));
});

test('a half-removed session: --fix removes it unless it contains work', async () => {
  const group = user.group('auth', ['api', 'web'], 'failed');
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  for (const name of ['api', 'web']) {
    group.write((writer) => writer.record([{ type: 'session_removed', sessionId: group.session(name) }]));
  }
  const { code, checks } = await examine('--fix');
  expect(code).toBe(1);
  const kept = checks.filter(({ level }) => level === 'broken');
  expect(kept).toMatchObject([{ message: expect.stringContaining('uncommitted changes: notes.txt') }]);
  expect(user.worktrees()).toEqual([group.path('web')]);
});

test('a missing folder, an interrupted clean-up, and one that never started', async () => {
  const group = user.group('auth', ['gone', 'half', 'merged', 'busy']);
  rmSync(group.path('gone'), { recursive: true });
  renameSync(group.path('half'), `${group.path('half')}.removed`);
  const to = group.commit('merged');
  group.merge('merged');
  const merged = { repository: user.gitDir, into: 'main', from: user.base, to, sessionIds: [group.session('merged')] };
  group.write((writer) => writer.record([{ type: 'group_merged', merged: [merged] }]));
  const { code, checks } = await examine();
  expect(code).toBe(1);
  expect(checks.map(({ message }) => message)).toEqual([
    expect.stringContaining('001 gone in'),
    expect.stringContaining('was half removed'),
    expect.stringContaining('still there, merged into main'),
  ]);
  expect((await examine('--fix')).code).toBe(0);
  expect(user.worktrees()).toEqual([group.path('busy')]);
  expect(await examine()).toMatchObject({ code: 0, checks: [{ level: 'ok' }] });
});

test('scratch worktrees of a killed merge go when it is finished or undone', async () => {
  const group = user.group('auth', ['api']);
  const scratch = join(group.folder, 'merge', 'auth-merge-1');
  git(user.shop, 'worktree', 'add', '--quiet', '--detach', scratch, user.base);
  const journal = {
    version: 1,
    mark: crypto.randomUUID(),
    scratches: [{ repository: user.gitDir, path: scratch, top: join(group.folder, 'merge', '1') }],
    moves: [],
  };
  writeFileSync(join(group.folder, 'merge.json'), JSON.stringify(journal));
  const { code, checks } = await examine();
  expect(code).toBe(1);
  expect(checks[0]).toMatchObject({ level: 'broken', message: expect.stringContaining(scratch) });
  expect((await examine('--fix')).code).toBe(0);
  expect(user.worktrees()).toEqual([group.path('api')]);
  expect(await examine()).toMatchObject({ code: 0 });
  // Also without its journal.
  git(user.shop, 'worktree', 'add', '--quiet', '--detach', scratch, user.base);
  expect((await examine()).checks).toMatchObject([
    { message: expect.stringContaining('a worktree that is not in use') },
  ]);
  expect((await examine('--fix')).code).toBe(0);
  expect(user.worktrees()).toEqual([group.path('api')]);
});
