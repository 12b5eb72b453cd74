/**
 * Promises, through the real launcher, with a live runner and with a killed one: a group is paused, drained, frozen,
 * thawed and resumed from any other process, everything can be stopped at once, and money is shown and raised.
 */
import { expect, test } from 'bun:test';
import { lives, nightUser, sayCost, withNight } from '../../support/cli/night.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

withNight();

const statusOf = async (group: string) => (await nightUser.json<{ status: string }>('group', 'show', group)).status;

test('a live runner pauses and exits with 3, and the next command finds the group free', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  expect(await pause.finished).toMatchObject({
    code: 0,
    stdout: `Paused ${group}. Resume with: claude-code-agent group resume ${group}\n`,
    stderr: '',
  });
  expect({ lives: lives(api), status: await statusOf(group) }).toEqual({ lives: false, status: 'paused' });
  // The finished runner blocks no other command.
  const resume = nightUser.start('group', 'resume', group, '--output', 'quiet');
  const again = await nightUser.begun(group, 'api');
  await again.succeed(0.02);
  await (await nightUser.begun(group, 'web')).succeed(0.03);
  expect([(await run.finished).code, (await resume.finished).code]).toEqual([3, 0]);
  const shown = await nightUser.json<{ progress: { totalCost: number } }>('group', 'show', group);
  expect(shown.progress.totalCost).toBeCloseTo(0.06);
}, 60_000);

test('a group left by a dead runner is paused, can be resumed, and is charged once', async () => {
  const group = await nightUser.group('auth', { api: [], web: [], docs: ['--depends-on', 'api'] });
  const [api, web] = await nightUser.abandoned(group, 'api', 'web');
  if (!api || !web) throw new Error('no fakes');
  const pause = nightUser.start('group', 'pause', group);
  await Promise.all([obeyInterrupt(api, 0.01), obeyInterrupt(web, 0.02)]);
  expect(await pause.finished).toMatchObject({ code: 0, stderr: '' });
  expect([lives(api), lives(web), await statusOf(group)]).toEqual([false, false, 'paused']);
  expect(await nightUser.run('group', 'pause', group)).toMatchObject({
    code: 0,
    stdout: `Group ${group} is already paused.\n`,
  });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  for (const name of ['api', 'web']) await (await nightUser.begun(group, name)).succeed(0.03);
  await (await nightUser.begun(group, 'docs')).succeed(0.04);
  expect((await run.finished).code).toBe(0);
  const shown = await nightUser.json<{ progress: { totalCost: number } }>('group', 'show', group);
  expect(shown.progress.totalCost).toBeCloseTo(0.13);
}, 60_000);

test('a drain lets running sessions finish, with and without a live runner', async () => {
  const sessions = { api: [], web: [], docs: [] };
  const group = await nightUser.group('auth', sessions, '--concurrent', '1');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const drain = nightUser.start('group', 'pause', group, '--drain');
  await nightUser.event(group, 'group_pausing');
  expect(await nightUser.ok('group', 'show', group)).toContain('running (pausing: running sessions finish first)');
  await api.succeed(0.01);
  expect([(await drain.finished).code, (await run.finished).code]).toEqual([0, 3]);

  const [web] = await nightUser.abandoned(group, 'web');
  const second = nightUser.start('group', 'pause', group, '--drain');
  await nightUser.event(group, 'session_adopted');
  await web?.succeed(0.02);
  const drained = await second.finished;
  expect(drained.code).toBe(0);
  expect(drained.stderr).toContain('Waiting for its running sessions');
  const { status, progress } = await nightUser.json<{ status: string; progress: object }>('group', 'show', group);
  expect({ status, progress }).toMatchObject({ status: 'paused', progress: { completed: 2, pending: 1 } });
}, 60_000);

test('every command shows a frozen group as frozen, and it continues when it is resumed', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const frozen = await nightUser.run('group', 'pause', group, '--freeze');
  expect(frozen).toMatchObject({ code: 0, stderr: '' });
  expect(frozen.stdout).toMatch(/^Group \S+ is frozen until \d\d:\d\d:\d\d .*claude-code-agent group resume \S+\n$/);
  expect(await nightUser.ok('group', 'list')).toMatch(/running \(frozen until \d\d:\d\d:\d\d\)/);
  expect(await nightUser.json('group', 'show', group)).toMatchObject({
    status: 'running',
    frozenUntil: expect.stringMatching(/Z$/),
  });
  expect(await nightUser.json('group', 'why', group)).toMatchObject({
    sessions: [{ status: 'running', reason: 'frozen' }],
  });
  // A second freeze changes nothing.
  expect((await nightUser.run('group', 'pause', group, '--freeze')).stdout).toBe(frozen.stdout);
  const thawed = await nightUser.run('group', 'resume', group);
  expect(thawed).toMatchObject({ code: 0, stderr: '' });
  expect(thawed.stdout).toContain('continues');
  expect((await nightUser.run('group', 'resume', group)).code).toBe(4);
  await api.succeed(0.01);
  expect((await run.finished).code).toBe(0);
}, 60_000);

