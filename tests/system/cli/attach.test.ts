/**
 * Promises, with fakes in a real terminal: what a person spends in an attached session is counted from claude's files,
 * under the cap. Whatever process dies, it is counted once, the session returns to the group, and nothing else starts
 * it meanwhile.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { noTokens } from '../../../src/core/group.ts';
import { sessionUuid } from '../../../src/core/id.ts';
import { loadGroup } from '../../../src/store/group-store.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { lives, Night } from '../../support/cli/night.ts';
import { answer, answerUsd, note, typed } from '../../support/cli/spoken.ts';
import { launcher } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import { obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

/** Amount held for an answer of unknown length, US dollars. */
const firstMessageUsd = estimateCost('claude-opus-4-8', { ...noTokens, output: 8_000, cacheCreation: 50_000 });

const world = createRealWorld();
let user: Night;
const terminals: TestTerminal[] = [];
withRig();
beforeEach(() => {
  user = new Night(rig);
});
afterEach(() => {
  for (const terminal of terminals.splice(0)) terminal.close();
  user.remove();
});

function state(group: string) {
  const loaded = loadGroup(world, user.data, group);
  if (!loaded.ok) throw new Error(loaded.failure.message);
  return loaded.value;
}
const record = (group: string) => state(group).sessions.get(user.id('api'));

/** The session's transcript without line breaks. */
const logs = async (group: string) => (await user.ok('session', 'logs', `${group}/api`)).replaceAll(/\s+/g, ' ');

/** A group with a session that ran, printed something, and is paused. */
async function pausedGroup(...options: string[]): Promise<string> {
  const group = await user.group('auth', { api: [] }, ...options);
  const run = user.start('group', 'run', group, '--output', 'quiet');
  const api = await user.begun(group, 'api');
  note(user, group, [typed('Do it.'), answer('old')]);
  const pause = user.start('group', 'pause', group);
  await obeyInterrupt(api, 0.25);
  expect((await pause.finished).code).toBe(0);
  await run.finished;
  return group;
}

function attach(group: string): TestTerminal {
  const terminal = new TestTerminal([launcher, 'session', 'attach', `${group}/api`], {
    cwd: user.folder,
    env: user.env,
    columns: 120,
  });
  terminals.push(terminal);
  return terminal;
}

/** The claude that opened for the person. */
async function opened(group: string): Promise<Invocation> {
  const fake = await user.next('api');
  await until(() => record(group)?.takenOver?.openedAt !== undefined);
  return fake;
}

test("attach to a paused session: claude opens with a worker's settings, and the cost counts once", async () => {
  const group = await pausedGroup('--max-budget-usd', '2');
  const terminal = attach(group);
  const fake = await opened(group);
  const { args, env, cwd } = fake.hello;
  expect(cwd).toBe(user.project('api'));
  expect(args).toContain('--permission-mode');
  expect(args).not.toContain('-p');
  expect(args).not.toContain('--max-budget-usd');
  expect(env).not.toHaveProperty('CLAUDE_CODE_EXIT_AFTER_STOP_DELAY');
  expect(env.CLAUDE_CODE_AGENT_ATTEMPT).toBe(record(group)?.takenOver?.id);
  const budget = await user.json<{ reservedUsd: number; spentUsd: number }>('group', 'budget', group);
  expect(budget).toMatchObject({ spentUsd: 0.25, reservedUsd: 1.75 });
  const why = await user.json<unknown>('group', 'why', group);
  expect(JSON.stringify(why)).toContain('Attached to a terminal.');
  await fake.printRaw('what now?');
  await terminal.shows('You may spend $1.75', 'what now?');
  terminal.type('paint it blue\r');
  expect(await fake.input().catch(() => 'text')).toBe('text');
  note(user, group, [typed('paint it blue'), answer('new')]);
  fake.exit(0);
  expect(await terminal.exited).toBe(0);
  await terminal.shows('You spent ~$0.03.', 'api is paused.', 'session resume');
  expect(record(group)).toMatchObject({ queued: true, spokenWith: true });
  expect(record(group)?.usage.costUsd).toBeCloseTo(0.25 + answerUsd, 6);
  expect(state(group)).toMatchObject({ reservedUsd: 0 });
  expect(state(group).takenOver.size).toBe(0);
  const said = / == attached: ~\$0\.03, 100 in, 1\.0k out, \S+ +\S+ You continued the conversation in claude\./;
  expect(await logs(group)).toMatch(said);
  // Its next attempt is informed, and nothing is counted again.
  const run = user.start('group', 'resume', group, '--output', 'quiet');
  const next = await user.next('api');
  expect(next.resumed).toBe(true);
  expect(await next.prompt()).toContain('the user has taken part in this conversation');
  await next.init();
  await next.succeed(0.5);
  expect((await run.finished).code).toBe(0);
  expect(state(group).usage.costUsd).toBeCloseTo(0.75 + answerUsd, 6);
  const order = ['== attempt 1 paused', '== attached', '== attempt 2 resumed', '== attempt 2 completed'];
  expect((await logs(group)).match(/== (?:attempt \d \w+|attached)/g)).toEqual(['== attempt 1 started', ...order]);
}, 60_000);

