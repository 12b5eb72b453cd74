/**
 * Promises: through the real launcher, groups and sessions are created, listed, shown, drawn, removed, archived and
 * deleted. Ids are alone on stdout, and `--json` prints exactly one document.
 */
import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withUser } from '../../support/cli/user.ts';

withUser();

const sessionIdLine = /^\d{3}-[0-9a-f]{8}-[0-9a-f-]{27}\n$/;

test('group create prints only the id and stores every setting', async () => {
  const settings = ['--max-budget-usd', '2.5', '--on-budget-exceeded', 'stop', '--warning-threshold', '0.5'];
  const more = ['--concurrent', '7', '--error-threshold', '4', '--no-pause-on-error', '--model', 'opus'];
  const created = await user.run(
    'group',
    'create',
    'auth',
    '--name',
    'Auth: ä',
    '--description',
    'D',
    ...settings,
    ...more,
  );
  expect(created).toMatchObject({ code: 0, stderr: '' });
  expect(created.stdout).toMatch(/^\d{8}-\d{6}-auth\n$/);
  expect(await user.json('group', 'show', 'auth')).toMatchObject({
    id: created.stdout.trim(),
    name: 'Auth: ä',
    description: 'D',
    slug: 'auth',
    status: 'created',
    sessions: [],
    config: {
      model: 'opus',
      maxBudgetUsd: 2.5,
      onBudgetExceeded: 'stop',
      warningThreshold: 0.5,
      maxConcurrentSessions: 7,
      errorThreshold: 4,
      pauseOnError: false,
      respectDependencies: true,
    },
  });
});

test('groups with the same slug created in the same second have different ids', async () => {
  const ids = await Promise.all([1, 2, 3].map(() => user.ok('group', 'create', 'auth')));
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id).toMatch(/^\d{8}-\d{6}-auth/);
  expect((await user.json<{ id: string }[]>('group', 'list')).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
});

test('group list filters by status, newest first, and prints one JSON document', async () => {
  expect(await user.json('group', 'list')).toEqual([]);
  expect((await user.run('group', 'list', '--status', 'archived')).stderr).toBe(
    'There are no groups. Create one with: claude-code-agent group create first\n',
  );
  const first = await user.ok('group', 'create', 'first');
  const second = await user.ok('group', 'create', 'second');
  const listed = await user.json<{ id: string }[]>('group', 'list');
  expect(
    listed
      .map(({ id }) => id)
      .sort()
      .reverse(),
  ).toEqual(listed.map(({ id }) => id));
  expect(listed.map(({ id }) => id).sort()).toEqual([first, second].sort());
  expect(await user.json('group', 'list', '--status', 'active')).toHaveLength(2);
  expect(await user.json('group', 'list', '--status', 'archived')).toEqual([]);
  expect((await user.run('group', 'list', '--status', 'archived')).stderr).toBe(
    'There are no archived groups. List all 2 with: claude-code-agent group list\n' +
      'Archive a finished group with: claude-code-agent group archive latest\n',
  );
  const text = await user.ok('group', 'list');
  expect(text.split('\n')).toHaveLength(3);
  expect(text).toContain(`${first}`);
});

test('group list distinguishes rehearsal money from real money and shows the age of groups', async () => {
  const group = await user.ok('group', 'create', 'tried');
  await user.ok('session', 'add', group, '--project', user.project('a'), '--prompt', 'Do it.', '--name', 'a');
  await user.ok('group', 'create', 'fresh');
  await user.ok('group', 'run', group, '--rehearse', '--output', 'quiet');
  const [head = '', ...rows] = (await user.ok('group', 'list')).split('\n');
  expect(head).toMatch(/COST +AGE/);
  expect(rows.find((row) => row.includes('-tried'))).toMatch(/ 1\/1 +~?\$\d+\.\d\d fake +\d+[sm]$/);
  expect(rows.find((row) => row.includes('-fresh'))).toMatch(/ 0\/0 +\$0\.00 +\d+[sm]$/);
  const listed = await user.json<{ slug: string; rehearsal?: boolean }[]>('group', 'list');
  expect(listed.map(({ slug, rehearsal }) => `${slug} ${rehearsal}`).sort()).toEqual(['fresh undefined', 'tried true']);
}, 60_000);

test('group list shows a damaged group as damaged and hides no other', async () => {
  const good = await user.ok('group', 'create', 'good');
  const bad = await user.ok('group', 'create', 'bad');
  const folder = join(user.data, 'session-groups', bad);
  writeFileSync(join(folder, 'meta.json'), '{');
  writeFileSync(join(folder, 'events.jsonl'), 'rubbish\n');
  const { code, stdout, stderr } = await user.run('group', 'list');
  expect({ code, rows: stdout.split('\n').length - 1 }).toEqual({ code: 0, rows: 3 });
  expect(stdout).toContain(good);
  expect(stderr).toContain(bad);
  expect(await user.run('group', 'show', bad)).toMatchObject({ code: 1, stdout: '' });
  expect(await user.run('group', 'delete', bad, '--force')).toMatchObject({ code: 0 });
  expect(existsSync(folder)).toBe(false);
});

