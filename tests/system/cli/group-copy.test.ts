/**
 * Promises: a group can be copied with new ids and the same sessions. With --from, everything completed before that
 * session keeps its result and its branch at no cost. No command on either group removes what the other one uses.
 */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

let shop: Repository;
withNight();
beforeEach(() => {
  shop = new Repository(join(nightUser.folder, 'shop'));
  shop.commit({ 'README.md': '# Shop\n' });
});

const stateOf = (group: string) => foldEvents(nightUser.events(group)) as GroupState;

function session(group: string, name: string): SessionRecord {
  const found = [...stateOf(group).sessions.values()].find(({ definition }) => definition.name === name);
  if (found === undefined) throw new Error(`no session ${name}`);
  return found;
}

/** From now on the names are those of this group's sessions. */
function know(group: string): string {
  for (const { definition } of stateOf(group).sessions.values()) nightUser.note(definition.name ?? '', definition.id);
  return group;
}

async function addTo(group: string, name: string, ...more: string[]): Promise<void> {
  const common = ['--project', shop.folder, '--prompt', `Do ${name}.`, '--name', name, '--isolate', 'worktree'];
  nightUser.note(name, await nightUser.ok('session', 'add', group, ...common, ...more));
}

/** A chain of three, each of which writes a file with its name. */
async function chain(): Promise<string> {
  const group = await nightUser.ok('group', 'create', 'auth', '--no-warm-cache', '--max-budget-usd', '5');
  await addTo(group, 'api');
  await addTo(group, 'web', '--depends-on', 'api');
  await addTo(group, 'docs', '--depends-on', 'web', '--prompt', 'Read {{sessions.web.result}}');
  return group;
}

async function work(group: string, ...names: string[]): Promise<string[]> {
  const prompts: string[] = [];
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  for (const name of names) {
    const fake = await nightUser.next(name);
    prompts.push(await fake.prompt());
    await fake.init();
    await nightUser.event(
      group,
      'session_identified',
      (event) => 'sessionId' in event && event.sessionId === nightUser.id(name),
    );
    writeFileSync(join(fake.hello.cwd, `${name}.txt`), `${name}\n`);
    await fake.succeed(0.25, `${name} is done`);
  }
  expect((await run.finished).code).toBe(0);
  return prompts;
}

/** With the real claude, which finds the scripted model by its environment alone. */
const rehearse = (group: string, ...options: string[]) =>
  nightUser.runWith(
    { env: { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() } },
    'group',
    'run',
    group,
    '--output',
    'quiet',
    ...options,
  );

const branches = () => git(shop.folder, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/').split('\n');
const filesIn = (branch: string) => git(shop.folder, 'ls-tree', '--name-only', branch).split('\n');
const branchOf = (group: string, name: string) => session(group, name).workspace?.branch ?? '';

test('a copy has other ids, no results, and the same settings and templates', async () => {
  const config = join(nightUser.folder, 'strict');
  mkdirSync(config);
  writeFileSync(join(config, 'CLAUDE.md'), 'Be strict.');
  const group = await nightUser.ok('group', 'create', 'auth', '--max-budget-usd', '5', '--config-template', config);
  await addTo(group, 'api', '--model', 'opus');
  await addTo(group, 'web', '--depends-on', 'api', '--prompt', 'Read {{sessions.api.result}}');
  const shared = join(nightUser.data, 'session-groups', group, 'shared-config', 'commands');
  mkdirSync(shared, { recursive: true });
  writeFileSync(join(shared, 'go.md'), 'Go.');
  writeFileSync(join(config, 'CLAUDE.md'), 'Be lax.');
  const copy = know(await nightUser.ok('group', 'copy', 'auth', '--name', 'Again'));
  const [before, after] = [stateOf(group), stateOf(copy)];
  expect(copy).not.toBe(group);
  expect(after.group).toEqual({ ...before.group, id: copy, name: 'Again', createdAt: after.group.createdAt });
  expect(after.status).toBe('created');
  const [api, web] = [session(copy, 'api').definition, session(copy, 'web').definition];
  expect(api).toMatchObject({ model: 'opus', id: expect.stringMatching(/^001-/) });
  expect(web.dependsOn).toEqual([api.id]);
  expect(web.promptReferences?.[0]?.sessionIds).toEqual([api.id]);
  expect([...before.sessions.keys()].some((id) => after.sessions.has(id))).toBe(false);
  const folder = join(nightUser.data, 'session-groups', copy);
  const digest = after.group.configTemplate?.digest ?? '';
  expect(readFileSync(join(folder, 'templates', digest, 'CLAUDE.md'), 'utf8')).toBe('Be strict.');
  expect(readFileSync(join(folder, 'shared-config', 'commands', 'go.md'), 'utf8')).toBe('Go.');
});

test('--from a session: earlier sessions keep result and branch, and their cost counts once', async () => {
  const group = await chain();
  await work(group, 'api', 'web', 'docs');
  const copy = know(await nightUser.ok('group', 'copy', 'auth', '--from', 'docs'));
  expect([...stateOf(copy).sessions.values()].map(({ state }) => state.status)).toEqual([
    'completed',
    'completed',
    'pending',
  ]);
  expect(stateOf(copy).usage.costUsd).toBe(0);
  const [prompt] = await work(copy, 'docs');
  expect(prompt).toContain('web is done');
  expect(filesIn(branchOf(copy, 'docs'))).toEqual(['README.md', 'api.txt', 'docs.txt', 'web.txt']);
  expect(branchOf(copy, 'web')).toBe(branchOf(group, 'web'));
  expect(branchOf(copy, 'docs')).not.toBe(branchOf(group, 'docs'));
  expect(await nightUser.json<object>('group', 'show', copy)).toMatchObject({ status: 'completed', cost: 0.25 });
  expect(await nightUser.ok('group', 'diff', copy, '--stat')).toContain('api.txt');
  const third = know(await nightUser.ok('group', 'copy', copy, '--from', 'docs'));
  expect(session(third, 'web').inherited).toEqual({ groupId: group, sessionId: session(group, 'web').definition.id });
  const { stderr } = await nightUser.run('session', 'logs', `${third}/web`);
  const [, log] = /ran in group \S+\. See its log: \S+ (.*)/.exec(stderr) ?? [];
  expect(await nightUser.ok(...(log ?? '').split(' '))).toContain('web is done');
}, 60_000);

test('sessions that did not complete, and their dependents, run again as well', async () => {
  const group = await chain();
  await addTo(group, 'alone');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, alone] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'alone')]);
  await alone.succeed(0.1, 'alone is done');
  await nightUser.event(group, 'session_completed');
  const copy = await nightUser.ok('group', 'copy', 'auth', '--from', 'docs');
  const statuses = [...stateOf(copy).sessions.values()].map(({ definition, state }) => [definition.name, state.status]);
  expect(statuses).toEqual([
    ['api', 'pending'],
    ['web', 'pending'],
    ['docs', 'pending'],
    ['alone', 'completed'],
  ]);
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  await pause.finished;
  await run.finished;
}, 60_000);

