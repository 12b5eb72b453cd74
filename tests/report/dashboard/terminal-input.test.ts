/** Promises: reports of the mouse are told once, wherever they are cut, and nothing of them is taken for typed text. */
import { expect, test } from 'bun:test';
import type { MousePress } from '../../../src/report/dashboard/keys.ts';
import { Reports } from '../../../src/report/dashboard/terminal-input.ts';

function taken(...chunks: string[]) {
  const told: MousePress[] = [];
  const reports = new Reports((press) => told.push(press));
  return { typed: chunks.map((chunk) => reports.take(chunk)), told };
}

test('a click and the wheel, between keys', () => {
  const { typed, told } = taken('j\u001b[<0;12;3M\u001b[<0;12;3mk', '\u001b[<64;1;1M', '\u001b[<65;200;90Mx');
  expect(typed).toEqual(['jk', '', 'x']);
  expect(told).toEqual([
    { mouse: 'click', x: 11, y: 2 },
    { mouse: 'wheel-up', x: 0, y: 0 },
    { mouse: 'wheel-down', x: 199, y: 89 },
  ]);
});

test('other buttons and buttons with a key held down mean nothing', () => {
  expect(taken('\u001b[<2;1;1M\u001b[<16;1;1M\u001b[<1;1;1M')).toEqual({ typed: [''], told: [] });
});

test('wherever a report is cut, it is put together', () => {
  const report = '\u001b[<0;12;3M';
  // Before that it may be any other key.
  for (let at = 3; at < report.length; at += 1) {
    const { typed, told } = taken(report.slice(0, at), `${report.slice(at)}j`);
    expect(typed.join('')).toBe('j');
    expect(told).toHaveLength(1);
  }
});

test('keys that begin alike stay what they are', () => {
  const keys = ['\u001b', '\u001b[A', '\u001b[', '\u001b[<x', '<0;1;1M'];
  expect(taken(...keys)).toEqual({ typed: keys, told: [] });
});
