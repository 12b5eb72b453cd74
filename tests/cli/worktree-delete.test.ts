/**
 * Promises of `group delete` and `session remove` with worktrees: nothing that is in no commit is lost without --force,
 * branches with unmerged commits stay, and git remembers no worktree that is gone.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Context } from '../../src/cli/context.ts';
import { leftoversOf, releaseWorktrees } from '../../src/cli/worktree-cleanup.ts';
import { groupPaths } from '../../src/store/paths.ts';
import { git } from '../git/repository.ts';
import { type WorktreeGroup, WorktreeUser } from './worktree-ground.ts';

let user: WorktreeUser;
beforeEach(() => {
  user = new WorktreeUser();
});
afterEach(() => {
  git(user.shop, 'fsck', '--strict');
  expect(git(user.shop, 'status', '--porcelain')).toBe('');
  user.remove();
});

/** As the commands do it after somebody said yes on a terminal; `force` as after --force. */
function release(group: WorktreeGroup, force: boolean) {
  const context = { world: user.world, env: user.env, cwd: user.folder } as unknown as Context;
  const paths = groupPaths(user.data, group.id);
  const command = `claude-code-agent group delete ${group.id}`;
  return leftoversOf(context, paths, group.state).then((all) =>
    releaseWorktrees(context, paths, all, { force, command }),
  );
}

test('without --force: commits stay on their branch, which is named; the worktrees go', async () => {
  const group = user.group('auth', ['api', 'web']);
  const work = group.commit('api');
  const released = await release(group, false);
  expect(released).toMatchObject({
    ok: true,
    value: [expect.stringContaining(`The branch ${group.branch('api')} stays`)],
  });
  expect(user.worktrees()).toEqual([]);
  expect(user.branches()).toEqual([group.branch('api'), 'main']);
  expect(git(user.shop, 'rev-parse', group.branch('api'))).toBe(work);
});

test('without --force: one file in no commit keeps everything', async () => {
  const group = user.group('auth', ['api', 'web', 'docs']);
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  writeFileSync(join(group.path('docs'), 'notes.txt'), 'x');
  const refused = await release(group, false);
  expect(refused).toMatchObject({ ok: false, failure: { reason: 'illegal-transition' } });
  if (refused.ok) return;
  expect(refused.failure.message).toContain('002 web is in the way. It holds 1 file');
  expect(refused.failure.message).toContain('1 further session');
  expect(refused.failure.next).toContain('--force');
  expect(user.worktrees()).toHaveLength(3);
});

test('group delete --force: worktrees and branches go with the group', async () => {
  const group = user.group('auth', ['api', 'web']);
  group.commit('api');
  writeFileSync(join(group.path('web'), 'notes.txt'), 'x');
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect([user.worktrees(), user.branches(), existsSync(group.folder)]).toEqual([[], ['main'], false]);
});

test('group delete --force: what somebody locked keeps the group', async () => {
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
  rmSync(join(group.folder, 'sessions', group.session('web'), 'workspace.json'));
  writeFileSync(join(group.folder, 'events.jsonl'), 'no log\n');
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect(user.worktrees()).toEqual([]);
  expect(existsSync(group.folder)).toBe(false);
  // Of the second one nothing said which branch is its own.
  expect(user.branches()).toEqual([group.branch('web'), 'main']);
});

test('a folder of a session that is not in the log any more goes through git as well', async () => {
  const group = user.group('auth', ['api', 'web'], 'failed');
  group.write((writer) => writer.record([{ type: 'session_removed', sessionId: group.session('api') }]));
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect([user.worktrees(), user.branches()]).toEqual([[], ['main']]);
});

test('session remove: the worktree goes, unmerged work only with --force', async () => {
  const group = user.group('auth', ['api', 'web'], 'failed');
  group.commit('api');
  writeFileSync(join(group.path('api'), 'notes.txt'), 'x');
  const asked = await user.run('session', 'remove', `${group.id}/api`);
  expect(asked).toMatchObject({ code: 2 });
  expect(user.worktrees()).toHaveLength(2);
  expect(await user.run('session', 'remove', `${group.id}/api`, '--force')).toMatchObject({ code: 0 });
  expect(user.worktrees()).toEqual([group.path('web')]);
  expect(user.branches()).toEqual([group.branch('web'), 'main']);
  expect(readdirSync(join(group.folder, 'sessions'))).toEqual([group.session('web')]);
  expect(group.state.sessions.has(group.session('api'))).toBe(false);
});

test('session remove: what is locked keeps the session', async () => {
  const group = user.group('auth', ['api'], 'failed');
  git(user.shop, 'worktree', 'lock', group.path('api'));
  const refused = await user.run('session', 'remove', `${group.id}/api`, '--force');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('locked');
  expect([group.isThere('api'), group.state.sessions.has(group.session('api'))]).toEqual([true, true]);
});

test('a data folder that was moved: the worktree is found where it is now', async () => {
  const group = user.group('auth', ['api']);
  group.commit('api');
  group.merge('api');
  const folder = join(user.folder, 'elsewhere');
  await user.world.files.rename(user.data, folder);
  const archived = await user.runWith({ env: { CLAUDE_CODE_AGENT_HOME: folder } }, 'group', 'archive', group.id);
  expect(archived).toMatchObject({ code: 0 });
  expect(archived.stderr).toContain('Removed 1 worktree');
  expect([user.worktrees(), user.branches()]).toEqual([[], ['main']]);
});

test('a name in a file beside the worktree cannot have a branch of the user deleted', async () => {
  const group = user.group('auth', ['api'], 'failed');
  git(user.shop, 'branch', 'precious');
  const intent = join(group.folder, 'sessions', group.session('api'), 'workspace.json');
  const text = user.world.files.readText(intent) ?? '';
  user.world.files.writeAtomic(
    intent,
    JSON.stringify({ ...JSON.parse(text), branch: 'precious', path: join(user.folder, 'home') }),
  );
  group.write((writer) => writer.record([{ type: 'session_removed', sessionId: group.session('api') }]));
  expect(await user.run('group', 'delete', group.id, '--force')).toMatchObject({ code: 0 });
  expect(user.branches()).toContain('precious');
  expect(existsSync(user.home)).toBe(true);
});