test('session add stores the definition, with the real path of the project', async () => {
  const group = await user.ok('group', 'create', 'auth');
  const project = user.project('shop');
  const given = ['--project', 'projects/../projects/shop', '--prompt', ' two\nlines ', '--name', 'a.b_c-1'];
  const more = ['--description', 'D', '--model', 'sonnet', '--max-budget-usd', '0.5', '--permission-mode', 'plan'];
  const rules = ['--allowed-tools', 'Edit, Bash(git log:*)'];
  const added = await user.run('session', 'add', group, ...given, ...more, ...rules);
  expect(added).toMatchObject({ code: 0, stderr: '' });
  expect(added.stdout).toMatch(sessionIdLine);
  expect(await user.json('session', 'show', 'auth/a.b_c-1')).toMatchObject({
    id: added.stdout.trim(),
    name: 'a.b_c-1',
    description: 'D',
    projectPath: project,
    prompt: ' two\nlines ',
    model: 'sonnet',
    maxBudgetUsd: 0.5,
    permissionMode: 'plan',
    allowedTools: ['Edit', 'Bash(git log:*)'],
    dependsOn: [],
    status: 'pending',
    cost: 0,
  });
});

test('group show names each session by its description, or by the first line of its task', async () => {
  const group = await user.ok('group', 'create', 'auth');
  const project = ['--project', user.project('shop')];
  await user.ok('session', 'add', group, ...project, '--prompt', '\n  Implement auth: ä\r\nWith tests.');
  await user.ok('session', 'add', group, ...project, '--prompt', 'Implement', '--description', 'D');
  await user.ok('session', 'add', group, ...project, '--prompt', `${'x'.repeat(199)}😀😀`);
  const expected = ['Implement auth: ä', 'D', `${'x'.repeat(199)}😀`];
  const descriptions = ({ sessions }: { sessions: { description: string }[] }) =>
    sessions.map(({ description }) => description);
  const file = join(user.data, 'session-groups', group, 'meta.json');
  expect(descriptions(JSON.parse(readFileSync(file, 'utf8')))).toEqual(expected);
  expect(descriptions(await user.json('group', 'show', group))).toEqual(expected);
});

test('session add reads prompts from a file or stdin unchanged', async () => {
  await user.ok('group', 'create', 'auth');
  const project = user.project('shop');
  writeFileSync(join(user.folder, 'task.md'), 'From a file: ü\n');
  await user.ok('session', 'add', 'auth', '--project', project, '--prompt-file', 'task.md');
  const piped = ['session', 'add', 'auth', '--project', project, '--prompt', '-'];
  expect(await user.runWith({ stdin: 'From a pipe.\n' }, ...piped)).toMatchObject({ code: 0 });
  const prompts = await Promise.all(
    ['1', '2'].map((n) => user.json<{ prompt: string }>('session', 'show', `auth/${n}`)),
  );
  expect(prompts.map(({ prompt }) => prompt)).toEqual(['From a file: ü\n', 'From a pipe.\n']);
});

test('a dependency can be given together with its group', async () => {
  const group = await user.makeGroup();
  const [api] = await user.json<{ id: string }[]>('session', 'list', group);
  for (const [index, named] of ['auth', group, group.slice(0, -1)].entries()) {
    const added = await user.add(group, `by-${index}`, '--depends-on', `${named}/api`, '--depends-on', `${named}/1`);
    expect(await user.json('session', 'show', added)).toMatchObject({ dependsOn: [api?.id] });
  }
  const other = await user.makeGroup('other');
  const add = ['session', 'add', group, '--project', user.project('x'), '--prompt', 'x'];
  const refused = await user.run(...add, '--depends-on', 'other/api');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(`"other/api" is in group ${other}, but `);
});

test('dependencies are given by id, number or name, and shown in dependency order', async () => {
  const group = await user.ok('group', 'create', 'auth');
  const a = await user.add(group, 'a');
  const b = await user.add(group, 'b');
  const c = await user.add(group, 'c', '--depends-on', a, '--depends-on', '2', '--depends-on', 'b');
  const show = await user.json<{ dependsOn: string[] }>('session', 'show', c);
  expect(show.dependsOn).toEqual([a, b]);
  const progress = await user.json<{ id: string; reason?: string }[]>('session', 'list', group);
  expect(progress.map(({ id, reason }) => [id, reason])).toEqual([
    [a, 'not-started'],
    [b, 'not-started'],
    [c, 'waiting'],
  ]);
});

