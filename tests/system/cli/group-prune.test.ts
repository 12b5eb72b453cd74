/**
 * Promises: the groups to delete are shown first with the reason, and confirmed. A group stays if it runs, is paused
 * and not named, holds work that would be lost, has a branch that another group builds on, or has changed meanwhile.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { groupPaths } from '../../../src/store/paths.ts';
import { type WorktreeGroup, WorktreeUser } from '../../support/cli/worktree-ground.ts';
import { TestTerminal } from '../../support/terminal.ts';

let user: WorktreeUser;
beforeEach(() => {
  user = new WorktreeUser();
});
afterEach(() => user.remove());

interface Pruned {
  readonly groups: readonly { readonly id: string; readonly why: string }[];
  readonly kept: readonly { readonly id: string; readonly why: string }[];
  readonly deleted: readonly string[];
}

const pruned = (...options: string[]) => user.json<Pruned>('group', 'prune', ...options);
const isThere = ({ id }: WorktreeGroup) => existsSync(groupPaths(user.data, id).folder);
const goes = async (...options: string[]) => (await pruned(...options, '--dry-run')).groups.map(({ id }) => id).sort();

test('by age, status and size, all given conditions together; the newest can be kept', async () => {
  const [done, failed] = [user.group('done', []), user.group('failed', ['api'], 'failed')];
  const created = await user.ok('group', 'create', 'fresh');
  expect(await goes('--older-than', '0s')).toEqual([done.id, failed.id, created].sort());
  expect(await goes('--older-than', '1000d')).toEqual([]);
  expect(await goes('--status', 'failed')).toEqual([failed.id]);
  expect(await goes('--status', 'active')).toEqual([created]);
  writeFileSync(join(done.folder, 'large'), 'x'.repeat(2_100_000));
  expect(await goes('--larger-than', '2')).toEqual([done.id]);
  expect(await goes('--keep', '1')).toEqual([done.id, failed.id].sort());
  expect(await goes('--keep', '3')).toEqual([]);
  expect([isThere(done), isThere(failed)]).toEqual([true, true]);
});

test('without a terminal it refuses, with --yes it deletes; the shown reason is recorded', async () => {
  const [done, failed] = [user.group('done', ['api']), user.group('failed', ['api'], 'failed')];
  const refused = await user.run('group', 'prune', '--status', 'completed');
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('Delete 1 group (') });
  expect(refused.stdout).toMatch(new RegExp(`^${done.id} +\\d+\\.\\d MB +completed, unchanged for `, 'm'));
  expect(isThere(done)).toBe(true);
  expect(await pruned('--status', 'completed', '--yes')).toMatchObject({ deleted: [done.id] });
  expect([isThere(done), isThere(failed)]).toEqual([false, true]);
  expect(user.worktrees()).toHaveLength(1);
  expect(await user.run('group', 'prune')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('No condition was given'),
  });
  const none = await user.run('group', 'prune', '--status', 'archived');
  expect(none).toMatchObject({ code: 0, stderr: expect.stringContaining('No groups match') });
});

test('it asks on a terminal', async () => {
  const done = user.group('done', []);
  const line = [user.program, 'group', 'prune', '--status', 'completed'];
  const answer = async (text: string) => {
    const terminal = new TestTerminal(line, { cwd: user.folder, env: user.env, columns: 120 });
    await terminal.shows('Delete 1 group');
    terminal.type(`${text}\r`);
    return terminal.exited;
  };
  expect([await answer('n'), isThere(done)]).toEqual([0, true]);
  expect([await answer('y'), isThere(done)]).toEqual([0, false]);
}, 60_000);

test('running and paused groups stay unless they are named; a group with a live run always stays', async () => {
  const paused = user.group('paused', [], 'failed');
  const runner = { id: crypto.randomUUID(), runner: user.world.machine.self };
  paused.write((writer) => {
    writer.record([{ type: 'group_resumed', run: runner, retry: [] }]);
    writer.record([{ type: 'group_paused', reason: 'user', message: 'Paused.' }]);
  });
  expect(await goes('--older-than', '0s')).toEqual([]);
  expect(await goes('--status', 'paused')).toEqual([paused.id]);
  const lock = user.world.locks.tryLock(groupPaths(user.data, paused.id).lock, {
    identity: user.world.machine.self,
    runId: 'run',
  });
  expect(await pruned('--status', 'paused', '--yes')).toMatchObject({
    groups: [],
    kept: [{ id: paused.id, why: expect.stringContaining(`group pause ${paused.id}`) }],
  });
  lock?.release();
  expect(isThere(paused)).toBe(true);
});

test('uncommitted work, and a branch that another group builds on, keep a group', async () => {
  const [dirty, shared, merged] = ['dirty', 'shared', 'merged'].map((slug) => user.group(slug, ['api', 'web']));
  if (dirty === undefined || shared === undefined || merged === undefined) throw new Error('no groups');
  writeFileSync(join(dirty.path('api'), 'notes.txt'), 'x');
  const copy = await user.ok('group', 'copy', shared.id, '--from', 'web');
  const { deleted, kept } = await pruned('--status', 'completed', '--yes');
  expect([...deleted]).toEqual([merged.id]);
  expect(new Map(kept.map(({ id, why }) => [id, why]))).toEqual(
    new Map([
      [dirty.id, expect.stringContaining('notes.txt')],
      [shared.id, `Group ${copy} uses its branch ${shared.branch('api')}.`],
    ]),
  );
  expect(user.branches()).toContain(shared.branch('api'));
});
