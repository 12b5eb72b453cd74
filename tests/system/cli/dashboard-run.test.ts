/**
 * Promises, in a real terminal: `group run` shows the dashboard in its own process, ends with the summary, pauses and
 * detaches on keys and signals, and can hand the group to another runner. Workers are not affected.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lives, nightUser, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

let terminals: TestTerminal[];
afterEach(() => {
  for (const terminal of terminals) terminal.close();
});
withNight();
beforeEach(() => {
  terminals = [];
});

function run(group: string, ...options: string[]): TestTerminal {
  const env = { ...nightUser.env, DEV: 'true' };
  const terminal = new TestTerminal([launcher, 'group', 'run', group, ...options], { cwd: nightUser.folder, env });
  terminals.push(terminal);
  return terminal;
}

function expectRestored(terminal: TestTerminal): void {
  const { isAlternate, isCooked, wraps, showsCursor, tracksMouse } = terminal;
  expect({ isAlternate, isCooked, wraps, showsCursor, tracksMouse }).toEqual({
    tracksMouse: false,
    isAlternate: false,
    isCooked: true,
    wraps: true,
    showsCursor: true,
  });
}

test('the dashboard shows the run, ends with it, and leaves the summary on the screen', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running', '└ 002 web', 'waits for 001 api');
  expect(terminal.isAlternate).toBe(true);
  // Variables of the drawing library are not passed on; the user's are.
  expect([api.hello.env.NODE_ENV, api.hello.env.DEV]).toEqual([undefined, 'true']);
  await api.succeed(0.25);
  const web = await nightUser.begun(group, 'web');
  await terminal.shows('✓ 1/2 done', '$0.25');
  await web.succeed(0.5);
  expect(await terminal.exited).toBe(0);
  expectRestored(terminal);
  expect(terminal.text()).toContain('2 of 2 sessions completed, $0.75');
}, 60_000);

test('Ctrl-C pauses all sessions, and the exit code reports it', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.type(key.ctrlC);
  await terminal.shows('pausing (signal): 1 session left');
  await obeyInterrupt(api, 0.01);
  expect(await terminal.exited).toBe(3);
  expectRestored(terminal);
  expect(terminal.text()).toContain('group resume');
}, 60_000);

test('Ctrl-C twice exits at once, and the sessions continue without a runner', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const terminal = run(group);
  await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.type(key.ctrlC);
  await terminal.shows('pausing (signal)');
  terminal.type(key.ctrlC);
  expect(await terminal.exited).toBe(130);
  expectRestored(terminal);
  const printed = terminal.text().replaceAll(/\s+/g, ' ');
  expect(printed.split(`group run ${group}`)).toHaveLength(2);
  expect(printed).toContain(`Return with: claude-code-agent group run ${group}`);
}, 60_000);

test('q asks what to do: Escape keeps the dashboard open, and p pauses', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.type('q');
  await terminal.shows('Leave the sessions running (l), or pause them (p)?');
  terminal.type(key.escape);
  await terminal.until((text) => !text.includes('Leave the sessions'));
  terminal.type('q');
  await terminal.shows('Leave the sessions');
  terminal.type('p');
  await obeyInterrupt(api, 0.01);
  expect(await terminal.exited).toBe(3);
  expectRestored(terminal);
}, 60_000);

test('q and then l detaches: a runner without a terminal finishes the group', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.type('q');
  await terminal.shows('Leave the sessions');
  terminal.type('l');
  expect(await terminal.exited).toBe(0);
  expectRestored(terminal);
  expect(terminal.text()).toContain(`group watch ${group}`);
  expect(lives(api)).toBe(true);
  await api.succeed(0.1);
  await (await nightUser.begun(group, 'web')).succeed(0.2);
  await nightUser.event(group, 'group_completed');
}, 60_000);

test('closing the terminal ends the runner but not the sessions', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.kill('SIGHUP');
  expect(await terminal.exited).toBe(130);
  expectRestored(terminal);
  expect(lives(api)).toBe(true);
  const next = nightUser.start('group', 'run', group, '--output', 'quiet');
  await nightUser.event(group, 'session_adopted');
  await api.succeed(0.1);
  expect((await next.finished).code).toBe(0);
}, 60_000);

test('SIGTERM pauses, and the dashboard stays open until that is done', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const terminal = run(group);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running');
  terminal.kill('SIGTERM');
  await terminal.shows('pausing (signal): 1 session left');
  await obeyInterrupt(api, 0.01);
  expect(await terminal.exited).toBe(3);
  expectRestored(terminal);
}, 60_000);

test('when drawing fails, the screen is restored and the run continues with plain lines', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const file = join(nightUser.folder, 'break');
  const env = { ...nightUser.env, TEST_BREAK: file };
  const program = join(import.meta.dir, '../../support/broken-dashboard.ts');
  const command = [process.execPath, '--no-install', program, 'group', 'run', group];
  const terminal = new TestTerminal(command, { cwd: nightUser.folder, env, columns: 120 });
  terminals.push(terminal);
  const api = await nightUser.begun(group, 'api');
  await terminal.shows('● 1 running', '└ 002 web');
  writeFileSync(file, '');
  await terminal.shows('The dashboard failed and was closed; the run continues: drawing broke');
  expectRestored(terminal);
  await api.succeed(0.25);
  await terminal.shows('001 api  completed');
  await (await nightUser.begun(group, 'web')).succeed(0.5);
  expect(await terminal.exited).toBe(0);
  expect(terminal.text()).toContain('2 of 2 sessions completed, $0.75');
  expectRestored(terminal);
}, 60_000);

test('a refused run draws nothing', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const first = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const second = run(group);
  expect(await second.exited).toBe(4);
  expect(second.raw).not.toContain('\u001b[?1049h');
  await api.succeed(0.1);
  expect((await first.finished).code).toBe(0);
}, 60_000);
