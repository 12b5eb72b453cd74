/**
 * Promises: spending of a day over all groups stays within the user's cap. A group at that cap pauses with a next
 * step, and continues after it is raised. A cron workflow with --if-idle does not run twice at once.
 */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { user, withNight } from '../../support/cli/night.ts';

withNight();

test('groups share the cap budget.day; a group at the cap pauses, and continues after it is raised', async () => {
  expect((await user.run('config', 'set', 'budget.day', 'much')).code).toBe(2);
  expect(await user.ok('config', 'set', 'budget.day', '0.015')).toBe('0.015');
  const [first, second] = [await user.group('first', { api: [] }), await user.group('second', { web: [] })];
  const run = user.start('group', 'run', first, '--output', 'quiet');
  const api = await user.begun(first, 'api');
  expect(api.hello.args.join(' ')).toMatch(/--max-budget-usd[ =]0\.015/);
  await api.succeed();
  expect((await run.finished).code).toBe(0);
  const refused = await user.run('group', 'run', second, '--output', 'text');
  expect(refused).toMatchObject({ code: 3, stderr: '' });
  const said = 'Daily budget exhausted: all groups spent $0.01 of $0.01.';
  expect(refused.stdout).toContain(`paused (day-budget)  ${said}`);
  expect(refused.stdout).toContain('config set budget.day +5 ');
  expect(await user.json('group', 'show', second)).toMatchObject({ status: 'paused', reason: 'day-budget' });
  expect(await user.ok('why', second)).toContain('config set budget.day +5 ');
  for (const word of ['plan', 'budget']) {
    expect(await user.ok('group', word, second)).toContain('All groups today: $0.01 of $0.01 spent');
    const { day, budget } = await user.json<{ day?: object; budget?: { day: object } }>('group', word, second);
    expect(day ?? budget?.day).toEqual({ capUsd: 0.015, spentUsd: 0.01, othersReservedUsd: 0 });
  }
  await user.ok('config', 'set', 'budget.day', '0.01');
  expect(await user.ok('plan', second)).toContain('spent; nothing starts before midnight unless you raise the cap');
  expect(await user.ok('config', 'set', 'budget.day', '+5')).toBe('5.01');
  const again = user.start('group', 'resume', second, '--output', 'quiet');
  await (await user.begun(second, 'web')).succeed();
  expect((await again.finished).code).toBe(0);
  expect(await user.ok('config', 'set', 'budget.day', '')).toBe('');
  expect((await user.run('config', 'set', 'budget.day', '+5')).stderr).toContain('no daily cap to add to');
}, 60_000);

test('run --if-idle starts nothing while a group of the same workflow has not ended', async () => {
  const file = join(user.folder, 'nightly.yaml');
  writeFileSync(
    file,
    `version: 1\nsessions: { a: { project: ${JSON.stringify(user.project('api'))}, prompt: Do it. } }\n`,
  );
  const group = await user.ok('group', 'create', 'nightly', '--from', file);
  expect(await user.run('run', file, '--if-idle')).toEqual({
    code: 0,
    stdout: '',
    stderr: `Nothing was started: ${group}, of the same workflow, is created.\n`,
  });
  const plan = await user.json<{ waves: string[][] }>('run', file, '--dry-run', '--rehearse', '--json');
  expect(plan.waves.flat()).toHaveLength(1);
  await user.ok('group', 'delete', group, '--force');
  const run = await user.run('run', file, '--if-idle', '--rehearse', '--output', 'quiet');
  expect(run.stderr).toMatch(/^Created group .*-nightly\n$/);
  expect(await user.json('ls')).toHaveLength(1);
}, 60_000);
