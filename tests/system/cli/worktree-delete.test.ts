/**
 * Promises of `group delete` and `session remove` with worktrees: without --force uncommitted work stays; with it the
 * work is committed first. Branches with unmerged commits stay and are named with their commits, as is anything that
 * git cannot keep. git keeps no entry of a removed worktree.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leftoversOf, releaseWorktrees } from '../../../src/app/delivery/worktree-cleanup.ts';
import { groupPaths } from '../../../src/store/paths.ts';
import { quietContext, type WorktreeGroup, WorktreeUser } from '../../support/cli/worktree-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: WorktreeUser;
beforeEach(() => {
  user = new WorktreeUser();
});
afterEach(() => {
  git(user.shop, 'fsck', '--strict');
  expect(git(user.shop, 'status', '--porcelain')).toBe('');
  user.remove();
});

/** As the commands do it after a confirmation on a terminal; `force` as after --force. */
function release(group: WorktreeGroup, force: boolean) {
  const context = quietContext(user, user.world);
  const paths = groupPaths(user.data, group.id);
  const command = ['group', 'delete', group.id];
  const told: string[] = [];
  const tell = (note: string): void => {
    told.push(note);
  };
  return leftoversOf(context, paths, group.state)
    .then((all) => releaseWorktrees(context, paths, all, { force, command, tell }))
    .then((released) => (released.ok ? told : released));
}

test('without --force: commits stay on their branch, which is named; the worktrees are removed', async () => {
  const group = user.group('auth', ['api', 'web']);
  const work = group.commit('api');
  const told = await release(group, false);
  expect(told).toEqual([expect.stringContaining(`The branch ${group.branch('api')} stays in `)]);
  expect(told).toEqual([expect.stringContaining(` at ${work.slice(0, 12)}: 1 commit is not merged.`)]);
  expect(user.worktrees()).toEqual([]);
  expect(user.branches()).toEqual([group.branch('api'), 'main']);
  expect(git(user.shop, 'rev-parse', group.branch('api'))).toBe(work);
});

test('without --force: one uncommitted file keeps everything', async () => {
  const group = user.group('auth', ['api', 'web', 'docs']);
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  writeFileSync(join(group.path('docs'), 'notes.txt'), 'x');
  const refused = await release(group, false);
  expect(refused).toMatchObject({ ok: false, failure: { reason: 'illegal-transition' } });
  if (Array.isArray(refused)) return;
  expect(refused.failure.message).toContain('002 web cannot be removed. It holds 1 file');
  expect(refused.failure.message).toContain('1 more session');
  expect(refused.failure.next.commands).toEqual([['group', 'delete', group.id, '--force']]);
  expect(user.worktrees()).toHaveLength(3);
});

/** The printed line about this branch. */
const lineOf = (stderr: string, branch: string): string =>
  stderr.split('\n').find((line) => line.includes(branch)) ?? '';
/** Paths that the branch's last commit changed. */
const filesOf = (branch: string): string[] => git(user.shop, 'ls-tree', '-r', '--name-only', branch).split('\n');

test('group delete --force: the group is removed; all work stays on its branches, which are named', async () => {
  const group = user.group('auth', ['api', 'web', 'docs', 'idle']);
  const api = group.commit('api');
  const docs = group.commit('docs');
  group.merge('docs');
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  writeFileSync(join(group.path('web'), 'debug.log'), 'ignored');
  writeFileSync(join(group.path('web'), '.cpm-progress-1.md'), 'ours');
  writeFileSync(join(group.path('web'), 'README.md'), '# Changed\n');
  const { code, stderr } = await user.run('group', 'delete', group.id, '--force');
  expect(code).toBe(0);
  expect([user.worktrees(), existsSync(group.folder)]).toEqual([[], false]);
  expect(user.branches()).toEqual([group.branch('api'), group.branch('web'), 'main']);
  const web = git(user.shop, 'rev-parse', group.branch('web'));
  expect(git(user.shop, 'rev-parse', group.branch('api'))).toBe(api);
  expect(lineOf(stderr, group.branch('api'))).toContain(api.slice(0, 12));
  expect(lineOf(stderr, group.branch('web'))).toBe(
    `Committed on ${group.branch('web')}, ${web.slice(0, 12)}: uncommitted changes of 002 web ` +
      '(README.md, notes.txt).',
  );
  expect(stderr).not.toContain(docs);
  expect(filesOf(group.branch('web'))).toEqual(['.gitignore', 'README.md', 'notes.txt']);
  expect(git(user.shop, 'show', `${web}:README.md`)).toBe('# Changed');
  expect(git(user.shop, 'rev-parse', `${web}^`)).toBe(user.base);
});

