/**
 * Promises: `group edit` changes a group with or without a runner, completely or not at all. Sessions added or
 * changed in a workflow enter a started group, those that ran stay, and a cap never falls below spent and reserved
 * money.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

withNight();

const stateOf = (group: string) => foldEvents(nightUser.events(group)) as GroupState;
const isEdit = ({ type }: GroupEvent) => /^group_(changed|redefined)$|^session_(added|changed)$/.test(type);
const editsOf = (group: string) => nightUser.events(group).filter(isEdit);

function definition(group: string, name: string): SessionDefinition {
  const found = [...stateOf(group).sessions.values()].find((record) => record.definition.name === name);
  if (found === undefined) throw new Error(`no session ${name}`);
  return found.definition;
}

const text = (sessions: string, vars = '') => `version: 1\n${vars}sessions:\n${sessions}`;
const first = `  api: { project: projects/api, prompt: "Do it." }
  web: { project: projects/web, prompt: "Read {{sessions.api.result}}", dependsOn: api }
`;

function workflow(sessions: string, vars?: string): string {
  for (const name of ['api', 'web', 'docs']) mkdirSync(nightUser.project(name), { recursive: true });
  const file = join(nightUser.folder, 'change.yaml');
  writeFileSync(file, text(sessions, vars));
  return file;
}

async function made(sessions = first): Promise<string> {
  const group = await nightUser.ok('group', 'create', 'auth', '--from', workflow(sessions), '--no-warm-cache');
  for (const [id, { definition: session }] of stateOf(group).sessions) nightUser.note(session.name ?? '', id);
  return group;
}

test('group edit changes settings of a running group, and waiting sessions start', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] }, '--concurrent', '1', '--no-warm-cache');
  const run = nightUser.start('group', 'run', group, '--output', 'json');
  const api = await nightUser.begun(group, 'api');
  expect(await nightUser.ok('group', 'edit', 'auth', '--concurrent', '2', '--name', 'Two at once')).toBe(
    `Changed ${group}: max concurrent sessions, name.`,
  );
  const web = await nightUser.begun(group, 'web');
  await Promise.all([api.succeed(), web.succeed()]);
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  const told = stdout.split('\n').filter((line) => line.includes('group_edited'));
  expect(told.map((line) => JSON.parse(line).changed)).toEqual([['maxConcurrentSessions'], ['name']]);
  expect(stateOf(group).group).toMatchObject({ name: 'Two at once', config: { maxConcurrentSessions: 2 } });
}, 60_000);

test('group edit lowers a cap to the reserved amount of running sessions and not below', async () => {
  const group = await nightUser.group(
    'auth',
    { api: ['--max-budget-usd', '2'], web: [] },
    '--max-budget-usd',
    '9',
    '--concurrent',
    '1',
  );
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  expect(await nightUser.run('group', 'edit', 'auth', '--max-budget-usd', '1.5', '--name', 'Cheap')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('until it reaches $2.00'),
  });
  expect(editsOf(group).map(({ type }) => type)).toEqual(['session_added', 'session_added']);
  await nightUser.ok('group', 'edit', 'auth', '--max-budget-usd', '2');
  expect(stateOf(group).group.config.maxBudgetUsd).toBe(2);
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 1.5);
  await pause.finished;
  await run.finished;
  expect(await nightUser.run('group', 'edit', 'auth', '--max-budget-usd', '1')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has already spent $1.50'),
  });
  await nightUser.ok('group', 'edit', 'auth', '--no-max-budget-usd');
  expect(stateOf(group).group.config.maxBudgetUsd).toBeUndefined();
}, 60_000);

test('group edit --file adds and changes sessions of a running group and keeps completed ones', async () => {
  const group = await made();
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).succeed(0.01, 'the API is done');
  const web = await nightUser.begun(group, 'web');
  const file = workflow(`  api: { project: projects/api, prompt: "Do something else." }
  before: { project: projects/docs, prompt: "First." }
  docs:
    project: projects/docs
    prompt: "Read {{sessions.before.result}} {{sessions.api.result}}"
    dependsOn: [before, api]
  web: { project: projects/web, prompt: "Read {{sessions.api.result}}", dependsOn: api }
`);
  expect(await nightUser.ok('group', 'edit', 'auth', '--file', file)).toBe(
    `Changed ${group}: workflow.\nAdded 2 sessions: before, docs.\n001 api is completed and was not changed.`,
  );
  expect(definition(group, 'api').prompt).toBe('Do it.');
  const [before, docs] = [definition(group, 'before'), definition(group, 'docs')];
  expect([before.id.slice(0, 3), docs.id.slice(0, 3), docs.dependsOn]).toEqual([
    '003',
    '004',
    [before.id, nightUser.id('api')],
  ]);
  nightUser.note('before', before.id);
  nightUser.note('docs', docs.id);
  await (await nightUser.begun(group, 'before')).succeed(0.01, 'first is done');
  const fake = await nightUser.next('docs');
  const said = await fake.prompt();
  expect([said.includes('first is done'), said.includes('the API is done')]).toEqual([true, true]);
  await fake.init();
  await Promise.all([fake.succeed(), web.succeed()]);
  expect((await run.finished).code).toBe(0);
  const copy = join(nightUser.data, 'session-groups', group, 'workflow.yaml');
  expect(readFileSync(copy, 'utf8')).toBe(readFileSync(file, 'utf8'));
  const lines = nightUser.events(group).length;
  expect(await nightUser.ok('group', 'edit', 'auth', '--file', file)).toContain('already has these settings');
  expect(nightUser.events(group)).toHaveLength(lines);
}, 60_000);

test('group edit changes nothing if one session cannot be changed', async () => {
  const group = await made();
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const file = workflow(`  docs: { project: projects/docs, prompt: "Write." }
  api: { project: projects/api, prompt: "Do something else." }
  web: { project: projects/web, prompt: "Wait.", dependsOn: docs }
`);
  const before = nightUser.events(group).filter(isEdit);
  expect(await nightUser.run('group', 'edit', 'auth', '--file', file, '--concurrent', '7')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('001 api is running and cannot be edited'),
  });
  expect(editsOf(group)).toEqual(before);
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  await pause.finished;
  await run.finished;
  await nightUser.ok('group', 'edit', 'auth', '--file', file, '--concurrent', '7');
  expect(definition(group, 'api').prompt).toBe('Do something else.');
  expect(definition(group, 'web').dependsOn).toEqual([definition(group, 'docs').id]);
}, 60_000);

test('group edit makes all changes itself if the runner dies during the request', async () => {
  const group = await made();
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  run.kill('SIGSTOP');
  const file = workflow(`${first}  docs: { project: projects/docs, prompt: "Write.", dependsOn: web }\n`);
  const edit = nightUser.start('group', 'edit', 'auth', '--file', file, '--concurrent', '7');
  await nightUser.asked(group);
  run.kill('SIGKILL');
  expect(await edit.finished).toMatchObject({ code: 0, stderr: '' });
  expect(stateOf(group).sessions.size).toBe(3);
  expect(stateOf(group).group.config.maxConcurrentSessions).toBe(7);
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  await pause.finished;
}, 60_000);

test('group edit keeps the variables with which the group was created', async () => {
  const vars = 'vars: { ticket: { required: true }, area: all }\n';
  const api = '  api: { project: projects/api, prompt: "Do {{ticket}} in {{area}}." }\n';
  const group = await nightUser.ok('group', 'create', 'auth', '--from', workflow(api, vars), '--var', 'ticket=A-1');
  const docs = '  docs: { project: projects/docs, prompt: "Tell of {{ticket}}." }\n';
  const file = workflow(`${api}${docs}`, vars);
  await nightUser.ok('group', 'edit', 'auth', '--file', file, '--var', 'area=here');
  expect([definition(group, 'api').prompt, definition(group, 'docs').prompt]).toEqual([
    'Do A-1 in here.',
    'Tell of A-1.',
  ]);
  expect(stateOf(group).group.variables).toEqual({ ticket: 'A-1', area: 'here' });
});

test('group edit refuses what group create refuses and writes nothing', async () => {
  const group = await nightUser.group('auth', { api: [] });
  for (const [options, words] of [
    [[], 'No change was given'],
    [['--concurrent', '0'], 'whole number from 1'],
    [['--warning-threshold', '2'], 'share above 0'],
    [['--config-template', 'nowhere'], 'nowhere'],
    [['--file', 'nowhere.yaml'], 'nowhere.yaml'],
    [['--name', ' '], 'must not be blank'],
  ] as const) {
    const { code, stdout, stderr } = await nightUser.run('group', 'edit', 'auth', ...options);
    expect([options, code, stdout, stderr]).toEqual([options, 2, '', expect.stringContaining(words)]);
  }
  expect(editsOf(group)).toHaveLength(1);
  await nightUser.ok('group', 'create', 'other');
  const json = await nightUser.json<object>('group', 'edit', 'other', '--error-threshold', '4', '--model', 'haiku');
  expect(json).toMatchObject({ changed: ['errorThreshold', 'model'], added: [], edited: [], kept: [] });
});
