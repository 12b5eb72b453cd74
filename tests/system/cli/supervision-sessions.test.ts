/**
 * Promises, through the real launcher, with a live runner and with a killed one: one session is paused, resumed,
 * retried and sent messages while others continue. Each waiting session has a reason.
 */
import { expect, test } from 'bun:test';
import { lives, nightUser, withNight } from '../../support/cli/night.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

withNight();

const failure = resultLine(0.01, { is_error: true, result: 'It went wrong.' });

interface Why {
  readonly status: string;
  readonly sessions: readonly { readonly name: string; readonly reason: string; readonly message: string }[];
}

/** Reason codes by session name. */
async function reasons(group: string, ...session: string[]): Promise<Record<string, string>> {
  const { sessions } = await nightUser.json<Why>('group', 'why', group, ...session);
  return Object.fromEntries(sessions.map(({ name, reason }) => [name, reason]));
}

test('a live runner pauses one session, the other continues, and it is resumed', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  const pause = nightUser.start('session', 'pause', 'auth/api');
  await obeyInterrupt(api, 0.01);
  expect(await pause.finished).toMatchObject({
    code: 0,
    stdout: `Session 001 api is paused. Resume with: claude-code-agent session resume ${group}/api\n`,
    stderr: '',
  });
  expect([lives(api), lives(web)]).toEqual([false, true]);
  expect(await reasons(group)).toEqual({ api: 'user', web: 'working' });
  expect((await nightUser.run('session', 'resume', 'auth/web')).code).toBe(2);
  const resumed = await nightUser.run('session', 'resume', 'auth/api');
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(resumed.stdout).toContain('when a slot is free');
  await (await nightUser.begun(group, 'api')).succeed(0.02);
  await web.succeed(0.03);
  expect((await run.finished).code).toBe(0);
}, 60_000);

test('a session of a dead runner is paused and resumed alone, the other continues', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] });
  const [api, web] = await nightUser.abandoned(group, 'api', 'web');
  if (!api || !web) throw new Error('no fakes');
  expect(await reasons(group)).toEqual({ api: 'runner-gone', web: 'runner-gone' });
  const pause = nightUser.start('session', 'pause', 'auth/api');
  await obeyInterrupt(api, 0.01);
  expect(await pause.finished).toMatchObject({ code: 0, stderr: '' });
  expect([lives(api), lives(web)]).toEqual([false, true]);
  const resume = nightUser.start('session', 'resume', 'auth/api');
  await (await nightUser.begun(group, 'api')).succeed(0.02);
  await web.succeed(0.03);
  const resumed = await resume.finished;
  expect(resumed).toMatchObject({ code: 0, stderr: '' });
  expect(resumed.stdout).toContain('001 api');
  expect((await nightUser.json<Why>('group', 'why', group)).status).toBe('completed');
}, 60_000);

test('resuming one session of a paused group starts no other', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'], docs: [] }, '--concurrent', '1');
  const [api] = await nightUser.abandoned(group, 'api');
  const pause = nightUser.start('group', 'pause', group);
  if (api) await obeyInterrupt(api, 0.01);
  await pause.finished;
  expect(await reasons(group)).toEqual({ api: 'user', web: 'waiting', docs: 'user' });
  expect(await nightUser.run('session', 'resume', 'auth/web')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('waits for 001 api'),
  });
  const resume = nightUser.start('session', 'resume', 'auth/api');
  await (await nightUser.begun(group, 'api')).succeed(0.02);
  expect((await resume.finished).code).toBe(0);
  const { progress } = await nightUser.json<{ progress: object }>('group', 'show', group);
  expect(progress).toMatchObject({ completed: 1, pending: 2 });
}, 60_000);

test("a failed session is retried with a user's message, without a runner", async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  expect((await nightUser.run('session', 'retry', 'auth/api')).code).toBe(2);
  await api.print(failure);
  expect((await run.finished).code).toBe(1);
  expect(await reasons(group)).toEqual({ api: 'claude-error', web: 'blocked' });
  const resumed = await nightUser.run('session', 'resume', 'auth/api');
  expect(resumed.code).toBe(2);
  expect(resumed.stderr).toContain(`Retry with: claude-code-agent session retry ${group}/api`);
  const retry = nightUser.start('session', 'retry', 'auth/api', '--prompt', 'Mind the database.');
  const again = await nightUser.next('api');
  expect(await again.prompt()).toContain('Mind the database.');
  await again.init();
  await again.print(failure);
  expect((await retry.finished).code).toBe(1);
  const third = nightUser.start('session', 'retry', 'auth/api');
  const last = await nightUser.next('api');
  expect(await last.prompt()).not.toContain('Mind the database.');
  await last.init();
  await last.succeed(0.02);
  expect((await third.finished).code).toBe(0);
}, 60_000);

const said = (text: string) => ({ type: 'assistant', message: { id: text, content: [{ type: 'text', text }] } });

