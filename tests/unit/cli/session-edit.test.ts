/**
 * Promises: `session edit` changes task, model, tools, caps, checks and dependencies of a session that is not
 * running, with or without a live runner. Only the given options change, and claude's prompt names the changes.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { sessionUuid } from '../../../src/core/id.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import { rig } from '../../support/rig-ground.ts';

withNight();

const failure = resultLine(0.01, { is_error: true, result: 'It went wrong.' });

function folderOf(group: string, name: string): string {
  return join(nightUser.data, 'session-groups', group, 'sessions', nightUser.id(name));
}

/** claude keeps its conversation. */
function converse(group: string, name: string): void {
  const folder = join(folderOf(group, name), 'claude-config', 'projects', 'p');
  mkdirSync(folder, { recursive: true });
  const line = { type: 'user', message: { role: 'user', content: 'Do it.' } };
  writeFileSync(join(folder, `${sessionUuid(nightUser.id(name))}.jsonl`), `${JSON.stringify(line)}\n`);
}

type Changed = Extract<GroupEvent, { type: 'session_changed' }>;

function changes(group: string): Changed[] {
  return nightUser.events(group).filter((event): event is Changed => event.type === 'session_changed');
}

async function definitionOf(group: string, name: string): Promise<Partial<SessionDefinition>> {
  const last = nightUser
    .events(group)
    .findLast(
      (event) =>
        (event.type === 'session_added' || event.type === 'session_changed') && event.sessionId === nightUser.id(name),
    );
  return (last as Changed).session;
}

const words = (fake: Invocation) => fake.hello.args;

test('a failed session gets an edited task in the conversation that it continues', async () => {
  const group = await nightUser.group('auth', { api: ['--model', 'opus', '--retries', '0'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const first = await nightUser.begun(group, 'api');
  converse(group, 'api');
  await first.print(failure);
  await run.finished;
  const edited = await nightUser.run('session', 'edit', 'auth/api', '--prompt', 'Do THAT.', '--model', 'haiku');
  expect(edited).toEqual({
    code: 0,
    stdout: `Changed 001 api: prompt, model. Retry with: claude-code-agent session retry ${group}/api\n`,
    stderr: '',
  });
  expect(changes(group)).toMatchObject([{ changed: ['prompt', 'model'], session: { retries: 0, prompt: 'Do THAT.' } }]);
  const retry = nightUser.start('session', 'retry', 'auth/api');
  const second = await nightUser.next('api');
  const said = await second.prompt();
  expect(said).toContain('The user has changed the task.');
  expect(said).toContain('Do THAT.');
  expect(said).not.toContain('Do it.');
  expect([second.resumed, words(second).includes('--model=haiku')]).toEqual([true, true]);
  // Its hooks and its CLAUDE.md contain the new task too.
  expect(readFileSync(join(folderOf(group, 'api'), 'prompt.md'), 'utf8')).toBe(said);
  const claudeMd = readFileSync(join(folderOf(group, 'api'), 'claude-config', 'CLAUDE.md'), 'utf8');
  expect([claudeMd.includes('Do THAT.'), claudeMd.includes('Do it.')]).toEqual([true, false]);
  await second.init();
  await second.print(failure);
  await retry.finished;
  const again = nightUser.start('session', 'retry', 'auth/api');
  const third = await nightUser.next('api');
  await third.init();
  await third.succeed();
  expect((await again.finished).code).toBe(0);
}, 60_000);

test('without its conversation an edited session is warned that existing work may be of another task', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).print(failure);
  await run.finished;
  await nightUser.ok('session', 'edit', 'auth/api', '--prompt', 'Do THAT.');
  const retry = nightUser.start('session', 'retry', 'auth/api');
  const second = await nightUser.next('api');
  const said = await second.prompt();
  expect([second.resumed, said.includes('The task was another one before')]).toEqual([false, true]);
  await second.init();
  await second.succeed();
  expect((await retry.finished).code).toBe(0);
}, 60_000);

test('a live runner starts a session with its edits, and refuses edits of a running one', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const run = nightUser.start('group', 'run', group, '--output', 'json');
  const api = await nightUser.begun(group, 'api');
  expect(await nightUser.run('session', 'edit', 'auth/api', '--effort', 'low')).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'claude-code-agent: Session 001 api is running and cannot be edited. Pause it first: ' +
      `claude-code-agent session pause ${group}/api\n`,
  });
  const json = await nightUser.ok(
    'session',
    'edit',
    'auth/web',
    '--prompt',
    'Do THAT.',
    '--allowed-tools',
    'Edit',
    '--json',
  );
  expect(JSON.parse(json)).toEqual({ group, session: nightUser.id('web'), changed: ['prompt', 'allowedTools'] });
  await api.succeed();
  const web = await nightUser.next('web');
  expect(await web.prompt()).toBe('The task of this session:\n\nDo THAT.');
  expect(words(web)).toContain('--allowedTools=Edit');
  await web.init();
  await web.succeed();
  const { stdout } = await run.finished;
  const edited = stdout.split('\n').find((line) => line.includes('session_edited')) ?? '{}';
  expect(JSON.parse(edited)).toMatchObject({ sessionId: nightUser.id('web'), changed: ['prompt', 'allowedTools'] });
  expect((await nightUser.run('session', 'edit', 'auth/web', '--prompt', 'x')).stderr).toContain(
    `claude-code-agent group copy ${group} --from web`,
  );
}, 60_000);

