/**
 * Promises: short commands do the same as their long forms, with the same options and refusals, for groups and
 * sessions. `@`, `latest` and `@1` are groups by age; `help a b` is `a b --help`.
 */
import { expect, test } from 'bun:test';
import { user, withUser } from '../../support/cli/user.ts';

withUser();

test('ls, ps, show and status are group and session commands', async () => {
  const group = await user.makeGroup();
  const long = async (...words: string[]) => (await user.ok(...words)).replaceAll(/\d+s$/gm, '');
  for (const [short, line] of [
    [['ls'], ['group', 'list']],
    [
      ['ls', '--json', '--status', 'created'],
      ['group', 'list', '--json'],
    ],
    [['ps'], ['group', 'list', '--status', 'active']],
    [
      ['show', 'auth'],
      ['group', 'show', group],
    ],
    [
      ['status', '@', '--json'],
      ['group', 'show', group, '--json'],
    ],
    [
      ['show', 'auth/web'],
      ['session', 'show', `${group}/web`],
    ],
    [
      ['status', '--config', 'auth/1'],
      ['session', 'show', `${group}/api`, '--config'],
    ],
    [
      ['why', 'auth'],
      ['group', 'why', group],
    ],
    [
      ['why', 'auth', 'web', '--json'],
      ['group', 'why', group, 'web', '--json'],
    ],
    [
      ['why', '--json', 'auth/web'],
      ['group', 'why', group, 'web', '--json'],
    ],
  ] as const) {
    expect(await long(...short)).toBe(await long(...line));
  }
  expect(await user.run('ps', '--status', 'created')).toMatchObject({ code: 2, stdout: '' });
});

test('without a group the latest is meant, with and without the word "group"', async () => {
  await user.makeGroup('first');
  const group = await user.makeGroup('second');
  const seen = async (...words: string[]) => {
    const { code, stdout, stderr } = await user.run(...words);
    return { code, stdout: stdout.replaceAll(/\d+s$/gm, ''), stderr };
  };
  for (const word of ['show', 'why', 'diff', 'plan', 'graph', 'budget', 'report', 'merge', 'pr', 'logs']) {
    const long = word === 'logs' ? await seen('logs', group) : await seen('group', word, group);
    expect([word, await seen(word)]).toEqual([word, long]);
    if (word !== 'logs') expect([word, await seen('group', word)]).toEqual([word, long]);
    expect([word, await seen(word, 'second')]).toEqual([word, long]);
    expect([word, (await seen(word, 'first')).stdout.includes(group)]).toEqual([word, false]);
  }
  expect(await seen('status', '--json')).toEqual(await seen('group', 'show', group, '--json'));
  expect(await seen('session', 'list', '--json')).toEqual(await seen('session', 'list', group, '--json'));
  expect(await seen('retry', 'second/api')).toEqual(await seen('session', 'retry', `${group}/api`));
  const nothing = `No session of ${group} has failed. See: claude-code-agent group show ${group}`;
  expect(await user.run('retry')).toMatchObject({ code: 2, stderr: expect.stringContaining(nothing) });
  await user.ok('session', 'edit', `${group}/api`, '--accept', 'false', '--accept-retries', '0');
  expect(await user.run('group', 'run', group, '--rehearse', '--output', 'quiet')).toMatchObject({ code: 1 });
  await user.ok('session', 'edit', `${group}/api`, '--accept', 'true');
  expect(await user.run('retry', '--rehearse', '--output', 'quiet')).toMatchObject({ code: 0 });
}, 120_000);

test('the beginning of a session id is enough where no group has it', async () => {
  const group = await user.makeGroup();
  const [api = { id: '' }] = await user.json<{ id: string }[]>('session', 'list', group);
  expect(await user.json('show', api.id)).toMatchObject({ id: api.id, name: 'api' });
  expect(await user.json('why', api.id)).toMatchObject({ sessions: [{ id: api.id }] });
});

