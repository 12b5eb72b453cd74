/**
 * Promises: a command of the user's has ended when nothing of it lives any more, however that hid; it fails when it
 * takes too long or prints without end, and its log stays of a size that a disk can bear.
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

test('the exit code, the end of what was printed, and the log', async () => {
  expect(await run('echo first')).toMatchObject({ ok: true, exitCode: 0, tail: 'first' });
  const failed = await run('echo second; echo trouble >&2; exit 7');
  expect(failed).toEqual({ ok: false, exitCode: 7, timedOut: false, printedTooMuch: false, tail: 'second\ntrouble' });
  expect(readFileSync(logFile, 'utf8')).toContain('first\n$ echo second');
});

test('a command that ends itself by a signal has no exit code', async () => {
  expect(await run('kill -KILL $$')).toMatchObject({ ok: false, exitCode: null, timedOut: false });
  expect(await run('kill -TERM $$')).toMatchObject({ ok: false, exitCode: null, timedOut: false });
});

/** Sleeps for a time of its own, by which it is known. */
const sleeper = () => {
  const text = `sleep 4${Math.trunc(Math.random() * 1e9)}`;
  return { text, script: `: > there; exec ${text}` };
};
/** A process that escaped would otherwise outlive the tests. */
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
  ['deaf to what is polite', (script: string) => `(env -i setsid sh -c 'trap "" TERM HUP INT; ${script}' &)`],
])('what is left running %s is ended', async (_how, commandOf) => {
  const { text, script } = sleeper();
  const end = await run(`${commandOf(script)}\n${untilThere}; exit 5`);
  expect(end).toMatchObject({ ok: false, exitCode: 5 });
  expectNone(text);
  // Also when the command is over before anybody can look what it began.
  for (let round = 0; round < rounds; round += 1) {
    expect(await run(commandOf(script))).toMatchObject({ ok: true, exitCode: 0 });
    expectNone(text);
  }
});

test.skipIf(process.platform !== 'linux')('a command that is stopped has failed, and nothing of it lives', async () => {
  const { text, script } = sleeper();
  const running = start(`(env -i setsid sh -c '${script}' &) ; ${text}`);
  await until(() => existsSync(join(folder, 'there')));
  running.stop();
  expect(await running.ended).toMatchObject({ ok: false, timedOut: false });
  expectNone(text);
});

test('a command that takes too long', async () => {
  expect(await run('echo begun; sleep 4343', { timeoutMs: 1_500 })).toMatchObject({
    ok: false,
    timedOut: true,
    printedTooMuch: false,
    tail: 'begun',
  });
});

test('a command that prints without end is ended, and its log is cut', async () => {
  expect(await run('echo before')).toMatchObject({ ok: true });
  const before = statSync(logFile).size;
  const end = await run('yes');
  expect(end).toMatchObject({ ok: false, timedOut: false, printedTooMuch: true });
  expect(end.tail).toMatch(/^(?:y\n)+y?$/);
  const size = statSync(logFile).size;
  expect(size).toBeGreaterThan(before + 64 * mebibyte);
  expect(size).toBeLessThan(before + 64 * mebibyte + 1_000);
  // What was printed before does not count against the next one.
  expect(await run('echo again')).toMatchObject({ ok: true, tail: 'again' });
});

test('what cannot be started has failed with a reason', async () => {
  const end = await run('true', { cwd: join(folder, 'nowhere') });
  expect(end).toMatchObject({ ok: false, exitCode: null, timedOut: false, printedTooMuch: false });
  expect(end.tail).toContain('nowhere');
});
