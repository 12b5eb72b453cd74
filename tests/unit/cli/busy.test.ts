/**
 * Promises: work that takes longer than a second shows one line on a terminal, which disappears at its end or before
 * other output.
 */
import { expect, test } from 'bun:test';
import type { WriteStream } from 'node:tty';
import { Terminal } from '@xterm/headless';
import { whileBusy } from '../../../src/app/live-runner.ts';
import { createOutput } from '../../../src/cli/output.ts';
import type { World } from '../../../src/system/world.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function steppedClock() {
  const clock = new FakeClock();
  return { world: { clock } as unknown as World, pass: (ms: number) => clock.pass(ms), waiting: () => clock.waiting };
}

function terminal(isTTY: boolean, env: Record<string, string> = {}) {
  const screen = new Terminal({ cols: 40, rows: 6, allowProposedApi: true, convertEol: true });
  let written = '';
  const stream = {
    ...{ isTTY, columns: 40, on: () => {} },
    write(data: string | Uint8Array, done: () => void) {
      written += data.toString();
      done();
      return true;
    },
  } as unknown as WriteStream;
  const rows = async (): Promise<string[]> => {
    await new Promise<void>((resolve) => screen.write(written, resolve));
    written = '';
    return [0, 1, 2].map((row) => screen.buffer.active.getLine(row)?.translateToString(true) ?? '');
  };
  return { output: createOutput(stream, env), rows, written: () => written };
}

test('a progress line appears after a second, is updated, and disappears', async () => {
  const { world, pass, waiting } = steppedClock();
  const { output: stderr, rows } = terminal(true);
  const { promise, resolve } = Promise.withResolvers<string>();
  let say = (_text: string): void => {};
  const work = whileBusy({ world, notes: stderr }, 'Fetching \u001b[31mhttps://example.org', (tell) => {
    say = tell;
    return promise;
  });
  pass(999);
  expect(await rows()).toEqual(['', '', '']);
  pass(1);
  expect(await rows()).toEqual(['Fetching https://example.org (1s)', '', '']);
  say('Removing worktree 3 of 20, which has a name of many words');
  pass(1000);
  expect(await rows()).toEqual(['Removing worktree 3 of 20, which has a…', '', '']);
  stderr.line('Something to read.');
  expect(await rows()).toEqual(['Something to read.', '', '']);
  pass(1000);
  expect((await rows())[1]).toStartWith('Removing worktree');
  resolve('value');
  expect(await work).toBe('value');
  expect(await rows()).toEqual(['Something to read.', '', '']);
  expect(waiting()).toBe(0);
});

test('a failure also removes the progress line', async () => {
  const { world, pass } = steppedClock();
  const { output: stderr, rows } = terminal(true);
  const { promise, reject } = Promise.withResolvers<void>();
  const work = whileBusy({ world, notes: stderr }, 'Working', () => promise);
  pass(1000);
  expect((await rows())[0]).toBe('Working (1s)');
  reject(new Error('no'));
  expect(work).rejects.toThrow('no');
  await work.catch(() => {});
  expect(await rows()).toEqual(['', '', '']);
});

test('no progress line is shown for short work, or without a terminal that can remove it', async () => {
  for (const { written, output: stderr } of [terminal(false), terminal(true, { TERM: 'dumb' })]) {
    const { world, pass } = steppedClock();
    const { promise, resolve } = Promise.withResolvers<void>();
    const work = whileBusy({ world, notes: stderr }, 'Working', () => promise);
    pass(5000);
    resolve();
    await work;
    expect(written()).toBe('');
  }
  const { world } = steppedClock();
  const { output: stderr, written } = terminal(true);
  await whileBusy({ world, notes: stderr }, 'Working', async () => {});
  expect(written()).toBe('');
});
