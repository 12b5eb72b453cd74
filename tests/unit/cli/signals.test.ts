/**
 * Promises: signals sent at once to a program and to its process group count as one stop request, a later signal is a
 * second one, and a closed terminal is always noticed. `nohup` is tested with runs.
 */
import { afterEach, expect, test } from 'bun:test';
import { onSignal } from '../../../src/app/signals.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock = new FakeClock();
let heard: string[] = [];
let end = () => {};
afterEach(() => end());

function listen(): void {
  clock = new FakeClock();
  heard = [];
  end = onSignal(clock, (signal) => heard.push(`${signal} ${clock.now()}`));
}

function send(atMs: number, signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
  clock.pass(atMs - clock.now());
  process.emit(signal, signal);
}

test('two signals at once are one stop request, whichever they are', () => {
  listen();
  send(5, 'SIGTERM');
  send(5, 'SIGTERM');
  send(204, 'SIGINT');
  expect(heard).toEqual(['SIGTERM 5']);
});

test('a later signal is a second stop request', () => {
  listen();
  send(5, 'SIGINT');
  send(205, 'SIGINT');
  expect(heard).toEqual(['SIGINT 5', 'SIGINT 205']);
});

test('a closed terminal is noticed right after a stop request, and is not one', () => {
  listen();
  send(5, 'SIGINT');
  send(6, 'SIGHUP');
  send(7, 'SIGTERM');
  expect(heard).toEqual(['SIGINT 5', 'SIGHUP 6']);
});

test('removing the signal listener leaves no timer that keeps the process alive', () => {
  listen();
  send(5, 'SIGINT');
  end();
  expect(clock.waiting).toBe(0);
});