test('attach beside a live runner: nothing else starts the session, and it continues after the detach', async () => {
  const group = await user.group('auth', { api: [] });
  const run = user.start('group', 'run', group, '--output', 'quiet');
  const api = await user.begun(group, 'api');
  note(user, group, [typed('Do it.'), answer('old')]);
  const terminal = attach(group);
  await obeyInterrupt(api, 0.25);
  const fake = await opened(group);
  for (const words of [
    ['session', 'resume', `${group}/api`],
    ['session', 'retry', `${group}/api`],
    ['session', 'attach', `${group}/api`],
    ['session', 'edit', `${group}/api`, '--prompt', 'Else.'],
    ['session', 'remove', `${group}/api`, '--force'],
  ]) {
    const refused = words[1] === 'attach' ? await secondAttach(group) : (await user.run(...words)).stderr;
    expect(refused).toMatch(/Session 001 api is attached to a terminal .* Leave claude there with \/exit first\./s);
  }
  fake.exit(0);
  expect(await terminal.exited).toBe(0);
  await terminal.shows('No message was sent.', '001 api continues when a slot is free.');
  const next = await user.begun(group, 'api');
  await next.succeed(0.5);
  expect((await run.finished).code).toBe(0);
  expect(state(group).usage.costUsd).toBeCloseTo(0.75, 6);
}, 60_000);

/** The text on its screen without line breaks. */
const words = (terminal: TestTerminal): string => terminal.text().replaceAll(/\s+/g, ' ');

async function secondAttach(group: string): Promise<string> {
  const second = attach(group);
  expect(await second.exited).toBe(1);
  return words(second);
}

test('at the reserved budget claude is ended, and the user is informed', async () => {
  const group = await pausedGroup('--max-budget-usd', '0.35');
  const terminal = attach(group);
  const fake = await opened(group);
  note(user, group, [typed('a long story'), answer('new', 4_000)]);
  expect(await terminal.exited).toBe(3);
  expect(lives(fake)).toBe(false);
  await terminal.shows('claude was ended: the limit of $0.10 was reached.');
  expect(state(group)).toMatchObject({ reservedUsd: 0 });
}, 60_000);

test('after /clear the group continues in the new conversation', async () => {
  const group = await pausedGroup();
  const terminal = attach(group);
  const fake = await opened(group);
  const cleared = '11111111-2222-4333-8444-555555555555';
  const echo = typed('<command-name>/clear</command-name>');
  note(user, group, [echo, typed('begin again'), answer('new')], cleared);
  fake.exit(0);
  expect(await terminal.exited).toBe(0);
  expect(record(group)).toMatchObject({ claudeSessionIds: [sessionUuid(user.id('api')), cleared], cleared: true });
  const run = user.start('group', 'resume', group, '--output', 'quiet');
  const next = await rig.nextFor(cleared);
  expect(next.resumed).toBe(true);
  expect(await next.prompt()).toContain('You do not have the earlier conversation');
  await next.init();
  await next.succeed(0.5);
  expect((await run.finished).code).toBe(0);
}, 60_000);

