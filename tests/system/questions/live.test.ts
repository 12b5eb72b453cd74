/**
 * Promises, with the real claude and a scripted model: with `ask: wait` a permission request and a question wait in the
 * inbox. An answer with a live runner reaches the model exactly once, and a second answer is refused.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AskingUser, askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

let asking: AskingUser;
afterEach(() => asking.close());

test('the command that the inbox prints answers all questions of an item', async () => {
  const [first] = askDatabase.input.questions;
  const systems = ['Linux', 'macOS'].map((label) => ({ label, description: label }));
  const questions = [first, { ...first, question: 'Which system?', options: systems }];
  asking = new AskingUser({ api: [{ ...askDatabase, input: { questions } }, { text: 'done' }] });
  const { user } = asking;
  const group = await asking.group(['api']);
  const run = asking.start(group);
  const [item] = await asking.asked(1);
  const options = ['--option', '1', '--option', '3'];
  expect(await user.ok('inbox', group)).toContain(`answer ${item?.id} ${options.join(' ')}`);
  await user.ok('answer', item?.id ?? '', ...options);
  expect((await run.finished).code).toBe(0);
  expect(occurrences(asking.heard('api'), '=\\"Linux\\"')).toBe(1);
});

test('an answer with a live runner reaches claude once, and a second one exits with 2', async () => {
  asking = new AskingUser({
    api: [askCurl, { text: 'done' }],
    web: [askDatabase, { text: 'done' }],
    shop: [askCurl, { text: 'done' }],
  });
  const { user } = asking;
  const group = await asking.group(['api', 'web', 'shop'], '--concurrent', '3');
  const run = asking.start(group);
  const items = await asking.asked(3);
  const of = (name: string) => items.find(({ session }) => session === names.get(name));
  const names = new Map(
    (await user.json<{ sessions: { id: string; name: string }[] }>('group', 'show', group)).sessions.map(
      ({ id, name }) => [name, id],
    ),
  );
  const [permission, question, denied] = [of('api'), of('web'), of('shop')];
  expect(permission).toMatchObject({ group, kind: 'permission', options: ['allow', 'deny'] });
  expect(permission?.text).toStartWith('Bash: curl -s');
  expect(question).toMatchObject({ kind: 'question', text: 'Which database?', options: ['Postgres', 'SQLite'] });
  expect(await user.ok('inbox', group)).toContain(`answer ${permission?.id} allow`);
  expect(await user.ok('why', group)).toContain(`It waits for an answer (item ${question?.id})`);

  for (const [item, ...words] of [
    [permission, 'yes'],
    [permission, 'allow', '--option', '1'],
    [question, 'allow'],
    [question, '--option', '3'],
    [question, '--option', '1', '--option', '2'],
    [question, 'Postgres', '--note', 'x'],
  ] as const) {
    expect([words, (await user.run('answer', item?.id ?? '', ...words)).code]).toEqual([words, 2]);
  }
  expect(await user.ok('answer', permission?.id ?? '', 'allow')).toContain('continues');
  expect(await user.json<object>('answer', question?.id ?? '', '--option', '2')).toMatchObject({ item: question?.id });
  await user.ok('answer', denied?.id ?? '', 'deny', '--note', 'Use the mirror.');
  const second = await user.run('answer', permission?.id ?? '', 'deny');
  expect(second).toMatchObject({ code: 2 });
  expect(second.stderr).toContain('was already answered: allow');

  expect((await run.finished).code).toBe(0);
  expect(readFileSync(join(user.project('api'), 'ran.txt'), 'utf8')).toBe('ran\n');
  expect(existsSync(join(user.project('shop'), 'ran.txt'))).toBe(false);
  expect(occurrences(asking.heard('web'), '=\\"SQLite\\"')).toBe(1);
  expect(occurrences(asking.heard('web'), 'Your questions have been answered')).toBe(1);
  expect(occurrences(asking.heard('shop'), 'Use the mirror.')).toBe(1);
  expect(['api', 'web', 'shop'].map((name) => asking.requests(name))).toEqual([2, 2, 2]);
  const { stdout } = await run.finished;
  const types = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).type]));
  expect(types.filter((type) => type === 'item_opened').length).toBe(3);
  expect(types.filter((type) => type === 'item_answered').length).toBe(3);
  expect(await asking.inbox()).toEqual([]);
});