test('merging and deleting the first group leaves the branches that the copy uses', async () => {
  const group = await chain();
  await work(group, 'api', 'web', 'docs');
  const [api, web, docs] = ['api', 'web', 'docs'].map((name) => branchOf(group, name));
  const copy = know(await nightUser.ok('group', 'copy', 'auth', '--from', 'docs'));
  await nightUser.ok('group', 'merge', group);
  expect(branches()).toEqual([api, web, 'main'].map((name) => name ?? '').sort());
  await nightUser.ok('group', 'delete', group, '--force');
  expect(branches()).toEqual([api, web, 'main'].map((name) => name ?? '').sort());
  await work(copy, 'docs');
  await nightUser.ok('group', 'merge', copy);
  // No other group uses them any more.
  expect([branches(), docs]).toEqual([['main'], docs]);
  expect(filesIn('main')).toEqual(['README.md', 'api.txt', 'docs.txt', 'web.txt']);
}, 60_000);

test('merging and deleting the copy leaves the branches and worktrees of the first group', async () => {
  const group = await chain();
  await work(group, 'api', 'web', 'docs');
  const before = branches();
  const copy = know(await nightUser.ok('group', 'copy', 'auth', '--from', 'docs'));
  await work(copy, 'docs');
  await nightUser.ok('group', 'merge', copy);
  expect(branches()).toEqual(before);
  await nightUser.ok('group', 'delete', copy, '--force');
  expect(branches()).toEqual(before);
  expect(existsSync(session(group, 'web').workspace?.path ?? '')).toBe(true);
  expect((await nightUser.run('doctor', '--worktrees')).stdout).not.toContain('broken');
}, 60_000);

test('a rehearsal can be copied for a real run, and is never run for real by mistake', async () => {
  const group = await nightUser.ok('group', 'create', 'auth');
  await addTo(group, 'api');
  expect(await rehearse(group, '--rehearse')).toMatchObject({ code: 0 });
  const play = know(await nightUser.ok('group', 'copy', group));
  expect(stateOf(play).rehearsal).toEqual({});
  expect(await nightUser.ok('group', 'list')).toContain('fake');
  const refused = await nightUser.run('group', 'copy', group, '--real', '--from', 'api');
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot keep its results') });
  expect(await rehearse(play)).toMatchObject({ code: 0 });
  expect(stateOf(play).run?.rehearsal).toBe(true);
  const real = know(await nightUser.ok('group', 'copy', group, '--real'));
  await work(real, 'api');
  expect(stateOf(real).run?.rehearsal).toBeUndefined();
}, 90_000);
