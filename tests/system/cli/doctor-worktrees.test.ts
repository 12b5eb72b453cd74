/** Promises of `doctor --worktrees`: what is left behind is found, each with its cure, and --fix loses nothing. */
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

test('a group that was deleted by hand: its entries go, its branches are only listed', async () => {
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

test('a session that was removed half: gone with --fix unless it holds something', async () => {
  const group = user.group('auth', ['api', 'web'], 'failed');
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  for (const name of ['api', 'web']) {
    group.write((writer) => writer.record([{ type: 'session_removed', sessionId: group.session(name) }]));
  }
  const { code, checks } = await examine('--fix');
  expect(code).toBe(1);
  const kept = checks.filter(({ level }) => level === 'broken');
  expect(kept).toMatchObject([{ message: expect.stringContaining('in no commit: notes.txt') }]);
  expect(user.worktrees()).toEqual([group.path('web')]);
});

test('a folder that is gone, a clean-up that was interrupted, one that never began', async () => {
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

test('locked: told, never removed', async () => {
  const group = user.group('auth', ['api']);
  git(user.shop, 'worktree', 'lock', '--reason', 'on a stick', group.path('api'));
  rmSync(group.folder, { recursive: true });
  const { checks } = await examine('--fix');
  expect(checks).toMatchObject([{ level: 'warning', message: expect.stringContaining('locked (on a stick)') }]);
  expect(checks[0]?.next).toContain('worktree unlock');
  expect(user.worktrees()).toEqual([group.path('api')]);
});

test('what a killed merge left: scratch worktrees go when it is finished or undone', async () => {
  const group = user.group('auth', ['api']);
  const scratch = join(group.folder, 'merge', 'auth-merge-1');
  git(user.shop, 'worktree', 'add', '--quiet', '--detach', scratch, user.base);
  const journal = {
    version: 1,
    step: 'checking',
    mark: crypto.randomUUID(),
    scratches: [{ repository: user.gitDir, path: scratch }],
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
  expect((await examine()).checks).toMatchObject([{ message: expect.stringContaining('a worktree that nobody uses') }]);
  expect((await examine('--fix')).code).toBe(0);
  expect(user.worktrees()).toEqual([group.path('api')]);
});

test('worktrees of the user’s own are nobody’s business', async () => {
  user.group('auth', ['api']);
  const mine = join(user.folder, 'mine');
  git(user.shop, 'worktree', 'add', '--quiet', '-b', 'topic', mine);
  rmSync(mine, { recursive: true });
  expect(await examine('--fix')).toMatchObject({ code: 0, checks: [{ level: 'ok' }] });
  expect(git(user.shop, 'worktree', 'list')).toContain(mine);
});

test('a repository that is gone', async () => {
  const group = user.group('auth', ['api']);
  renameSync(user.shop, join(user.folder, 'moved'));
  const { code, stdout } = await user.run('doctor', '--worktrees');
  expect(code).toBe(1);
  expect(stdout).toContain('has lost its repository');
  expect(stdout).toContain(`group archive ${group.id} --force`);
});

/** What one check says, with and without --fix: the same, when --fix can do nothing. */
async function examineBoth(): Promise<Check> {
  const before = (await examine()).checks.filter(({ level }) => level === 'broken');
  const after = (await examine('--fix')).checks.filter(({ level }) => level === 'broken');
  expect(after).toEqual(before);
  expect(before).toHaveLength(1);
  expect(before[0]?.next).not.toContain('--fix');
  return before[0] as Check;
}

test('a folder that is gone while its branch is not merged: the cure is the one that works', async () => {
  const group = user.group('auth', ['api']);
  group.commit('api');
  rmSync(group.path('api'), { recursive: true });
  const open = await examineBoth();
  expect(open.message).toContain(`1 commit of ${group.branch('api')}`);
  expect(open.next).toContain(`claude-code-agent group merge ${group.id}`);
  expect(open.next).toContain(`group archive ${group.id} --force`);
  group.write((writer) => writer.record([{ type: 'group_archived' }]));
  const archived = await examineBoth();
  expect(archived.next).not.toContain('group merge');
  const merge = /"(git -C .*)"/.exec(archived.next)?.[1] ?? '';
  expect(Bun.spawnSync(['/bin/sh', '-c', merge], { env: user.env }).exitCode).toBe(0);
  expect(await examine('--fix')).toMatchObject({ code: 0 });
  expect(await examine()).toMatchObject({ code: 0, checks: [{ level: 'ok' }] });
}, 20_000);

test('merged, with something uncommitted since: no --fix removes it', async () => {
  const group = user.group('auth', ['api']);
  const to = group.commit('api');
  group.merge('api');
  const merged = { repository: user.gitDir, into: 'main', from: user.base, to, sessionIds: [group.session('api')] };
  group.write((writer) => writer.record([{ type: 'group_merged', merged: [merged] }]));
  writeFileSync(join(group.path('api'), 'late.txt'), 'x');
  const { message, next } = await examineBoth();
  expect(message).toContain('in no commit: late.txt');
  expect(next).toContain(`Commit it on its branch in ${group.path('api')}`);
  expect(await user.run('group', 'archive', group.id, '--force')).toMatchObject({ code: 0 });
  expect(await examine()).toMatchObject({ code: 0, checks: [{ level: 'ok' }] });
}, 20_000);

test('a session that is gone and held something: by hand, and the rest with --fix', async () => {
  const group = user.group('auth', ['api'], 'failed');
  group.commit('api');
  group.write((writer) => writer.record([{ type: 'session_removed', sessionId: group.session('api') }]));
  const { next } = await examineBoth();
  const drop = next.replace('Save what you need, then: ', '');
  expect(Bun.spawnSync(['/bin/sh', '-c', drop], { env: user.env }).exitCode).toBe(0);
  expect(await examine('--fix')).toMatchObject({ code: 0 });
  expect(await examine()).toMatchObject({ code: 0, checks: [{ level: 'ok' }] });
  expect([user.worktrees(), user.branches()]).toEqual([[], ['main']]);
}, 20_000);
