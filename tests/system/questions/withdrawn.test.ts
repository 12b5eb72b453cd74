/**
 * Promises: `session say`, `edit`, `allow` and `retry` withdraw what a parked session asked, and the session continues
 * with their words; a failure withdraws it too. `group allow` answers exactly the calls that its rules allow.
 */
import { expect, test } from 'bun:test';
import { nightUser, withNight } from '../../support/cli/night.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import { rig } from '../../support/rig-ground.ts';

withNight();

const asking = ['--ask', 'wait', '--ask-timeout', '1s', '--concurrent', '8', '--retries', '0'];

interface Item {
  readonly id: string;
  readonly session: string;
}

async function itemOf(name: string): Promise<string | undefined> {
  const { items } = await nightUser.json<{ items: Item[] }>('inbox');
  return items.find(({ session }) => session === nightUser.id(name))?.id;
}

/** The claude of a new conversation. */
async function restarted(group: string): Promise<Invocation> {
  await nightUser.event(group, 'session_queued', (event) => 'fresh' in event);
  const { fresh } = nightUser.events(group).findLast((event) => 'fresh' in event) as { fresh: string };
  return rig.nextFor(fresh);
}

async function isWithdrawn(id: string | undefined): Promise<void> {
  const late = await nightUser.run('answer', id ?? '', 'allow');
  expect(late).toMatchObject({ code: 2, stdout: '' });
  expect(late.stderr).toContain('was withdrawn');
}

test('words, a change, rules and a retry withdraw the question of a parked session', async () => {
  const names = ['said', 'edited', 'allowed', 'retried', 'restarted'];
  const group = await nightUser.group('ship', Object.fromEntries(names.map((name) => [name, []])), ...asking);
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await Promise.all(names.map((name) => nightUser.asks(group, name, `deploy ${name}`)));
  expect((await run.finished).code).toBe(3);
  const items = new Map<string, string | undefined>();
  for (const name of names) items.set(name, await itemOf(name));
  expect([...items.values()].every((id) => id !== undefined)).toBe(true);

  await nightUser.ok('session', 'say', `${group}/said`, 'Deploy nothing.');
  await nightUser.ok('session', 'edit', `${group}/edited`, '--prompt', 'Only build it.');
  await nightUser.ok('session', 'allow', `${group}/allowed`, 'Bash(deploy:*)');
  for (const name of ['said', 'edited', 'allowed']) await isWithdrawn(items.get(name));

  for (const [name, more] of [
    ['retried', ['--prompt', 'Use the mirror.']],
    ['restarted', ['--fresh']],
  ] as const) {
    const retried = nightUser.start('session', 'retry', `${group}/${name}`, ...more);
    await nightUser.event(group, 'item_withdrawn', (event) => 'item' in event && event.item === items.get(name));
    const fake = await (name === 'restarted' ? restarted(group) : nightUser.next(name));
    const prompt = await fake.prompt();
    expect(prompt).not.toContain('(item ');
    if (name === 'retried') expect(prompt).toContain('Use the mirror.');
    await fake.init();
    await fake.succeed();
    expect((await retried.finished).code).toBe(0);
    await isWithdrawn(items.get(name));
  }

  const later = nightUser.start('group', 'resume', group, '--output', 'quiet');
  for (const [name, words] of [
    ['said', 'Deploy nothing.'],
    ['edited', 'Only build it.'],
    ['allowed', ''],
  ] as const) {
    const fake = await nightUser.next(name);
    const prompt = await fake.prompt();
    expect(prompt).toContain(words);
    expect(prompt).not.toContain('(item ');
    await fake.init();
    await fake.succeed();
  }
  expect((await later.finished).code).toBe(0);
  expect(nightUser.events(group).filter(({ type }) => type === 'item_answered')).toEqual([]);
}, 60_000);

test('a rule of the group answers the calls that it allows, and a failure withdraws what was asked', async () => {
  const names = ['first', 'same', 'other', 'parked', 'failing'];
  const sessions = Object.fromEntries(names.map((name) => [name, []]));
  const group = await nightUser.group('ship', sessions, ...asking.with(3, '1h'));
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [first, same, other, failing] = await Promise.all([
    nightUser.asks(group, 'first', 'npm publish'),
    nightUser.asks(group, 'same', 'npm publish'),
    nightUser.asks(group, 'other', 'npm whoami'),
    nightUser.asks(group, 'failing', 'npm login'),
    nightUser.asks(group, 'parked', 'npm version 2'),
  ]);
  const [failed, waiting] = [await itemOf('failing'), await itemOf('parked')];
  await nightUser.ok('answer', (await itemOf('first')) ?? '', 'allow', '--always');
  for (const fake of [first, same]) {
    expect(await fake.answer()).toMatchObject({ behavior: 'allow', updatedInput: { command: 'npm publish' } });
  }
  await nightUser.ok('group', 'allow', group, 'Bash(npm whoami:*)');
  expect(await other.answer()).toMatchObject({ behavior: 'allow', updatedInput: { command: 'npm whoami' } });
  failing.exit(1);
  await nightUser.event(group, 'session_failed');
  await isWithdrawn(failed);
  expect((await nightUser.json<{ items: Item[] }>('inbox')).items).toMatchObject([{ id: waiting }]);
  for (const fake of [first, same, other]) await fake.succeed();

  // Without a runner the rule answers too, and the next attempt tells claude so.
  await nightUser.ok('group', 'pause', group);
  expect((await run.finished).code).toBe(3);
  await nightUser.ok('group', 'allow', group, 'Bash(npm version:*)');
  expect((await nightUser.json<{ items: Item[] }>('inbox')).items).toEqual([]);
  const later = nightUser.start('group', 'resume', group, '--output', 'quiet');
  for (const name of ['parked', 'failing']) {
    const fake = await nightUser.next(name);
    expect((await fake.prompt()).includes(`(item ${waiting})`)).toBe(name === 'parked');
    await fake.init();
    await fake.succeed();
  }
  expect((await later.finished).code).toBe(0);
  const answers = nightUser.events(group).flatMap((event) => (event.type === 'item_answered' ? [event.by] : []));
  expect(answers).toEqual(['user', 'rule', 'rule', 'rule']);
}, 60_000);