test('session edit changes only the given options, and edits can be reverted', async () => {
  const given = ['--model', 'opus', '--max-budget-usd', '2', '--accept', 'true', '--accept-retries', '3'];
  const more = ['--untrusted', '--timeout', '5m', '--settings-override', '{"permissions":{"deny":["WebFetch"]}}'];
  const group = await nightUser.group('auth', { lib: [], api: [...given, ...more, '--depends-on', 'lib'] });
  const before = await definitionOf(group, 'api');
  expect(await nightUser.ok('session', 'edit', 'auth/api', '--description', 'the API')).toContain('description');
  expect(await definitionOf(group, 'api')).toEqual({ ...before, description: 'the API' });
  await nightUser.ok('session', 'edit', 'auth/api', '--no-inherit-from-group', '--accept', 'npm test');
  expect(await definitionOf(group, 'api')).toEqual({
    ...before,
    description: 'the API',
    accept: 'npm test',
    config: { settingsOverride: { permissions: { deny: ['WebFetch'] } }, inheritFromGroup: false },
  });
  const back = [
    '--no-model',
    '--no-max-budget-usd',
    '--no-accept',
    '--no-untrusted',
    '--no-timeout',
    '--no-depends-on',
  ];
  await nightUser.ok('session', 'edit', 'auth/api', ...back);
  const left = await definitionOf(group, 'api');
  expect(Object.keys(left).sort()).toEqual(
    ['config', 'createdAt', 'dependsOn', 'description', 'id', 'name', 'projectPath', 'prompt'].sort(),
  );
  expect(left.dependsOn).toEqual([]);
  expect(await nightUser.ok('session', 'edit', 'auth/api', '--description', 'the API')).toBe(
    '002 api already has these settings.',
  );
});

