/** Promises: for a session that was not accepted, the failed command, its exit code and its output are shown. */
import { expect, test } from 'bun:test';
import { nightUser, withNight } from '../../support/cli/night.ts';

withNight();

test('a session that was not accepted shows the command, its exit code and the end of its output', async () => {
  const accept = 'echo 1 failed; echo; echo "see \u001b[31mlog"; exit 3';
  const group = await nightUser.group('auth', { api: ['--accept', accept, '--accept-retries', '0'] });
  const run = nightUser.start('group', 'run', group, '--output', 'text');
  await (await nightUser.begun(group, 'api')).succeed();
  const { stdout } = await run.finished;
  const sentence = 'failed (exit 3): 1 failed.';
  expect(stdout).toContain('The acceptance command `echo 1 failed; echo; echo "see log"; exit 3` ');
  expect(stdout).toContain(sentence);
  const shown = await nightUser.ok('session', 'show', `${group}/api`);
  expect(shown).toContain(sentence);
  expect(shown).toContain('Last output of the acceptance command:\n1 failed\n\nsee log');
}, 60_000);

test('the duration of a session includes setup and acceptance, which its details list', async () => {
  const group = await nightUser.group('auth', { api: ['--accept', 'sleep 1.1'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await (await nightUser.begun(group, 'api')).succeed();
  expect((await run.finished).code).toBe(0);
  const at = (type: string) => Date.parse(nightUser.events(group).find((event) => event.type === type)?.at ?? '');
  const seconds = Math.round((at('session_completed') - at('session_starting')) / 1000);
  const shown = await nightUser.ok('session', 'show', `${group}/api`);
  expect(shown).toMatch(new RegExp(`^Time: ${seconds}s \\(claude \\d+s, (?:set-up \\d+s, )?acceptance \\d+s\\)$`, 'm'));
  expect(await nightUser.ok('session', 'list', group)).toMatch(new RegExp(` 1 +${seconds}s `));
}, 60_000);