test('--force: work that git cannot keep is named, and work that cannot be committed keeps the group', async () => {
  const group = user.group('auth', ['api', 'web']);
  mkdirSync(join(group.path('api'), 'vendor'));
  git(join(group.path('api'), 'vendor'), 'init', '--quiet');
  writeFileSync(join(group.path('api'), 'vendor/a.txt'), 'a');
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  const lock = join(git(group.path('web'), 'rev-parse', '--absolute-git-dir'), 'index.lock');
  writeFileSync(lock, '');
  const refused = await user.run('group', 'delete', group.id, '--force');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('Deleted with the worktree of 001 api: nested repositories (vendor/).');
  expect(refused.stderr).toContain('The worktree of 002 web was kept, because its work cannot be committed.');
  expect(refused.stderr).toContain('index.lock');
  expect([existsSync(group.folder), user.worktrees()]).toEqual([true, [group.path('web')]]);
  rmSync(lock);
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect(filesOf(group.branch('web'))).toContain('notes.txt');
});

test('group delete --force: a locked worktree keeps the group', async () => {
  const group = user.group('auth', ['api']);
  git(user.shop, 'worktree', 'lock', group.path('api'));
  const refused = await user.run('group', 'delete', group.id, '--force');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('It is locked; unlock it with: git worktree unlock');
  expect([existsSync(group.folder), group.isThere('api')]).toEqual([true, true]);
  git(user.shop, 'worktree', 'unlock', group.path('api'));
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
});

test('a damaged group is deleted with its worktrees', async () => {
  const group = user.group('auth', ['api', 'web']);
  group.commit('api');
  writeFileSync(join(group.folder, 'events.jsonl'), 'no log\n');
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect(user.worktrees()).toEqual([]);
  expect(existsSync(group.folder)).toBe(false);
  // The other worktree contains no work.
  expect(user.branches()).toEqual([group.branch('api'), 'main']);
});

test('session remove: the worktree is removed, with --force after its work is committed', async () => {
  const group = user.group('auth', ['api', 'web'], 'failed');
  const work = group.commit('api');
  writeFileSync(join(group.path('api'), 'notes.txt'), 'x');
  const asked = await user.run('session', 'remove', `${group.id}/api`);
  expect(asked).toMatchObject({ code: 2 });
  expect(user.worktrees()).toHaveLength(2);
  const { code, stderr } = await user.run('session', 'remove', `${group.id}/api`, '--force');
  expect([code, user.worktrees()]).toEqual([0, [group.path('web')]]);
  expect(user.branches()).toEqual([group.branch('api'), group.branch('web'), 'main']);
  const tip = git(user.shop, 'rev-parse', group.branch('api'));
  expect(git(user.shop, 'rev-parse', `${tip}^`)).toBe(work);
  expect(stderr).toContain(`The branch ${group.branch('api')} stays in `);
  expect(stderr).toContain(` at ${tip.slice(0, 12)}: 2 commits are not merged`);
  expect(readdirSync(join(group.folder, 'sessions'))).toEqual([group.session('web')]);
  expect(group.state.sessions.has(group.session('api'))).toBe(false);
});
