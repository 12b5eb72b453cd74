/**
 * Promises, with the real claude and a scripted model: parked sessions are answered on the screen of the review, and
 * continue when it is left.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AskingUser, askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { launcher } from '../../support/cli/user.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

setDefaultTimeout(stepLimitMs);

let asking: AskingUser;
let terminal: TestTerminal | undefined;
afterEach(() => {
  terminal?.close();
  return asking.close();
});

test('questions are answered on the screen of the review, and the sessions continue when it is left', async () => {
  asking = new AskingUser({ api: [askCurl, { text: 'done' }], web: [askDatabase, { text: 'done' }] });
  const { user } = asking;
  const group = await asking.group(['api', 'web'], '--ask-timeout', '1s');
  expect((await asking.start(group).finished).code).toBe(3);
  terminal = new TestTerminal([launcher, 'review', group], { cwd: user.folder, env: user.env });
  await terminal.shows('2 decisions wait', '›? 001 api', 'a answer  b send back');
  terminal.type('a');
  await terminal.shows('To 001 api (allow or deny');
  terminal.type('perhaps');
  terminal.type(key.enter);
  await terminal.shows('asks for a permission');
  terminal.type('a');
  await terminal.shows('To 001 api (allow or deny');
  terminal.type('deny Use the mirror.');
  terminal.type(key.enter);
  await terminal.shows('001 api: It was answered and continues when you leave the review.');
  terminal.type('a');
  await terminal.shows('It has no open question.');
  terminal.type('j');
  await terminal.shows('›? 002 web', '1. Postgres', '2. SQLite');
  terminal.type('a');
  await terminal.shows('To 002 web (numbers of options');
  terminal.type('2');
  terminal.type(key.enter);
  await terminal.shows('002 web: It was answered and continues');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  expect(await user.json('group', 'show', group)).toMatchObject({ progress: { completed: 2 } });
  expect(existsSync(join(user.project('api'), 'ran.txt'))).toBe(false);
  expect(occurrences(asking.heard('api'), 'Use the mirror.')).toBe(1);
  expect(occurrences(asking.heard('web'), 'Answer: SQLite')).toBe(1);
});