test('run, watch, pause, resume and logs work as one word each', async () => {
  const group = await user.makeGroup();
  expect(await user.run('pause', 'auth')).toMatchObject({ code: 2, stdout: '' });
  expect(await user.json('pause', 'auth/api')).toMatchObject({ group, status: 'pending' });
  expect(await user.run('resume', 'auth', '--rehearse', '--output', 'quiet')).toMatchObject({ code: 0 });
  expect(await user.ok('watch', 'auth', '--output', 'text')).toContain('completed');
  const [api, web] = await Promise.all(['api', 'web'].map((name) => user.ok('session', 'logs', `${group}/${name}`)));
  expect(await user.ok('watch', 'auth/api')).toBe(api as string);
  expect(await user.ok('logs', 'auth/web')).toBe(web as string);
  expect(await user.ok('logs', 'auth')).toBe(`001 api\n${api}\n002 web\n${web}`);
  for (const option of ['--json', '--raw', '--follow']) {
    const refused = await user.run('logs', 'auth', option);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toEndWith(
      `001 api, 002 web. Give one of them, such as: claude-code-agent logs ${group}/api\n`,
    );
  }
  expect((await user.run('diff', 'auth')).stderr).toBe((await user.run('group', 'diff', group)).stderr);
  expect((await user.run('diff', 'auth/api')).stderr).toBe((await user.run('session', 'diff', `${group}/api`)).stderr);
}, 120_000);

test('logs of a group with one session are those of the session, even with --raw', async () => {
  const group = await user.ok('group', 'create', 'one');
  await user.add(group, 'only');
  expect(await user.json('logs', 'one')).toEqual(await user.json('session', 'logs', `${group}/only`));
  await user.ok('group', 'create', 'none');
  expect(await user.run('logs', 'none')).toMatchObject({ code: 2, stdout: '' });
});

test('rm deletes several groups, or none when one of them is unknown', async () => {
  const [a, b] = [await user.makeGroup('a'), await user.makeGroup('b')];
  const left = async () => (await user.json<{ id: string }[]>('ls')).map(({ id }) => id);
  expect(await user.run('rm', 'a', 'nothing', '--yes')).toMatchObject({ code: 2, stdout: '' });
  expect(await user.run('rm', 'a', 'b')).toMatchObject({ code: 2, stdout: '' });
  expect((await left()).sort()).toEqual([a, b].sort());
  const removed = await user.run('rm', 'a', '@', '@', '-y', '--json');
  expect(removed).toMatchObject({ code: 0, stderr: `Deleted ${a}.\nDeleted ${b}.\n` });
  expect(JSON.parse(removed.stdout)).toEqual({ groups: [a, b] });
  expect(await left()).toEqual([]);
});

test('@ is the latest group, @1 the one before it; also within one second', async () => {
  const ids: string[] = [];
  for (const slug of ['zebra', 'ant', 'moth']) {
    ids.push(await user.ok('group', 'create', slug));
    // Two created by one process could have the same millisecond.
    for (const now = Date.now(); Date.now() === now; ) await Bun.sleep(1);
  }
  const shown = async (reference: string) => (await user.json<{ id: string }>('show', reference)).id;
  for (const [index, id] of ids.toReversed().entries()) expect(await shown(`@${index}`)).toBe(id);
  expect(await shown('@')).toBe(ids[2] as string);
  expect(await shown('latest')).toBe(ids[2] as string);
  await user.add('@1', 'api');
  expect(await user.json('session', 'show', '@1/api')).toMatchObject({ name: 'api' });
  const none = await user.run('show', '@3');
  expect(none).toMatchObject({ code: 2, stdout: '' });
  expect(none.stderr).toContain('There is no such group: there are 3 groups.');
});

test.each<string[]>([
  ['group', 'delete', '--force'],
  ['rm', '--yes'],
  ['group', 'archive', '--force'],
])('a destructive command refuses a slug that two groups have: %s %s', async (...words) => {
  const ids = [await user.makeGroup('twin'), await user.makeGroup('twin')];
  const refused = await user.run(...words, 'twin');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  for (const id of ids) expect(refused.stderr).toContain(id);
  expect(await user.run('session', 'remove', 'twin/web')).toMatchObject({ code: 2, stdout: '' });
  expect(await user.json('ls')).toHaveLength(2);
  expect(await user.json('show', 'twin')).toMatchObject({ sessions: [{}, {}] });
  expect(await user.run('session', 'remove', `${ids[0]}/web`)).toMatchObject({ code: 0 });
});

