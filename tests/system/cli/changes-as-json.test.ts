/**
 * Promises: with `--json`, commands that change something print exactly one document that describes the change. `-` is
 * standard input where a file is read. `--yes` answers confirmations.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';
import { Repository } from '../../support/git/repository.ts';

withUser();

test('groups: created, paused, archived, deleted', async () => {
  const made = await user.json<{ group: string; sessions: string[] }>('group', 'create', 'auth');
  expect(made).toEqual({ group: expect.stringMatching(/-auth$/), sessions: [] });
  await user.add('auth', 'api');
  await user.ok('group', 'run', 'auth', '--rehearse', '--output', 'quiet');
  const { group } = made;
  expect(await user.json('group', 'archive', 'auth')).toEqual({ group, removedWorktrees: [], keptWorktrees: [] });
  expect(await user.json('group', 'delete', 'auth', '--yes')).toEqual({ group });
  expect(await user.json('stop', '--all')).toEqual({ groups: [], unreadable: [] });
}, 120_000);

test('sessions: added, held back, sent a message, retried, removed', async () => {
  const group = await user.ok('group', 'create', 'auth');
  const add = ['session', 'add', 'auth', '--project', user.project('a'), '--prompt', 'x', '--name', 'api'];
  const { session } = await user.json<{ session: string }>(...add);
  expect(await user.json('session', 'list', 'auth')).toMatchObject([{ id: session }]);
  expect(await user.json('session', 'pause', 'auth/api')).toEqual({ group, session, status: 'pending' });
  expect(await user.json('session', 'say', 'auth/api', 'More.')).toEqual({ group, session, delivered: 'next-attempt' });
  const script = join(user.folder, 'script.yaml');
  const fails = 'steps: [{ status: 400, errorType: invalid_request_error, message: no }]';
  writeFileSync(script, `version: 1\nsessions:\n  api: { ${fails} }\n`);
  expect(await user.run('group', 'run', group, '--rehearse', script, '--output', 'quiet')).toMatchObject({ code: 1 });
  writeFileSync(script, 'version: 1\nsessions:\n  api: { steps: [{ text: fine }] }\n');
  expect(await user.json('session', 'retry', 'auth/api')).toEqual({ group, session, status: 'completed' });
  const gone = await user.ok('session', 'add', group, '--project', user.project('a'), '--prompt', 'x');
  const other = await user.ok('group', 'create', 'other');
  const added = await user.add(other, 'api');
  expect(await user.json('session', 'remove', `${other}/api`)).toEqual({ group: other, session: added });
  expect(gone).not.toBe(added);
}, 120_000);

test('templates, hooks, progress files and handover projects', async () => {
  const folder = join(user.folder, 'made');
  const { files } = await user.json<{ files: string[] }>('template', 'init', folder);
  for (const file of files) expect(existsSync(join(folder, file))).toBe(true);
  new Repository(folder).commit({});
  expect(await user.json('template', 'add', folder, '--name', 'team')).toMatchObject({ source: folder });
  expect(await user.run('template', 'remove', 'team')).toMatchObject({ code: 2, stdout: '' });
  expect(await user.json('template', 'remove', 'team', '-y')).toEqual({ pack: 'team' });
  const project = user.project('shop');
  const path = join(project, '.claude', 'settings.json');
  const systems = ['cpm'];
  const hook = (verb: string) => user.json('hook', verb, '--project', project, '--systems', 'cpm');
  expect(await hook('install')).toEqual({ path, systems, isChanged: true });
  expect(await hook('install')).toEqual({ path, systems, isChanged: false });
  expect(await hook('uninstall')).toEqual({ path, systems, isChanged: true });
  expect(await hook('uninstall')).toEqual({ path, systems, isChanged: false });
  expect(await user.json('cpm', 'clean', '--project', project)).toEqual({ removed: [] });
  const planned = await user.json<{ made: string; project: string; named: string }>('handover', 'init', 'clients/acme');
  expect(planned).toEqual({
    project: join(user.folder, 'clients/acme'),
    made: expect.stringContaining('clients/acme'),
    named: expect.stringContaining(user.folder),
  });
  expect(existsSync(planned.made)).toBe(true);
});

test('--yes answers what cpm clean asks', async () => {
  const project = user.project('shop');
  const folder = join(project, 'docs', 'plans');
  mkdirSync(folder, { recursive: true });
  const name = '.cpm-progress-0a1b2c3d.md';
  writeFileSync(join(folder, name), '# CPM\n');
  const clean = ['cpm', 'clean', '0a1b2c3d', '--project', project];
  expect(await user.run(...clean)).toMatchObject({ code: 2, stdout: '' });
  expect(await user.json(...clean, '--yes')).toEqual({ removed: [name] });
});

const workflow = (project: string) =>
  `version: 1\nname: piped\nsessions:\n  api: { project: ${JSON.stringify(project)}, prompt: Do it. }\n`;

test('a workflow is read from standard input: run, group create, group edit, template validate', async () => {
  const stdin = workflow(user.project('a'));
  const validated = await user.runWith({ stdin }, 'template', 'validate', '-', '--json');
  expect({ ...validated, stdout: JSON.parse(validated.stdout) }).toEqual({
    code: 0,
    stdout: { templates: [{ kind: 'workflow', path: '-' }], problems: [] },
    stderr: '',
  });
  expect((await user.runWith({ stdin }, 'template', 'validate', '-')).stdout).toBe('The workflow template is valid.\n');
  expect((await user.runWith({ stdin }, 'run', '-', '--dry-run')).stdout).toContain('api');
  const created = await user.runWith({ stdin }, 'group', 'create', 'mine', '--from', '-', '--json');
  expect(JSON.parse(created.stdout)).toMatchObject({ sessions: [expect.stringMatching(/^001-/)] });
  const more = stdin.replace(' api:', ' web:');
  const edited = await user.runWith({ stdin: more }, 'group', 'edit', 'mine', '--file', '-', '--json');
  expect({ ...edited, stdout: JSON.parse(edited.stdout || '{}') }).toMatchObject({
    code: 0,
    stdout: { added: ['web'], edited: [] },
    stderr: '',
  });
  const ran = await user.runWith({ stdin }, 'run', '-', '--rehearse', '--output', 'quiet');
  expect(ran).toMatchObject({ code: 0 });
  expect(await user.json('ls')).toMatchObject([{ slug: 'piped', status: 'completed' }, { slug: 'mine' }]);
}, 120_000);

test('relative projects of a piped workflow are resolved from the current folder', async () => {
  const project = user.project('a');
  const piped = { stdin: workflow('./a'), cwd: join(project, '..') };
  expect((await user.runWith(piped, 'run', '-', '--dry-run')).stdout).toContain('001 api');
  const elsewhere = await user.runWith({ stdin: workflow('./a') }, 'run', '-', '--dry-run');
  expect(elsewhere).toMatchObject({ code: 2, stdout: '' });
  expect(elsewhere.stderr).toContain('standard input:4:');
});

test('a prompt file is standard input, too', async () => {
  await user.ok('group', 'create', 'auth');
  const add = ['session', 'add', 'auth', '--project', user.project('a'), '--prompt-file', '-', '--name', 'api'];
  expect(await user.runWith({ stdin: 'From a pipe.\n' }, ...add)).toMatchObject({ code: 0 });
  expect(await user.json('show', 'auth/api')).toMatchObject({ prompt: 'From a pipe.\n' });
});