for (const how of ['killed', 'hung up'] as const) {
  test(`${how} while attached: the next command counts the cost and ends what is left`, async () => {
    const group = await pausedGroup('--max-budget-usd', '2');
    const terminal = attach(group);
    const fake = await opened(group);
    note(user, group, [typed('paint it blue'), answer('new')]);
    if (how === 'killed') terminal.kill('SIGKILL');
    else terminal.hangUp();
    await terminal.ended;
    if (how === 'killed') {
      const why = await user.ok('group', 'why', group);
      expect(why).toContain('The attached terminal is gone. Its cost is counted when the group continues.');
      expect(why).not.toContain('is speaking');
    }
    await user.ok('group', 'edit', group, '--concurrent', '2');
    expect(lives(fake)).toBe(false);
    expect(record(group)?.takenOver).toBeUndefined();
    expect(record(group)?.usage.costUsd).toBeCloseTo(0.25 + answerUsd, 6);
    expect(state(group)).toMatchObject({ reservedUsd: 0 });
  }, 60_000);
}

for (const what of ['the command', 'claude'] as const) {
  test(`${what} killed during a request: the possible cost of the answer is held`, async () => {
    const group = await pausedGroup('--max-budget-usd', '2');
    const terminal = attach(group);
    const fake = await opened(group);
    note(user, group, [typed('paint it blue'), answer('new'), typed('and the door')]);
    if (what === 'the command') terminal.kill('SIGKILL');
    else process.kill(fake.hello.pid, 'SIGKILL');
    await terminal.ended;
    await user.ok('group', 'edit', group, '--concurrent', '2');
    const { costUsd, heldUsd } = record(group)?.usage ?? {};
    expect(heldUsd).toBeCloseTo(firstMessageUsd, 6);
    expect(costUsd).toBeCloseTo(0.25 + answerUsd + firstMessageUsd, 6);
    await user.ok('group', 'budget', group, '--free', 'api');
    expect(record(group)?.usage.costUsd).toBeCloseTo(0.25 + answerUsd, 6);
  }, 60_000);
}

test('after a killed runner the next one leaves the session attached, and continues after the detach', async () => {
  const group = await user.group('auth', { api: [], web: [] }, '--max-budget-usd', '9');
  const run = user.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([user.begun(group, 'api'), user.begun(group, 'web')]);
  note(user, group, [typed('Do it.'), answer('old')]);
  const terminal = attach(group);
  await obeyInterrupt(api, 0.25);
  const fake = await opened(group);
  run.kill('SIGKILL');
  await run.finished;
  const second = user.start('group', 'run', group, '--output', 'quiet');
  await user.event(group, 'group_resumed');
  await web.succeed(0.25);
  await user.event(group, 'session_completed');
  expect(lives(fake)).toBe(true);
  note(user, group, [typed('paint it blue'), answer('new')]);
  fake.exit(0);
  expect(await terminal.exited).toBe(0);
  const next = await user.begun(group, 'api');
  await next.succeed(0.5);
  expect((await second.finished).code).toBe(0);
  expect(state(group).usage.costUsd).toBeCloseTo(1 + answerUsd, 6);
}, 60_000);

test('Ctrl-C goes to claude', async () => {
  const group = await pausedGroup();
  const terminal = attach(group);
  const fake = await opened(group);
  await fake.ignore('SIGINT');
  terminal.type(key.ctrlC);
  // When a terminal receives it, it drops the output that was not read yet.
  await terminal.shows('^C');
  await fake.printRaw('still here');
  await terminal.shows('still here');
  fake.exit(0);
  expect(await terminal.exited).toBe(0);
}, 60_000);

test('a session that cannot be attached to is refused in one sentence and unchanged', async () => {
  const group = await user.group('auth', { api: [] });
  const piped = await user.run('session', 'attach', `${group}/api`);
  expect(piped).toMatchObject({ code: 2, stderr: expect.stringContaining('Attaching needs a terminal') });
  const early = attach(group);
  expect(await early.exited).toBe(1);
  expect(words(early)).toContain('was never started, so there is no conversation to attach to. Start the group with:');
  const run = user.start('group', 'run', group, '--output', 'quiet');
  await (await user.begun(group, 'api')).succeed(0.25);
  await run.finished;
  const late = attach(group);
  expect(await late.exited).toBe(1);
  expect(words(late)).toContain('is completed and cannot be changed. Run it again with:');
  expect(user.events(group).some(({ type }) => type === 'session_attaching')).toBe(false);
}, 60_000);