test('help a b is a b --help, and version is --version', async () => {
  const words = ['group', 'run'];
  expect(await user.ok('help', ...words)).toBe(await user.ok(...words, '--help'));
  expect(await user.ok('help', 'ls')).toBe(await user.ok('ls', '--help'));
  expect(await user.ok('help')).toBe(await user.ok('--help'));
  expect(await user.ok('version')).toBe(await user.ok('--version'));
  for (const [words, said] of [
    [['group', 'shwo'], "Unknown command 'shwo'. Did you mean show?"],
    [['nothing'], "Unknown command 'nothing'."],
  ] as const) {
    const refused = await user.run('help', ...words);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(said);
  }
});

test('the help of a short form names its long form and has the options of both', async () => {
  const help = await user.ok('logs', '--help');
  expect(help).toContain('claude-code-agent session logs');
  expect(await user.ok('show', '--help')).toMatch(/claude-code-agent group show\n {2}claude-code-agent session show/);
  expect(await user.ok('pause', '--help')).toContain('--drain');
});

test.each<[string[], string]>([
  [['pause'], "Missing required argument 'group-or-session'. See: claude-code-agent pause --help"],
  [['show', 'auht'], 'There is no group or session "auht"; did you mean "auth"? See: claude-code-agent group list'],
  [['run', 'auth'], '"auth" is a group; this command takes a workflow. Run it with: claude-code-agent group run auth'],
  [['plan', 'auht'], 'There is no group "auht"; did you mean "auth"? See: claude-code-agent group list'],
  [['show', 'auth/wbe'], 'There is no session "wbe" in the group'],
  [
    ['list'],
    'Did you mean claude-code-agent group list, claude-code-agent session list, claude-code-agent template list',
  ],
  [['create', 'x'], "Unknown command 'create'. Did you mean claude-code-agent group create? See"],
  [['run', 'x', '--max-budget', '5'], "Unknown option '--max-budget'. Did you mean --max-budget-usd? See"],
  [['session', 'edit', 'auth/api', '--model', 'sonet'], 'It is no model of claude; perhaps "sonnet" was meant.'],
  [['config', 'set', 'price.opus', '1'], 'There is no setting "price.opus"; did you mean "prices.opus'],
  [['show', 'nothing'], 'There is no group or session "nothing". See: claude-code-agent group list'],
  [['show', 'auth/nothing'], 'There is no session "nothing" in the group'],
  [['logs', 'auth/api', '--nothing'], "Unknown option '--nothing'. See: claude-code-agent logs --help"],
  [['pause', 'auth/api', '--drain'], "Unknown option '--drain'. See: claude-code-agent session pause --help"],
  [['show', '@9'], 'There is no such group: there is one group.'],
  [['rm'], "Missing required argument 'group'. See: claude-code-agent rm --help"],
])('%j is refused in one sentence', async (words, said) => {
  await user.makeGroup();
  const refused = await user.run(...words);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(said);
  expect(refused.stderr.split('\n')).toHaveLength(2);
});

test('help wraps at 80 columns', async () => {
  const { stdout } = await user.runWith({ env: { COLUMNS: '80' } }, 'run', '--help');
  const description = stdout.split('\n\n')[1]?.split('\n') ?? [];
  for (const [index, line] of description.entries()) {
    expect(line.length).toBeLessThanOrEqual(80);
    const next = description[index + 1]?.split(' ')[0];
    const isFull = next === undefined || line.endsWith('.') || line.length + 1 + next.length > 80;
    expect([line, isFull]).toEqual([line, true]);
  }
}, 60_000);

test('completion offers groups and sessions after a short form', async () => {
  await user.makeGroup();
  const offered = async (...words: string[]): Promise<string[]> => {
    const lines = (await user.ok('complete', '--', ...words)).split('\n');
    return lines.filter((line) => !line.startsWith(':')).map((line) => line.split('\t')[0] as string);
  };
  expect(await offered('sho')).toEqual(['show']);
  expect(await offered('show', '')).toEqual(['auth', 'auth/api', 'auth/web']);
  expect(await offered('rm', '')).toEqual(['auth']);
  expect(await offered('why', 'auth', '')).toEqual(['api', 'web']);
});
