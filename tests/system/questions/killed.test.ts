/**
 * Promises, with the real claude and a scripted model: runner and claude are killed before, during and after an answer,
 * and the machine reboots. The next run continues, and the model gets exactly one answer.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { AskingUser, askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';

setDefaultTimeout(2 * stepLimitMs);

let asking: AskingUser;
afterEach(() => asking.close());

const question = [askDatabase, { text: 'done' }];
const permission = [askCurl, { text: 'done' }];

/** Answers to the question that the model received. */
function answersTo(name: string, answer: string): number {
  const heard = asking.heard(name);
  return occurrences(heard, `=\\"${answer}\\"`) + occurrences(heard, `Answer: ${answer}`);
}

/** The permission reached the model: its call has a result, or the answer is quoted. */
function permissionsOf(name: string, item: string | undefined): number {
  const heard = asking.heard(name);
  return occurrences(heard, 'Bash completed with no output') + occurrences(heard, `(item ${item})`);
}

async function answer(item: { readonly id: string } | undefined, ...words: string[]): Promise<void> {
  await asking.user.ok('answer', item?.id ?? '', ...words);
}

/** Kills the newest claude of the session, unless it has ended. */
function end(group: string, name: string): void {
  try {
    process.kill(asking.claude(group, name), 'SIGKILL');
  } catch {
    // It ended first.
  }
}

test('the runner is killed before, during and after the answer: claude is adopted and gets it once', async () => {
  asking = new AskingUser({ before: question, during: question, after: permission });
  const group = await asking.group(['before', 'during', 'after']);
  const first = asking.startAltered(group, { at: 'after log item_answered' });
  await asking.asked(3);
  const find = async (name: string) => (await asking.inbox()).find(({ session }) => asking.nameOf(session) === name);
  const [during, before, after] = [await find('during'), await find('before'), await find('after')];
  // The runner is killed between the log and claude's input.
  await answer(during, 'Postgres');
  expect((await first.finished).code).toBe(null);
  await answer(before, 'Postgres');
  expect((await asking.user.run('answer', during?.id ?? '', 'SQLite')).code).toBe(2);
  const second = asking.startAltered(group, { at: 'after log request_answered' });
  await asking.logged(group, 'session_adopted');
  await answer(after, 'allow');
  await second.finished;
  expect((await asking.start(group).finished).code).toBe(0);
  expect(answersTo('before', 'Postgres')).toBe(1);
  expect(answersTo('during', 'Postgres')).toBe(1);
  expect(permissionsOf('after', after?.id)).toBe(1);
  expect(['before', 'during', 'after'].map((name) => asking.requests(name))).toEqual([2, 2, 2]);
  const attempts = asking.events(group).filter(({ type }) => type === 'session_starting');
  expect(attempts.length).toBe(3);
});

test('claude is killed before and after the answer, and the machine rebooted: one answer each', async () => {
  asking = new AskingUser({ before: question, after: question, allowed: permission, rebooted: question });
  const group = await asking.group(
    ['before', 'after', 'allowed', 'rebooted'],
    '--concurrent',
    '4',
    '--max-budget-usd',
    '5',
  );
  const first = asking.start(group);
  await asking.asked(4);
  const find = async (name: string) => (await asking.inbox()).find(({ session }) => asking.nameOf(session) === name);
  const [before, after, allowed] = [await find('before'), await find('after'), await find('allowed')];
  const rebooted = await find('rebooted');
  process.kill(asking.claude(group, 'before'), 'SIGKILL');
  for (const [item, name, words] of [
    [after, 'after', 'Postgres'],
    [allowed, 'allowed', 'allow'],
  ] as const) {
    await answer(item, words);
    end(group, name);
  }
  await asking.logged(group, 'session_paused');
  await answer(before, 'Postgres');
  first.kill('SIGKILL');
  await first.finished;
  // The processes that a reboot ends.
  for (const name of ['before', 'after', 'allowed', 'rebooted']) end(group, name);
  const bootId = 'another-boot';
  await answer(rebooted, 'SQLite');
  let code: number | null = 3;
  for (let runs = 0; runs < 3 && code !== 0; runs += 1) {
    code = (await asking.startAltered(group, { bootId }).finished).code;
  }
  expect(code).toBe(0);
  expect(answersTo('before', 'Postgres')).toBe(1);
  expect(answersTo('after', 'Postgres')).toBe(1);
  expect(permissionsOf('allowed', allowed?.id)).toBe(1);
  expect(answersTo('rebooted', 'SQLite')).toBe(1);
  expect(asking.api.problems).toEqual([]);
  const { leftUsd } = await asking.user.json<{ leftUsd: number }>('group', 'budget', group);
  expect(5 - leftUsd).toBeGreaterThanOrEqual(asking.api.served.total.costUsd - 1e-6);
});
