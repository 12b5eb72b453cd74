/**
 * Promises: what an earlier program left is gone on with where it stood: conversations are resumed, nothing that was
 * completed runs again, costs add up, finished work is merged.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { git } from '../git/repository.ts';
import { pinnedClaude } from '../support/cli.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { longTest } from '../support/long.ts';
import { Heir, resettingAt } from './heir.ts';
import { firstKept as commit } from './old-program.ts';

let rig: Rig;
let user: Heir;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(() => {
  user = new Heir(rig);
});
afterEach(() => {
  for (const fake of rig.invocations) fake.exit(0);
  user.remove();
});

const attempts = (group: string, ...names: string[]) => names.map((name) => user.attempts(group, name));

test('a session that was paused three times goes on in its conversation; a completed one is left alone', async () => {
  const { groupId } = user.inherit({ commit, slug: 'paused' });
  const run = user.start('group', 'resume', groupId, '--output', 'quiet');
  const web = await user.begun(groupId, 'web');
  expect(web.resumed).toBe(true);
  await web.succeed(0.05);
  await (await user.begun(groupId, 'docs')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect(attempts(groupId, 'api', 'web', 'docs')).toEqual([1, 4, 1]);
  // 0.03 of api, 0.02 + 0.04 + 0.01 of web before.
  expect((await user.shown(groupId)).cost).toBeCloseTo(0.16, 6);
});

test('what a claude counted from the beginning of its conversation is paid once, and stays so', async () => {
  const { groupId, shown } = user.inherit({ commit, slug: 'doubled' });
  expect(shown.cost).toBeCloseTo(0.024, 6);
  const words = /may have counted twice/;
  for (const word of ['show', 'budget', 'report']) expect(await user.ok('group', word, groupId)).toMatch(words);
  for (const usd of ['8', '9']) {
    await user.ok('group', 'budget', groupId, '--raise-to', usd);
    expect((await user.shown(groupId)).cost).toBeCloseTo(0.012, 6);
  }
  expect(user.events(groupId).filter(({ type }) => type === 'usage_corrected')).toHaveLength(1);
  for (const word of ['show', 'budget', 'report']) expect(await user.ok('group', word, groupId)).not.toMatch(words);
});

longTest('one that was only created runs with all that was asked for', async () => {
  const { groupId } = user.inherit({ commit, slug: 'created' });
  expect(await user.ok('group', 'plan', groupId)).toContain('api');
  const run = user.start('group', 'run', groupId, '--output', 'quiet');
  const api = await user.begun(groupId, 'api');
  expect(api.hello.args.join(' ')).toMatch(/--model=claude-sonnet-5 .*--max-budget-usd 1(\.\d*)?( |$)/);
  await api.succeed(0.02);
  await (await user.begun(groupId, 'web')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
});

longTest('a failed session is tried again', async () => {
  const { groupId } = user.inherit({ commit, slug: 'failed' });
  expect(await user.run('group', 'run', groupId, '--output', 'quiet')).toMatchObject({ code: 1 });
  const run = user.start('group', 'run', groupId, '--retry-failed', '--output', 'quiet');
  await (await user.begun(groupId, 'api')).succeed(0.03);
  await (await user.begun(groupId, 'web')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect(attempts(groupId, 'api', 'web')).toEqual([2, 1]);
  expect((await user.shown(groupId)).cost).toBeCloseTo(0.06, 6);
});

longTest('a spent budget holds until there is more', async () => {
  const { groupId } = user.inherit({ commit, slug: 'budget' });
  expect(await user.run('group', 'resume', groupId, '--output', 'quiet')).toMatchObject({ code: 3 });
  expect(attempts(groupId, 'api', 'web')).toEqual([1, 0]);
  const run = user.start('group', 'resume', groupId, '--max-budget-usd', '1', '--output', 'quiet');
  await (await user.begun(groupId, 'web')).succeed(0.02);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await user.shown(groupId)).cost).toBeCloseTo(0.12, 6);
});

longTest('a run that a usage limit ended goes on after it', async () => {
  const { groupId } = user.inherit({ commit, slug: 'limit-paused' }, resettingAt(1_700_000_000_000));
  const run = user.start('group', 'resume', groupId, '--output', 'quiet');
  const api = await user.begun(groupId, 'api');
  expect(api.resumed).toBe(true);
  await api.succeed(0.03);
  await (await user.begun(groupId, 'web')).succeed(0.01);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect((await user.shown(groupId)).cost).toBeCloseTo(0.06, 6);
});

longTest('a workflow goes on from its frozen templates, with what came of its first half', async () => {
  const { groupId } = user.inherit({ commit, slug: 'workflow' });
  const promptFile = join(user.data, 'session-groups', groupId, 'sessions', user.id('change'), 'prompt.md');
  expect(readFileSync(promptFile, 'utf8')).toContain('It means a new column.');
  const run = user.start('group', 'resume', groupId, '--output', 'quiet');
  const change = await user.begun(groupId, 'change');
  expect(change.resumed).toBe(true);
  await change.succeed(0.02);
  expect(await run.finished).toMatchObject({ code: 0 });
  expect(attempts(groupId, 'find', 'change')).toEqual([1, 2]);
});

test('finished work is merged, its worktrees go, and the group is archived', async () => {
  const { groupId } = user.inherit({ commit, slug: 'finished' });
  const shop = join(user.folder, 'projects', 'finished-shop');
  await user.ok('group', 'merge', groupId);
  expect(git(shop, 'ls-tree', '--name-only', 'main').split('\n')).toEqual(['README.md', 'api.txt', 'web.txt']);
  expect(git(shop, 'status', '--porcelain')).toBe('');
  await user.ok('group', 'archive', groupId);
  expect(git(shop, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(git(shop, 'branch', '--format=%(refname:short)')).toBe('main');
  git(shop, 'fsck', '--strict');
});

test('what is merged is not merged again, and what is archived does not run', async () => {
  const { groupId: merged } = user.inherit({ commit, slug: 'merged' });
  const shop = join(user.folder, 'projects', 'merged-shop');
  const before = git(shop, 'rev-parse', 'main');
  await user.run('group', 'merge', merged);
  expect(git(shop, 'rev-parse', 'main')).toBe(before);
  const { groupId: archived } = user.inherit({ commit, slug: 'archived' });
  expect(await user.run('group', 'run', archived, '--output', 'quiet')).toMatchObject({ code: 1 });
  expect((await user.shown(archived)).status).toBe('archived');
});

/** The model's next answer came never; now it comes. */
const answering = (text: string) => text.replace('- hang: true', '- { text: Now it is done. }');

longTest('a conversation of an older claude is gone on with by the pinned one', async () => {
  const { groupId } = user.inherit({ commit, slug: 'rehearsed' }, answering);
  user.env.CLAUDE_CODE_AGENT_CLAUDE = pinnedClaude();
  writeFileSync(join(user.home, '.gitconfig'), '');
  const { cost } = await user.shown(groupId);
  const resumed = await user.run('group', 'resume', groupId, '--rehearse', join(user.folder, 'script.yaml'));
  expect(resumed).toMatchObject({ code: 0 });
  expect(attempts(groupId, 'api')).toEqual([3]);
  const logs = await user.ok('session', 'logs', `${groupId}/api`);
  expect(logs).toMatch(/I look first\.[\s\S]*Now it is done\./);
  expect(user.events(groupId).filter(({ type }) => type === 'session_warning')).toEqual([]);
  expect((await user.shown(groupId)).cost).toBeGreaterThan(cost);
});
