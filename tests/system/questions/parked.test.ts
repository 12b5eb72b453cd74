/**
 * Promises, with the real claude and a scripted model: a session that waits too long is parked, costs nothing and holds
 * nothing, and the rest of the group continues. The answer is quoted when the session resumes, and counts once, for the
 * same call.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AskingUser, askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

let asking: AskingUser;
afterEach(() => asking.close());

test('parked sessions cost and hold nothing, and resume with their answers after the run', async () => {
  asking = new AskingUser({
    api: [askCurl, askCurl, askCurl, { text: 'done' }],
    web: [askDatabase, { text: 'done' }],
    shop: [{ text: 'done' }],
  });
  const { user } = asking;
  const group = await asking.group(['api', 'web', 'shop'], '--concurrent', '1', '--ask-timeout', '1s');
  const { code, stdout } = await asking.start(group).finished;
  expect(code).toBe(3);
  const lines = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  expect(lines.filter(({ type }) => type === 'session_parked').map(({ reason }) => reason)).toEqual([
    'waits-for-answer',
    'waits-for-answer',
  ]);
  expect(lines.at(-1)).toMatchObject({ type: 'group_paused', message: '2 questions wait for an answer.' });
  expect(await user.json('group', 'show', group)).toMatchObject({ progress: { completed: 1, paused: 2 } });
  // Neither a failed night nor four open cases.
  const review = await user.ok('review', group);
  expect(review).toContain('Which database?\n    1. Postgres\n    2. SQLite\n');
  expect(review).toMatch(/^1 of 3 sessions completed, .* 2 decisions wait, 1 safe to merge\./);
  expect(await user.json('group', 'budget', group)).toMatchObject({ reservedUsd: 0, leftUsd: 0.97 });
  const asked = asking.requests('api') + asking.requests('web');

  const [permission, question] = await asking.inbox();
  expect(await user.ok('why', group)).toContain(`answer ${permission?.id} allow`);
  expect((await user.run('session', 'resume', `${group}/api`)).code).toBe(2);
  // Nothing was answered, so nothing resumes.
  expect((await asking.start(group).finished).code).toBe(3);
  expect(asking.requests('api') + asking.requests('web')).toBe(asked);

  expect(await user.ok('answer', permission?.id ?? '', 'allow')).toContain(`group resume ${group}`);
  await user.ok('answer', question?.id ?? '', 'Postgres, please');
  for (const command of ['why', 'status']) {
    const shown = await user.ok(command, group);
    expect(shown).toContain('Your answer is recorded and applies when the group runs.');
    expect(shown).not.toContain('Stopped until its question is answered.');
  }
  // The next item is to be answered while claude waits for it.
  await user.ok('group', 'edit', group, '--ask-timeout', '1h');
  const later = asking.start(group);
  // The answer counts for one call: the next call of the same kind is a new item.
  const [again] = await asking.asked(1);
  expect(again).toMatchObject({ text: permission?.text });
  expect(again?.id).not.toBe(permission?.id);
  await user.ok('answer', again?.id ?? '', 'allow');
  expect((await later.finished).code).toBe(0);
  expect(readFileSync(join(user.project('api'), 'ran.txt'), 'utf8')).toBe('ran\nran\n');
  expect(occurrences(asking.heard('web'), 'Answer: Postgres, please')).toBe(1);
  expect(occurrences(asking.heard('web'), 'Question: Which database?')).toBe(1);
  expect(occurrences(asking.heard('api'), `(item ${permission?.id})`)).toBe(1);
  expect(occurrences(asking.heard('api'), `(item ${again?.id})`)).toBe(0);
  expect(asking.api.problems).toEqual([]);
});