/** Messages to and from a session and its attempts, in the order of `session logs`. */
async function conversation(session: string): Promise<(string | undefined)[]> {
  const { entries } = await nightUser.json<{ entries: { kind: string; text?: string }[] }>('session', 'logs', session);
  const spoken = ['said', 'user-said'];
  const shown = entries.filter(({ kind }) => spoken.includes(kind) || kind.startsWith('attempt-'));
  return shown.map(({ kind, text }) => (spoken.includes(kind) ? text : kind));
}

test('a message reaches a running session at once, and other sessions with their next attempt', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  expect(await nightUser.run('session', 'say', 'auth/api', 'first')).toMatchObject({
    code: 0,
    stdout: 'Message sent to session 001 api.\n',
  });
  expect(await api.prompt()).toBe('first');
  await api.print(said('I heard the first.'));
  expect((await nightUser.run('session', 'say', 'auth/web', 'to web')).stdout).toContain(
    'gets the message with its next attempt',
  );
  run.kill('SIGKILL');
  await run.finished;
  api.die('SIGKILL');
  const second = await nightUser.runWith({ stdin: 'second' }, 'session', 'say', 'auth/api', '-');
  expect(second.stdout).toContain('gets the message with its next attempt');
  const next = nightUser.start('group', 'run', group, '--output', 'quiet');
  const again = await nightUser.next('api');
  expect(await again.prompt()).toContain('second');
  await again.init();
  await again.succeed(0.01);
  const web = await nightUser.next('web');
  expect(await web.prompt()).toContain('to web');
  await web.init();
  await web.succeed(0.01);
  expect((await next.finished).code).toBe(0);
  expect((await nightUser.run('session', 'say', 'auth/api', 'too late')).code).toBe(2);
  expect(await conversation('auth/api')).toEqual([
    ...['attempt-began', 'first', 'I heard the first.', 'attempt-ended'],
    ...['second', 'attempt-began', 'attempt-ended'],
  ]);
  expect(await conversation('auth/web')).toEqual(['to web', 'attempt-began', 'attempt-ended']);
}, 60_000);

test('a session that spent its own cap gets more and continues, without and with a runner', async () => {
  const dry = (costUsd: number) => resultLine(costUsd, { subtype: 'error_max_budget_usd', is_error: true });
  const group = await nightUser.group('auth', { api: ['--max-budget-usd', '0.5'], web: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await api.print(dry(0.51));
  await nightUser.event(group, 'session_paused');
  expect(await nightUser.run('session', 'resume', 'auth/api')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('all of its own budget'),
  });
  expect((await nightUser.run('session', 'resume', 'auth/api', '--max-budget-usd', '0.5')).code).toBe(2);
  expect((await nightUser.run('session', 'resume', 'auth/api', '--max-budget-usd', '1')).code).toBe(0);
  const more = await nightUser.begun(group, 'api');
  const reserved = Number(more.hello.args[more.hello.args.indexOf('--max-budget-usd') + 1]);
  expect(reserved).toBeCloseTo(0.49, 3);
  expect(more.claudeSessionId).toBe(api.claudeSessionId);
  await more.print(dry(0.5));
  await web.succeed();
  expect((await run.finished).code).toBe(3);
  expect(nightUser.events(group).findLast(({ type }) => type === 'group_paused')).toMatchObject({ reason: 'budget' });
  expect(await reasons(group)).toMatchObject({ api: 'budget' });
  // The group's own budget is sufficient.
  const next = `Continue with: claude-code-agent session resume ${group}/api --max-budget-usd 2.01`;
  expect((await nightUser.run('group', 'show', group)).stdout).toContain(next);
  const last = nightUser.start('session', 'resume', 'auth/api', '--max-budget-usd', '2');
  await (await nightUser.begun(group, 'api')).succeed();
  expect((await last.finished).code).toBe(0);
}, 60_000);

test('a session that has not started is held back, and the reason is shown', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] }, '--concurrent', '1');
  expect(await reasons(group)).toEqual({ api: 'not-started', web: 'not-started' });
  const offered = (await nightUser.ok('complete', '--', 'group', 'why', 'auth', '')).split('\n');
  expect(offered.map((line) => line.split('\t')[0]).filter((word) => !word?.startsWith(':'))).toEqual(['api', 'web']);
  expect(await nightUser.ok('session', 'pause', 'auth/web')).toContain('is not running. It starts with its group');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  expect(await reasons(group, 'web')).toEqual({ web: 'slot' });
  expect((await nightUser.run('session', 'pause', 'auth/web')).stdout).toContain('Session 002 web is held back.');
  expect(await reasons(group)).toEqual({ api: 'working', web: 'held' });
  const call = { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make tests' } };
  await api.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content: [call] } });
  const told = async () => (await nightUser.ok('group', 'why', group)).split('\n');
  let lines = await told();
  // The runner shows session activity with a delay.
  while (!lines[1]?.includes('make tests')) lines = await told();
  expect(lines[0]).toMatch(/^SESSION +STATUS +REASON +WHY$/);
  expect(lines[1]).toMatch(/^001 api +running +working +It is using a tool: Bash make tests$/);
  expect(lines).toHaveLength(3);
  await api.succeed(0.01);
  expect((await run.finished).code).toBe(3);
}, 60_000);
