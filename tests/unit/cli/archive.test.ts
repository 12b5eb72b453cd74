/**
 * Promises: `group archive` never removes unmerged work without force, and prints the commit id that restores what
 * force discards.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type WorktreeGroup, WorktreeUser } from '../../support/cli/worktree-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: WorktreeUser;
beforeEach(() => {
  user = new WorktreeUser();
});
afterEach(() => user.remove());

const archive = (group: WorktreeGroup, ...more: string[]) => user.run('group', 'archive', group.id, ...more);

async function expectRefused(group: WorktreeGroup, words: readonly string[]): Promise<void> {
  const log = join(group.folder, 'events.jsonl');
  const before = [readFileSync(log, 'utf8'), git(user.shop, 'for-each-ref'), user.worktrees()];
  const refused = await archive(group);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  for (const word of words) expect(refused.stderr).toContain(word);
  expect([readFileSync(log, 'utf8'), git(user.shop, 'for-each-ref'), user.worktrees()]).toEqual(before);
}

test('group archive refuses unmerged commits and suggests two commands, each of which works', async () => {
  const group = user.group('auth', ['api', 'web', 'idle']);
  group.commit('api');
  group.commit('web');
  const merge = `claude-code-agent group merge ${group.id}`;
  const force = `claude-code-agent group archive ${group.id} --force`;
  await expectRefused(group, ['001 api', `1 commit of ${group.branch('api')}`, '1 more session', merge, force]);
  expect(await user.run('group', 'merge', group.id)).toMatchObject({ code: 0 });
  expect(await archive(group)).toMatchObject({ code: 0 });
  expect([group.state.status, user.branches(), user.worktrees()]).toEqual(['archived', ['main'], []]);
}, 20_000);

test('group archive accepts the branch of a failed session after it was merged with git', async () => {
  const group = user.group('auth', ['api'], 'failed');
  group.commit('api');
  const merge = `git -C '${user.shop}' merge ${group.branch('api')}`;
  await expectRefused(group, [merge, '--force']);
  expect(Bun.spawnSync(['/bin/sh', '-c', merge], { env: user.env }).exitCode).toBe(0);
  expect(await archive(group)).toMatchObject({ code: 0 });
}, 20_000);

test('group archive refuses uncommitted work and work in a locked worktree', async () => {
  const group = user.group('auth', ['api']);
  writeFileSync(join(group.path('api'), 'new.txt'), 'x');
  await expectRefused(group, ['uncommitted changes: new.txt', `Commit it on its branch in ${group.path('api')}`]);
  group.commit('api', 'new.txt');
  git(user.shop, 'worktree', 'lock', group.path('api'));
  await expectRefused(group, ['It is locked; unlock it with: git worktree unlock']);
}, 20_000);

test('work discarded by group archive can be restored with the printed command', async () => {
  const group = user.group('auth', ['api']);
  const commit = group.commit('api');
  writeFileSync(join(group.path('api'), 'more.txt'), 'x');
  const { code, stderr } = await archive(group, '--force');
  expect(code).toBe(0);
  expect(stderr).toContain(`1 unmerged commit of ${group.branch('api')}, the last one ${commit}`);
  expect(stderr).toContain('uncommitted more.txt');
  expect(existsSync(group.path('api'))).toBe(false);
  const back = /To restore it within a few weeks: (git .*)/.exec(stderr)?.[1] ?? '';
  expect(Bun.spawnSync(['/bin/sh', '-c', back], { env: user.env }).exitCode).toBe(0);
  expect(git(user.shop, 'rev-parse', group.branch('api'))).toBe(commit);
}, 20_000);
