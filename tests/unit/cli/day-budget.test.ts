/**
 * Promises: spending of a day over all groups stays within the user's cap. A group at that cap pauses with a next
 * step, and continues after it is raised. A cron workflow with --if-idle does not run twice at once.
 */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nightUser, withNight } from '../../support/cli/night.ts';

withNight();

test('groups share the cap budget.day; a group at the cap pauses, and continues after it is raised', async () => {
  expect((await nightUser.run('config', 'set', 'budget.day', 'much')).code).toBe(2);
  expect(await nightUser.ok('config', 'set', 'budget.day', '0.015')).toBe('0.015');
  const [first, second] = [await nightUser.group('first', { api: [] }), await nightUser.group('second', { web: [] })];
  const run = nightUser.start('group', 'run', first, '--output', 'quiet');
  const api = await nightUser.begun(first, 'api');
  expect(api.hello.args.join(' ')).toMatch(/--max-budget-usd[ =]0\.015/);
  await api.succeed();
  expect((await run.finished).code).toBe(0);
  const refused = await nightUser.run('group', 'run', second, '--output', 'text');
  expect(refused).toMatchObject({ code: 3, stderr: '' });
  const said = 'Daily budget exhausted: all groups spent $0.01 of $0.01.';
  expect(refused.stdout).toContain(`paused (day-budget)  ${said}`);
  expect(refused.stdout).toContain('config set budget.day +5 ');
  expect(await nightUser.json('group', 'show', second)).toMatchObject({ status: 'paused', reason: 'day-budget' });
  expect(await nightUser.ok('why', second)).toContain('config set budget.day +5 ');
  for (const word of ['plan', 'budget']) {
    expect(await nightUser.ok('group', word, second)).toContain('All groups today: $0.01 of $0.01 spent');
    const { day, budget } = await nightUser.json<{ day?: object; budget?: { day: object } }>('group', word, second);
    expect(day ?? budget?.day).toEqual({ capUsd: 0.015, spentUsd: 0.01, othersReservedUsd: 0 });
  }
  await nightUser.ok('config', 'set', 'budget.day', '0.01');
  expect(await nightUser.ok('plan', second)).toContain(
    'spent; nothing starts before midnight unless you raise the cap',
  );
  expect(await nightUser.ok('config', 'set', 'budget.day', '+5')).toBe('5.01');
  const again = nightUser.start('group', 'resume', second, '--output', 'quiet');
  await (await nightUser.begun(second, 'web')).succeed();
  expect((await again.finished).code).toBe(0);
  expect(await nightUser.ok('config', 'set', 'budget.day', '')).toBe('');
  expect((await nightUser.run('config', 'set', 'budget.day', '+5')).stderr).toContain('no daily cap to add to');
}, 60_000);

test('run --if-idle starts nothing while a group of the same workflow has not ended', async () => {
  const file = join(nightUser.folder, 'nightly.yaml');
  writeFileSync(
    file,
    `version: 1\nsessions: { a: { project: ${JSON.stringify(nightUser.project('api'))}, prompt: Do it. } }\n`,
  );
  const group = await nightUser.ok('group', 'create', 'nightly', '--from', file);
  expect(await nightUser.run('run', file, '--if-idle')).toEqual({
    code: 0,
    stdout: '',
    stderr: `Nothing was started: ${group}, of the same workflow, is created.\n`,
  });
  const plan = await nightUser.json<{ waves: string[][] }>('run', file, '--dry-run', '--rehearse', '--json');
  expect(plan.waves.flat()).toHaveLength(1);
  await nightUser.ok('group', 'delete', group, '--force');
  const run = await nightUser.run('run', file, '--if-idle', '--rehearse', '--output', 'quiet');
  expect(run.stderr).toMatch(/^Created group .*-nightly\n$/);
  expect(await nightUser.json('ls')).toHaveLength(1);
}, 60_000);
