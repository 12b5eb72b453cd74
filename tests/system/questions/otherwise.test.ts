/**
 * Promises, with the real claude and a scripted model: `--always` allows such calls in the whole group, `answerBy`
 * applies the default answers, a pause keeps items, `session say` withdraws them, and `onEvent` gets them.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AskingUser, askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { until } from '../../support/cli.ts';

setDefaultTimeout(2 * stepLimitMs);

let asking: AskingUser;
afterEach(() => asking.close());

test('--always allows the call later and in other sessions, and changes no file of the user', async () => {
  asking = new AskingUser({ api: [askCurl, askCurl, { text: 'done' }], web: [askCurl, { text: 'done' }] });
  const { user } = asking;
  const group = await asking.group(['api', 'web'], '--concurrent', '1');
  const run = asking.start(group);
  const [item] = await asking.asked(1);
  await user.ok('answer', item?.id ?? '', 'allow', '--always');
  expect((await run.finished).code).toBe(0);
  expect(readFileSync(join(user.project('api'), 'ran.txt'), 'utf8')).toBe('ran\nran\n');
  expect(readFileSync(join(user.project('web'), 'ran.txt'), 'utf8')).toBe('ran\n');
  const { config } = await user.json<{ config: { allowedTools: string[] } }>('group', 'show', group);
  expect(config.allowedTools).toContain('Bash(echo ran)');
  expect(await Bun.file(join(user.project('api'), '.claude')).exists()).toBe(false);
});

test('a pause keeps the items, say withdraws them, and onEvent gets their number', async () => {
  asking = new AskingUser({ api: [askCurl, { text: 'done' }], web: [askDatabase, { text: 'done' }] });
  const { user } = asking;
  const told = join(user.folder, 'told.jsonl');
  const settings = join(user.home, '.config', 'claude-code-agent');
  await Bun.write(join(settings, 'config.yaml'), `onEvent: cat >> '${told}'\n`);
  const group = await asking.group(['api', 'web']);
  const first = asking.start(group);
  const items = await asking.asked(2);
  await user.ok('group', 'pause', group);
  expect((await first.finished).code).toBe(3);
  expect((await asking.inbox()).map(({ id }) => id)).toEqual(items.map(({ id }) => id));
  const lines = readFileSync(told, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const opened = lines.filter(({ type }) => type === 'item_opened');
  expect(opened.map(({ waiting }) => waiting).toSorted()).toEqual([1, 2]);

  const permission = items.find(({ kind }) => kind === 'permission');
  await user.ok('session', 'say', `${group}/api`, 'Leave the network alone.');
  const withdrawn = await user.run('answer', permission?.id ?? '', 'allow');
  expect(withdrawn).toMatchObject({ code: 2 });
  expect(withdrawn.stderr).toContain('was withdrawn');
  expect((await user.run('answer', `${group}/api`, 'allow')).code).toBe(2);
  await user.ok('answer', `${group}/web`, '--option', '1');
  const later = asking.start(group);
  // The scripted model repeats a step that a pause interrupted.
  await asking.asked(2);
  await user.ok('answer', `${group}/api`, 'deny');
  await user.ok('answer', `${group}/web`, '--option', '2');
  expect((await later.finished).code).toBe(0);
  expect(occurrences(asking.heard('api'), 'Leave the network alone.')).toBe(1);
  expect(occurrences(asking.heard('api'), '(item ')).toBe(0);
  expect(occurrences(asking.heard('web'), 'Answer: Postgres')).toBe(1);
});

test('a message to a session that waits for an answer becomes that answer', async () => {
  asking = new AskingUser({ api: [askCurl, { text: 'done' }] });
  const group = await asking.group(['api']);
  const run = asking.start(group);
  await asking.asked(1);
  await asking.user.ok('session', 'say', `${group}/api`, 'Leave the network alone.');
  expect((await run.finished).code).toBe(0);
  expect(occurrences(asking.heard('api'), 'Leave the network alone.')).toBe(1);
  expect(occurrences(asking.heard('api'), 'The user has not answered this.')).toBe(1);
  // In the other order claude may go on, and be done, before it has the message.
  const types = asking.events(group).map(({ type }) => type);
  expect(types.indexOf('session_message')).toBeLessThan(types.indexOf('item_withdrawn'));
});

test('after answerBy the default answers apply, even without a runner', async () => {
  asking = new AskingUser({ api: [askCurl, { text: 'done' }], web: [askDatabase, { text: 'done' }] });
  const { user } = asking;
  const group = await asking.group(['api', 'web'], '--ask-timeout', '1s', '--answer-by', '07:00');
  expect((await asking.start(group).finished).code).toBe(3);
  const items = await asking.inbox();
  expect(items).toHaveLength(2);
  // The night passes.
  const path = join(user.data, 'session-groups', group, 'events.jsonl');
  const log = readFileSync(path, 'utf8');
  const passed = log.replaceAll(/"answerBy":"\d{4}[^"]*"/g, '"answerBy":"2026-01-01T07:00:00.000Z"');
  expect(passed).not.toBe(log);
  writeFileSync(path, passed);
  const late = await user.run('answer', items[0]?.id ?? '', 'allow');
  expect(late).toMatchObject({ code: 2 });
  expect(late.stderr).toContain('already answered');
  const run = asking.start(group);
  expect((await run.finished).code).toBe(0);
  expect(occurrences(asking.heard('api'), 'The user has denied it.')).toBe(1);
  expect(occurrences(asking.heard('web'), 'Answer: No answer arrived in time.')).toBe(1);
  await until(() => asking.events(group).filter(({ by }) => by === 'deadline').length === 2);
});
