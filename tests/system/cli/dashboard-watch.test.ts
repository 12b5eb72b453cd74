/**
 * Promises, in a real terminal: a dashboard opened before, during or after a run shows the same as any other. Its keys
 * send requests to the runner, it outlives the runner, and the terminal is restored however it ends.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { nightUser, sayCost, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';
import { key, type TerminalWish, TestTerminal } from '../../support/terminal.ts';

let terminals: TestTerminal[];
afterEach(() => {
  for (const terminal of terminals) terminal.close();
});
withNight();
beforeEach(() => {
  terminals = [];
});

function open(command: readonly string[], { env, ...size }: Partial<TerminalWish> = {}): TestTerminal {
  const terminal = new TestTerminal(command, { cwd: nightUser.folder, env: { ...nightUser.env, ...env }, ...size });
  terminals.push(terminal);
  return terminal;
}

const watch = (group: string, wish?: Partial<TerminalWish>): TestTerminal =>
  open([launcher, 'group', 'watch', group], wish);

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

/** The part of a row that does not change with time. */
const row = (terminal: TestTerminal, name: string): string =>
  terminal.lines().find((line) => line.includes(name)) ?? '';

test('before, during and after a run, two dashboards show the same', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const first = watch(group);
  await first.shows('created', 'Not started yet', '001 api', '└ 002 web', 'waits for 001 api');
  expect({ isAlternate: first.isAlternate, isCooked: first.isCooked }).toEqual({ isAlternate: true, isCooked: false });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await first.shows('running', '● 1 running');
  const second = watch(group, { columns: 99, rows: 30 });
  await second.shows('● 1 running', '002 web');
  const content = [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make all' } }];
  await api.print({ type: 'assistant', message: { id: 'm1', model: 'claude-opus-4-8', content } });
  await Promise.all([first.shows('make all'), second.shows('make all')]);
  await api.succeed(0.25);
  await (await nightUser.begun(group, 'web')).succeed(0.5);
  expect((await run.finished).code).toBe(0);
  const late = watch(group);
  for (const terminal of [first, second, late]) {
    await terminal.shows('completed', '$0.75', '2/2');
    expect(row(terminal, '001 api')).toContain('✓');
    expect(row(terminal, '001 api')).toContain('$0.25');
    terminal.type('q');
    expect(await terminal.exited).toBe(0);
    expectRestored(terminal);
    expect(terminal.text()).toContain('2 of 2 sessions completed');
  }
}, 60_000);

test('keys pause, resume, message and retry a session', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  const terminal = watch(group, { columns: 120 });
  await terminal.shows('● 2 running');
  terminal.type('p');
  await obeyInterrupt(api, 0.01);
  await terminal.shows('‖ 1 paused');
  terminal.type('p');
  const again = await nightUser.begun(group, 'api');
  await terminal.shows('● 2 running');
  terminal.type('s');
  await terminal.shows('message to 001 api:');
  terminal.type('Use the staging database.');
  await terminal.shows('message to 001 api: Use the staging database.');
  terminal.type(key.enter);
  expect(await again.prompt()).toContain('Use the staging database.');
  await terminal.shows('Message sent to 001 api.');
  terminal.type('l');
  await terminal.shows('== attempt 1 paused (user)', '== attempt 2 resumed', '« Use the staging database.');
  terminal.type('q');
  await terminal.shows('SESSION');
  await again.print(resultLine(0.01, { is_error: true, result: 'It went wrong.' }));
  await terminal.shows('✗ 1 failed');
  terminal.type('r');
  const third = await nightUser.begun(group, 'api');
  await terminal.shows('● 2 running');
  terminal.type('Py');
  await terminal.shows('Pausing the group…');
  await Promise.all([obeyInterrupt(third, 0.01), obeyInterrupt(web, 0.01)]);
  await terminal.shows('auth  paused', '‖ 2 paused', 'The group is paused.');
  // Its runner ended with the pause: it resumes with a runner started by the dashboard.
  await run.finished;
  terminal.type('P');
  const last = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await terminal.shows('● 2 running', 'its own runner');
  for (const fake of last) await fake.succeed(0.01);
  await terminal.shows('completed', '✓ 2/2');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
}, 60_000);

test('when a run has ended, the failed session is selected, and one key retries it', async () => {
  const group = await nightUser.group('auth', { api: [], web: [] });
  const run = nightUser.start('group', 'run', group, '--no-warm-cache', '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  const terminal = watch(group, { columns: 120 });
  await web.print(resultLine(0.01, { is_error: true, result: 'It went wrong.' }));
  await api.succeed(0.01);
  await run.finished;
  await terminal.shows('auth  failed', '›✗  002 web', 'r retry');
  terminal.type('r');
  const again = await nightUser.begun(group, 'web');
  await terminal.shows('● 1 running', 'its own runner');
  await again.succeed(0.01);
  await terminal.shows('completed', '✓ 2/2');
}, 60_000);

test('one key pauses all marked sessions and resumes them', async () => {
  const group = await nightUser.group('auth', { api: [], web: [], docs: [] });
  nightUser.start('group', 'run', group, '--no-warm-cache', '--output', 'quiet');
  const [api, web, docs] = await Promise.all(['api', 'web', 'docs'].map((name) => nightUser.begun(group, name)));
  const terminal = watch(group);
  await terminal.shows('● 3 running');
  terminal.type('  ');
  await terminal.shows('◆●  001 api', '◆●  002 web', '2 marked');
  terminal.type('p');
  for (const fake of [api, web]) if (fake !== undefined) await obeyInterrupt(fake, 0.01);
  await terminal.shows('● 1 running', '‖ 2 paused', '2 sessions are being paused');
  terminal.type('p');
  const again = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await terminal.shows('● 3 running');
  for (const fake of [...again, docs]) await fake?.succeed(0.01);
  await terminal.shows('completed', '✓ 3/3');
}, 60_000);

test('when the runner dies, the dashboard reports it and follows the next one', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await sayCost(api, 0.2);
  const terminal = watch(group, { columns: 120 });
  await terminal.shows('● 1 running', '$0.20 spent');
  run.kill('SIGKILL');
  await terminal.shows(`runner gone: claude-code-agent group run ${group}`, 'interrupted');
  // It continues and spends without a runner.
  await sayCost(api, 0.3);
  await terminal.shows('$0.30 spent');
  terminal.type('p');
  await terminal.shows('The group has no runner. Press P to resume it');
  terminal.type('P');
  await terminal.shows('Resume it (y), or pause what still works (p)?');
  terminal.type('y');
  await nightUser.event(group, 'session_adopted');
  await terminal.until((text) => !text.includes('runner gone') && text.includes('its own runner'));
  await api.succeed(0.1);
  await terminal.shows('completed', '1/1');
}, 60_000);