test('session edit keeps the session’s template and its variables', async () => {
  const prompts = join(nightUser.project('api'), '.claude-code-agent', 'templates', 'prompts');
  mkdirSync(prompts, { recursive: true });
  const text = '---\nvariables:\n  - { name: area, required: true }\n  - { name: ticket, required: true }\n---\n';
  writeFileSync(join(prompts, 'fix.md'), `${text}Fix {{ticket}} in {{area}}.`);
  const group = await nightUser.ok('group', 'create', 'auth');
  const add = ['--project', nightUser.project('api'), '--template', 'fix', '--var', 'area=web', '--var', 'ticket=A-1'];
  nightUser.note('api', await nightUser.ok('session', 'add', group, '--name', 'api', ...add));
  await nightUser.ok('session', 'edit', 'auth/api', '--var', 'ticket=A-2');
  expect(await definitionOf(group, 'api')).toMatchObject({
    prompt: 'Fix A-2 in web.',
    template: 'fix',
    variables: { area: 'web', ticket: 'A-2' },
  });
  await nightUser.ok('session', 'edit', 'auth/api', '--model', 'haiku');
  expect((await definitionOf(group, 'api')).prompt).toBe('Fix A-2 in web.');
  await nightUser.ok('session', 'edit', 'auth/api', '--prompt', 'Leave {{area}} alone.');
  const typed = await definitionOf(group, 'api');
  expect([typed.prompt, typed.template]).toEqual(['Leave web alone.', undefined]);
  expect(await nightUser.run('session', 'edit', 'auth/api', '--var', 'colour=red')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('uses a variable "colour"'),
  });
});

test('after the edit of a wrong acceptance command claude is not started again', async () => {
  const group = await nightUser.group('auth', { api: ['--accept', 'false', '--accept-retries', '0'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).succeed();
  expect((await run.finished).code).toBe(1);
  await nightUser.ok('session', 'edit', 'auth/api', '--accept', 'true');
  const started = rig.invocations.length;
  expect(await nightUser.run('session', 'retry', 'auth/api')).toMatchObject({ code: 0 });
  expect(rig.invocations.length).toBe(started);
}, 60_000);

const refused: Readonly<Record<string, readonly [readonly string[], string]>> = {
  'nothing at all': [[], 'No change was given'],
  'a project that is not there': [['--project', '/nowhere'], 'does not exist'],
  'a cycle': [['--depends-on', 'web'], 'cycle'],
  itself: [['--depends-on', 'api'], 'form a cycle: api -> api'],
  'a name that is taken': [['--name', 'web'], 'named web'],
  'a session that is not there': [['--depends-on', 'nobody'], 'There is no session "nobody"'],
  'a result that is not there before': [['--prompt', 'Read {{sessions.web.result}}'], 'does not depend on web'],
  'retries of no check': [['--accept-retries', '2'], 'accept-retries has no effect'],
  'settings without effect': [['--no-generate-settings', '--settings-override', '{"model":"opus"}'], 'no effect'],
  'a template that is not there': [['--config-template', 'nowhere'], 'nowhere'],
  'two prompts': [['--prompt', 'x', '--prompt-file', 'y'], '--prompt and --prompt-file'],
};

test('session edit refuses what session add refuses and writes nothing', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  for (const [name, [options, words]] of Object.entries(refused)) {
    const { code, stdout, stderr } = await nightUser.run('session', 'edit', 'auth/api', ...options);
    expect([name, code, stdout, stderr]).toEqual([name, 2, '', expect.stringContaining(words)]);
  }
  expect(changes(group)).toEqual([]);
});

test('a session that has not started can move to another project and gets its commands', async () => {
  const put = (name: string, accept: string) => {
    const folder = join(nightUser.project(name), '.claude-code-agent');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'project.yaml'), `accept: ${accept}\n`);
  };
  put('api', 'make old');
  put('web', 'make new');
  const group = await nightUser.group('auth', { api: ['--accept-retries', '2'] });
  const moved = await nightUser.run('session', 'edit', 'auth/api', '--project', nightUser.project('web'));
  expect(moved).toMatchObject({ code: 0, stderr: expect.stringContaining('sets accept "make new"') });
  expect(await definitionOf(group, 'api')).toMatchObject({
    projectPath: nightUser.project('web'),
    accept: 'make new',
    acceptRetries: 2,
  });
  rmSync(join(nightUser.project('web'), '.claude-code-agent'), { recursive: true });
  await nightUser.ok('session', 'edit', 'auth/api', '--accept-timeout', '5m');
  expect(await definitionOf(group, 'api')).toMatchObject({ accept: 'make new', acceptTimeoutMs: 300_000 });
});