test('stop --all pauses every running group, with and without a runner, and leaves the others', async () => {
  const one = await nightUser.group('one', { a: [] });
  const two = await nightUser.group('two', { b: [] });
  const idle = await nightUser.group('idle', { c: [] });
  const run = nightUser.start('group', 'run', one, '--output', 'quiet');
  const a = await nightUser.begun(one, 'a');
  const [b] = await nightUser.abandoned(two, 'b');
  const stop = nightUser.start('stop', '--all');
  await Promise.all([obeyInterrupt(a, 0.01), b && obeyInterrupt(b, 0.01)]);
  const stopped = await stop.finished;
  expect(stopped).toMatchObject({ code: 0, stderr: '' });
  const line = (group: string) => `Paused ${group}. Resume with: claude-code-agent group resume ${group}`;
  expect(stopped.stdout.trim().split('\n').sort()).toEqual([line(one), line(two)].sort());
  expect((await run.finished).code).toBe(3);
  expect(await Promise.all([one, two, idle].map(statusOf))).toEqual(['paused', 'paused', 'created']);
  expect(await nightUser.run('stop', '--all')).toMatchObject({ code: 0, stdout: 'No group is running.\n' });
}, 60_000);

interface Budget {
  readonly spentUsd: number;
  readonly reservedUsd: number;
  readonly leftUsd: number;
  readonly limitUsd: number;
  readonly sessions: readonly { readonly spentUsd: number; readonly reservedUsd: number }[];
  readonly models: readonly object[];
}

test('the budget adds up while sessions run, with and without a runner', async () => {
  const group = await nightUser.group('auth', { api: ['--max-budget-usd', '0.5'] }, '--max-budget-usd', '2');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await sayCost(api, 0.2);
  const expected = { spentUsd: 0.2, reservedUsd: 0.3, leftUsd: 1.5, limitUsd: 2 };
  const tokens = { input: 100, output: 20, cacheRead: 3, cacheCreation: 4 };
  const check = async () => {
    const shown = await nightUser.json<Budget>('group', 'budget', group);
    for (const [name, usd] of Object.entries(expected)) expect(shown[name as keyof Budget]).toBeCloseTo(usd);
    expect(shown.sessions).toMatchObject([{ name: 'api', status: 'running', spentUsd: 0.2, limitUsd: 0.5 }]);
    expect(shown.models).toEqual([{ model: 'claude-opus-4-8', costUsd: 0.2, tokens }]);
  };
  await check();
  run.kill('SIGKILL');
  await run.finished;
  await check();
  // A message that claude has not counted yet makes it an estimate.
  const usage = { input_tokens: 1_000_000, output_tokens: 1 };
  const text = { id: 'm1', model: 'claude-opus-4-8', usage, content: [{ type: 'text', text: 'Hm.' }] };
  await api.print({ type: 'assistant', message: text });
  const shown = await nightUser.ok('group', 'budget', group);
  expect(shown).toMatch(/Spent: ~\$\d/);
  expect(shown).toMatch(/claude-opus-4-8\s+~\$/);
  expect(shown).toContain('~ estimated');
  // Every command includes the cost of a session whose runner is gone.
  const spent = /Spent: (~\$[\d.]+)/.exec(shown)?.[1] ?? 'no amount';
  for (const command of ['group show', 'group list', 'group watch', 'session list', 'session show', 'group report']) {
    const [noun = '', verb = ''] = command.split(' ');
    const of = command === 'group list' ? [] : [noun === 'session' && verb === 'show' ? `${group}/api` : group];
    const { stdout } = await nightUser.run(noun, verb, ...of);
    const plain = stdout.replaceAll('\\', '');
    expect({ command, shows: plain.includes(spent) ? spent : stdout }).toEqual({ command, shows: spent });
  }
  expect(await nightUser.ok('group', 'report', group)).toContain('## auth: interrupted');
}, 60_000);

test('the cap is raised with and without a live runner, but not below what is spent', async () => {
  const group = await nightUser.group('auth', { api: [] }, '--max-budget-usd', '1');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  expect(await nightUser.run('group', 'budget', group, '--raise-to', '3')).toMatchObject({
    code: 0,
    stderr: `The cap of ${group} is now $3.00.\n`,
  });
  await nightUser.event(group, 'request_answered');
  await nightUser.ok('group', 'budget', group, '--raise-to', '2.5');
  const shared = await nightUser.run('group', 'budget', group, '--raise-to', '0.5');
  expect(shared.code).toBe(2);
  expect(shared.stderr).toContain('Running sessions have reserved part of the cap');
  const first = shared.stderr.trim().split('take it back first with: ')[1] ?? '';
  const pause = nightUser.start(...first.split(' ').slice(1));
  await obeyInterrupt(api, 0.4);
  expect((await pause.finished).code).toBe(0);
  expect((await run.finished).code).toBe(3);
  await nightUser.ok('group', 'budget', group, '--raise-to', '0.5');
  const raised = await nightUser.run('group', 'budget', group, '--raise-to', '4', '--json');
  expect(raised).toMatchObject({ code: 0, stderr: expect.stringContaining(`group resume ${group}`) });
  expect(JSON.parse(raised.stdout)).toMatchObject({ limitUsd: 4, spentUsd: 0.4, reservedUsd: 0, leftUsd: 3.6 });
  const log = nightUser.events(group).length;
  expect(await nightUser.run('group', 'budget', group, '--raise-to', '0.4')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('has already spent $0.40'),
  });
  expect(nightUser.events(group).length).toBe(log);
}, 60_000);