describe('the terminal is restored', () => {
  test.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)(
    'on %s, which still ends the program',
    async (signal) => {
      const group = await nightUser.group('auth', { api: [] });
      const terminal = watch(group);
      await terminal.shows('001 api');
      terminal.kill(signal);
      await terminal.exited;
      expect(terminal.signalCode).toBe(signal);
      expectRestored(terminal);
    },
    60_000,
  );

  test('when the group is deleted', async () => {
    const group = await nightUser.group('auth', { api: [] });
    const terminal = watch(group);
    await terminal.shows('001 api');
    rmSync(join(nightUser.data, 'session-groups', group), { recursive: true });
    expect(await terminal.exited).toBe(1);
    expectRestored(terminal);
    expect(terminal.text()).toContain('The group was deleted.');
  }, 60_000);

  test('after an uncaught exception', async () => {
    const program = join(import.meta.dir, '../../support/broken-screen.ts');
    const terminal = open([process.execPath, '--no-install', program]);
    await terminal.shows('It is about to break.');
    terminal.type('x');
    expect(await terminal.exited).not.toBe(0);
    expectRestored(terminal);
    expect(terminal.text()).toContain('it broke');
  }, 60_000);

  test('while Ctrl-Z has suspended it', async () => {
    const group = await nightUser.group('auth', { api: [] });
    const watching = `'${launcher}' group watch ${group}`;
    // In both cases the cursor is not at a line start. The shell waits until its output was read.
    const [before, after] = ['printf "typed ahead"', 'printf "half a line"'];
    const stopped = 'echo "stopped with $?"; read -r line';
    const script = `set -m; ${before}; ${watching}; ${stopped}; ${after}; fg >/dev/null; echo over; read -r line`;
    const terminal = open(['/bin/bash', '--norc', '-c', script]);
    await terminal.shows('001 api');
    expect(terminal.lines()[0]).toStartWith('╭─ auth  created');
    terminal.type(key.ctrlZ);
    await terminal.shows('stopped with 148');
    const { isAlternate, isCooked, wraps, tracksMouse } = terminal;
    expect({ isAlternate, isCooked, wraps, tracksMouse }).toEqual({
      tracksMouse: false,
      isAlternate: false,
      isCooked: true,
      wraps: true,
    });
    terminal.type('go on\n');
    await terminal.until((text) => text.includes('001 api') && terminal.isAlternate);
    expect(terminal.lines()[0]).toStartWith('╭─ auth  created');
    terminal.type(`${key.enter}`);
    await terminal.shows('[now]');
    terminal.type('q');
    await terminal.shows('over');
    expectRestored(terminal);
  }, 60_000);
});

test('NO_COLOR removes colours, and a locale without Unicode its symbols', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const plain = watch(group, { env: { NO_COLOR: '1' } });
  const ascii = watch(group, { env: { LC_ALL: 'C' } });
  await Promise.all([plain.shows('└ 002 web'), ascii.shows('` 002 web')]);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding escape codes is what this is for.
  expect(plain.raw).not.toMatch(/\u001b\[(?:3\d|4\d|9\d|10\d)[;m]/);
  expect(ascii.text()).toMatch(/^[\n -~]*$/);
}, 60_000);

test('without a suitable terminal there are plain lines, from before the run until its end', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const watchers = [{ TERM: 'dumb' }, { CI: 'true' }].map((env) => watch(group, { env }));
  for (const lines of watchers) await lines.shows('Waiting for the group to start');
  const log = open([launcher, 'session', 'logs', `${group}/api`, '--follow']);
  await log.shows('Waiting for session 001 api to start');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  await api.succeed(0.1, 'All is well.');
  expect((await run.finished).code).toBe(0);
  for (const lines of watchers) {
    expect(await lines.exited).toBe(0);
    expect(lines.raw).not.toContain('\u001b[?1049h');
    expect(lines.text()).toContain('001 api  completed');
  }
  expect(await log.exited).toBe(0);
  expect(log.text()).toContain('== attempt 1 completed');
}, 60_000);

test('a terminal that cannot show a dashboard gets no query', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const dumb = open([launcher, 'group', 'watch', group, '--output', 'tui'], { env: { TERM: 'dumb' } });
  expect(await dumb.exited).toBe(2);
  expect(await nightUser.run('group', 'watch', group, '--output', 'tui')).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('standard output is not a terminal'),
  });
}, 60_000);
