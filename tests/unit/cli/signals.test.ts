/**
 * Promises of signals.ts: what is sent twice at once, to a program and to its process group, is one wish to stop; what
 * is sent again later is a second one; a closed terminal is always heard. Not covered: `nohup`, see the tests of runs.
 */
import { afterEach, expect, test } from 'bun:test';
import { onSignal } from '../../../src/app/signals.ts';
import { HandClock } from '../../support/hand-clock.ts';

let clock = new HandClock();
let heard: string[] = [];
let end = () => {};
afterEach(() => end());

function listen(): void {
  clock = new HandClock();
  heard = [];
  end = onSignal(clock, (signal) => heard.push(`${signal} ${clock.now()}`));
}

function send(atMs: number, signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
  clock.pass(atMs - clock.now());
  process.emit(signal, signal);
}

test('two signals at once are one wish to stop, whichever they are', () => {
  listen();
  send(5, 'SIGTERM');
  send(5, 'SIGTERM');
  send(204, 'SIGINT');
  expect(heard).toEqual(['SIGTERM 5']);
});

test('a signal later is a second wish', () => {
  listen();
  send(5, 'SIGINT');
  send(205, 'SIGINT');
  expect(heard).toEqual(['SIGINT 5', 'SIGINT 205']);
});

test('that the terminal was closed is heard although a wish came just before, and is none', () => {
  listen();
  send(5, 'SIGINT');
  send(6, 'SIGHUP');
  send(7, 'SIGTERM');
  expect(heard).toEqual(['SIGINT 5', 'SIGHUP 6']);
});

test('whoever ends listening leaves no timer that keeps the process from ending', () => {
  listen();
  send(5, 'SIGINT');
  end();
  expect(clock.waiting).toBe(0);
});
