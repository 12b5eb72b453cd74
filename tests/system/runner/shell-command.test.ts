/**
 * Promises: a user's command has ended only when none of its processes is left, however they hide. It fails when it
 * exceeds its timeout or its output limit, and its log has a bounded size.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { runShellCommand, type ShellCommand } from '../../../src/worker/shell-command.ts';
import { until } from '../../support/cli.ts';
import { kill } from '../../support/kill.ts';
import { isLongRun } from '../../support/long.ts';

const world = createRealWorld();
const mebibyte = 1024 * 1024;
let folder: string;
let logFile: string;
let mark: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cca shell's "));
  logFile = join(folder, 'accept.log');
  mark = crypto.randomUUID();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const start = (command: string, fields: Partial<ShellCommand> = {}) =>
  runShellCommand(world, {
    command,
    cwd: folder,
    env: { PATH: process.env.PATH ?? '' },
    logFile,
    timeoutMs: 60_000,
    mark,
    ...fields,
  });
const run = (command: string, fields: Partial<ShellCommand> = {}) => start(command, fields).ended;

/** Pids of all processes whose command line holds the text. */
const withText = (text: string): number[] =>
  readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });

test('a command gives its exit code, the end of its output, and a log', async () => {
  expect(await run('echo first')).toMatchObject({ ok: true, exitCode: 0, tail: 'first' });
  const failed = await run('echo second; echo trouble >&2; exit 7');
  expect(failed).toEqual({ ok: false, exitCode: 7, timedOut: false, printedTooMuch: false, tail: 'second\ntrouble' });
  expect(readFileSync(logFile, 'utf8')).toContain('first\n$ echo second');
});

test('a command ended by its own signal has no exit code', async () => {
  expect(await run('kill -KILL $$')).toMatchObject({ ok: false, exitCode: null, timedOut: false });
  expect(await run('kill -TERM $$')).toMatchObject({ ok: false, exitCode: null, timedOut: false });
});

/** Sleeps for a unique duration, by which it is found. */
const sleeper = () => {
  const text = `sleep 4${Math.trunc(Math.random() * 1e9)}`;
  return { text, script: `: > there; exec ${text}` };
};
/** Otherwise an escaped process would outlive the tests. */
const expectNone = (text: string): void => {
  const left = withText(text);
  for (const pid of left) kill(pid);
  expect(left).toEqual([]);
};
const untilThere = 'until [ -e there ]; do sleep 0.01; done';
const rounds = isLongRun ? 100 : 5;

test.skipIf(process.platform !== 'linux').each([
  ['in the background', (script: string) => `sh -c '${script}' &`],
  ['without environment and in a session of its own', (script: string) => `(env -i setsid sh -c '${script}' &)`],
  ['twice removed', (script: string) => `(env -i setsid sh -c "env -i setsid sh -c '${script}' &" &)`],
  ['ignoring SIGTERM', (script: string) => `(env -i setsid sh -c 'trap "" TERM HUP INT; ${script}' &)`],
])('a process left running %s is ended', async (_how, commandOf) => {
  const { text, script } = sleeper();
  const end = await run(`${commandOf(script)}\n${untilThere}; exit 5`);
  expect(end).toMatchObject({ ok: false, exitCode: 5 });
  expectNone(text);
  // Also when the command ends before its processes can be recorded.
  for (let round = 0; round < rounds; round += 1) {
    expect(await run(commandOf(script))).toMatchObject({ ok: true, exitCode: 0 });
    expectNone(text);
  }
});

test.skipIf(process.platform !== 'linux')('a stopped command fails and leaves no process', async () => {
  const { text, script } = sleeper();
  const running = start(`(env -i setsid sh -c '${script}' &) ; ${text}`);
  await until(() => existsSync(join(folder, 'there')));
  running.stop();
  expect(await running.ended).toMatchObject({ ok: false, timedOut: false });
  expectNone(text);
});

test('a command that exceeds its timeout is ended', async () => {
  expect(await run('echo begun; sleep 4343', { timeoutMs: 1_500 })).toMatchObject({
    ok: false,
    timedOut: true,
    printedTooMuch: false,
    tail: 'begun',
  });
});

test('a command with endless output is ended, and its log is truncated', async () => {
  expect(await run('echo before')).toMatchObject({ ok: true });
  const before = statSync(logFile).size;
  const end = await run('yes');
  expect(end).toMatchObject({ ok: false, timedOut: false, printedTooMuch: true });
  expect(end.tail).toMatch(/^(?:y\n)+y?$/);
  const size = statSync(logFile).size;
  expect(size).toBeGreaterThan(before + 64 * mebibyte);
  expect(size).toBeLessThan(before + 64 * mebibyte + 1_000);
  // Earlier output does not count against the next command.
  expect(await run('echo again')).toMatchObject({ ok: true, tail: 'again' });
});

test('a command that cannot be started fails with a reason', async () => {
  const end = await run('true', { cwd: join(folder, 'nowhere') });
  expect(end).toMatchObject({ ok: false, exitCode: null, timedOut: false, printedTooMuch: false });
  expect(end.tail).toContain('nowhere');
});