test('group graph prints text, Mermaid, DOT and JSON', async () => {
  const group = await user.makeGroup();
  const graph = (...more: string[]) => user.ok('group', 'graph', group, ...more);
  expect((await graph()).split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
    ['Wave 1'],
    ['001 api', 'pending', 'api'],
    ['Wave 2'],
    ['002 web', 'pending', 'web', 'after 001 api'],
  ]);
  expect(await graph('--format', 'mermaid')).toBe(
    'graph TD\n  s1["001 api<br/>api"]\n  s2["002 web<br/>web"]\n  s1 --> s2',
  );
  expect(await graph('--format', 'dot')).toMatch(/^digraph "auth" \{\n[\s\S]* -> "002-[\s\S]*\}$/);
  expect(await user.json('group', 'graph', group)).toMatchObject([{ wave: 0 }, { wave: 1 }]);
});

test('group show suggests the next step', async () => {
  const empty = await user.ok('group', 'create', 'empty');
  expect(await user.ok('group', 'show', 'empty')).toContain(`Next: claude-code-agent session add ${empty}`);
  const group = await user.makeGroup();
  expect(await user.ok('group', 'show', group)).toContain(`Next: claude-code-agent group run ${group}`);
  expect(await user.json('group', 'show', group)).toMatchObject({
    progress: { groupId: group, totalSessions: 2, pending: 2, paused: 0, elapsedTime: 0 },
  });
});

test('session remove refuses a session that others need, and removes any other with its folder', async () => {
  const group = await user.makeGroup();
  expect(await user.run('session', 'remove', `${group}/api`)).toMatchObject({ code: 2, stdout: '' });
  expect(await user.run('session', 'remove', `${group}/web`)).toMatchObject({ code: 0, stdout: '' });
  expect(await user.json('session', 'list', group)).toHaveLength(1);
  expect(readdirSync(join(user.data, 'session-groups', group, 'sessions'))).toHaveLength(1);
});

test('group delete asks for confirmation, and refuses without a terminal', async () => {
  const group = await user.makeGroup();
  const folder = join(user.data, 'session-groups', group);
  const refused = await user.run('group', 'delete', group);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('--force');
  expect(existsSync(folder)).toBe(true);
  expect(await user.run('group', 'delete', group, '--force')).toMatchObject({ code: 0, stdout: '' });
  expect(readdirSync(join(user.data, 'session-groups'))).toEqual([]);
});

test('only a finished group is archived, and then accepts no sessions', async () => {
  const group = await user.makeGroup();
  expect(await user.run('group', 'archive', group)).toMatchObject({ code: 1, stdout: '' });
  const events = join(user.data, 'session-groups', group, 'events.jsonl');
  const lines = readFileSync(events, 'utf8').trim().split('\n');
  const { seq, at } = JSON.parse(lines.at(-1) as string) as { seq: number; at: string };
  const runner = { pid: 1, startTime: '1', host: 'gone', bootId: 'gone' };
  const body = [
    { type: 'group_started', run: { id: 'run', runner } },
    { type: 'group_paused', reason: 'user', message: 'Paused.' },
  ].map((event, index) => JSON.stringify({ seq: seq + 1 + index, at, groupId: group, ...event }));
  writeFileSync(events, `${[...lines, ...body].join('\n')}\n`);
  expect(await user.run('group', 'archive', group)).toMatchObject({ code: 0, stdout: '' });
  expect(await user.json('group', 'list', '--status', 'archived')).toMatchObject([{ id: group, status: 'archived' }]);
  const late = await user.run('session', 'add', group, '--project', user.project('x'), '--prompt', 'x');
  expect(late).toMatchObject({ code: 1, stdout: '' });
});

test('a group whose log ends in a run without a runner is shown as interrupted', async () => {
  const group = await user.makeGroup();
  const events = join(user.data, 'session-groups', group, 'events.jsonl');
  const runner = { pid: 1, startTime: '1', host: 'gone', bootId: 'gone' };
  const at = new Date().toISOString();
  const started = { seq: 4, at, groupId: group, type: 'group_started', run: { id: 'run', runner } };
  writeFileSync(events, `${readFileSync(events, 'utf8')}${JSON.stringify(started)}\n`);
  const shown = await user.ok('group', 'show', group);
  expect(shown).toContain(`interrupted. Next: claude-code-agent group run ${group}`);
  const watched = await user.run('group', 'watch', group);
  expect(watched.code).toBe(3);
  expect(watched.stderr).toContain('runner');
  const checked = await user.run('doctor', '--json');
  const { checks } = JSON.parse(checked.stdout) as { checks: { check: string; message: string }[] };
  expect(checks.filter(({ check }) => check === 'group').map(({ message }) => message)).toEqual([
    `${group} was interrupted: no runner is alive.`,
  ]);
});
