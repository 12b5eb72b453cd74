/**
 * Promises: every command that shows something shows of a group of an earlier program what that program showed, to the
 * token and the cent; in the end each is archived where that is possible, and deleted with all that belongs to it.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { roundUsd } from '../../src/core/group.ts';
import { User } from '../cli/user.ts';
import { git } from '../git/repository.ts';
import { type KeptGroup, keptGroups, unpack } from './home-file.ts';

let user: User;
const groups = new Map<string, KeptGroup>();
beforeAll(() => {
  user = new User();
  for (const kept of keptGroups()) groups.set(`${kept.commit}/${kept.slug}`, unpack(user.folder, kept));
});
afterAll(() => user.remove());

const rows = keptGroups().map(({ commit, slug }) => `${commit}/${slug}`);
const groupOf = (row: string) => groups.get(row) as KeptGroup;

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly rehearsal?: true;
}

test('all are listed', async () => {
  const listed = await user.json<Listed[]>('group', 'list');
  const expected = [...groups.values()].map(({ groupId, shown }) => [groupId, String(shown.status)]);
  expect(listed.map(({ id, status }) => [id, status]).toSorted()).toEqual(expected.toSorted());
  // Both were played; the program that wrote them did not say so.
  const played = rows.filter((row) => /\/(rehearsed|doubled)$/.test(row)).map((row) => groupOf(row).groupId);
  expect(listed.filter(({ rehearsal }) => rehearsal).map(({ id }) => id)).toEqual(played.toSorted().reverse());
});

/** An earlier program showed all digits of a fraction. */
const inMicros = (shown: object): object =>
  JSON.parse(JSON.stringify(shown), (_, value) => (typeof value === 'number' ? roundUsd(value) : value));

/**
 * An earlier program gave the reason of a pause where `group why` said that nobody runs the group, and told what
 * running sessions had spent in `progress` alone.
 */
function withVerdicts(shown: KeptGroup['shown']): object {
  const { progress } = shown as {
    progress?: { totalCost: number; sessions: readonly { status: string; reason?: string }[] };
  };
  if (shown.status !== 'running' || progress === undefined) return shown;
  const sessions = progress.sessions.map((one) => (one.status === 'paused' ? { ...one, reason: 'runner-gone' } : one));
  const { tokens: _, ...rest } = shown as { tokens?: object };
  return { ...rest, cost: progress.totalCost, progress: { ...progress, sessions } };
}

test.each(rows)('%s is as it was', async (row) => {
  const { groupId, shown, budget, sessions } = groupOf(row);
  // What a claude that counts otherwise made the program count twice may be put right.
  if (!row.includes('/doubled')) {
    expect(await user.json<object>('group', 'show', groupId)).toMatchObject(inMicros(withVerdicts(shown)));
    expect(await user.json<object>('group', 'budget', groupId)).toMatchObject(inMicros(budget));
  }
  for (const word of ['why', 'report', 'graph']) await user.ok('group', word, groupId);
  for (const id of Object.values(sessions)) {
    expect(await user.ok('session', 'show', `${groupId}/${id}`)).toContain(id);
    expect(await user.run('session', 'logs', `${groupId}/${id}`)).toMatchObject({ code: 0 });
  }
});

test('what was said and done is told', async () => {
  const web = `${groupOf('1aa443d/paused').groupId}/web`;
  const logs = await user.ok('session', 'logs', web);
  for (const said of ['attempt 1', 'attempt 2', 'attempt 3', 'Another 0.04.', 'Another 0.01.']) {
    expect(logs).toContain(said);
  }
  const { groupId } = groupOf('1aa443d/finished');
  expect(await user.ok('group', 'diff', groupId, '--stat')).toMatch(/api\.txt[\s\S]*web\.txt/);
});

test('a completed one is archived, and stays what it cost', async () => {
  const { groupId, shown } = groupOf('1aa443d/completed');
  await user.ok('group', 'archive', groupId);
  const { status, cost } = await user.json<{ status: string; cost: number }>('group', 'show', groupId);
  expect({ status, cost }).toEqual({ status: 'archived', cost: shown.cost as number });
});

test('each is deleted, worktrees are gone, and unmerged work stays on its branch', async () => {
  const shop = join(user.folder, 'projects', 'finished-shop');
  const branches = git(shop, 'branch', '--list', 'cca/*', '--format=%(refname:short)');
  expect(branches.split('\n')).toHaveLength(2);
  for (const { groupId } of groups.values()) await user.ok('group', 'delete', groupId, '--force');
  expect(readdirSync(join(user.data, 'session-groups'))).toEqual([]);
  expect(git(shop, 'worktree', 'list').split('\n')).toHaveLength(1);
  // The second one holds all of the first.
  expect(git(shop, 'ls-tree', '--name-only', branches.split('\n').at(-1) as string)).toContain('api.txt');
  expect(git(shop, 'branch', '--list', 'cca/*')).not.toBe('');
});
