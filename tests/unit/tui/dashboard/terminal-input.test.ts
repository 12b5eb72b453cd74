/** Promises: reports of the mouse are parsed once, wherever they are split, and never become typed text. */
import { expect, test } from 'bun:test';
import type { MousePress } from '../../../../src/tui/dashboard/keys.ts';
import { MouseReports } from '../../../../src/tui/dashboard/terminal-input.ts';

function taken(...chunks: string[]) {
  const told: MousePress[] = [];
  const reports = new MouseReports((press) => told.push(press));
  return { typed: chunks.map((chunk) => reports.take(chunk)), told };
}

test('a click and the wheel are parsed between keys', () => {
  const { typed, told } = taken('j\u001b[<0;12;3M\u001b[<0;12;3mk', '\u001b[<64;1;1M', '\u001b[<65;200;90Mx');
  expect(typed).toEqual(['jk', '', 'x']);
  expect(told).toEqual([
    { mouse: 'click', x: 11, y: 2 },
    { mouse: 'wheel-up', x: 0, y: 0 },
    { mouse: 'wheel-down', x: 199, y: 89 },
  ]);
});

test('other buttons and buttons with modifiers are ignored', () => {
  expect(taken('\u001b[<2;1;1M\u001b[<16;1;1M\u001b[<1;1;1M')).toEqual({ typed: [''], told: [] });
});

test('a click is parsed wherever it is split', () => {
  const report = '\u001b[<0;12;3M';
  // The part before could be any other key.
  for (let at = 3; at < report.length; at += 1) {
    const { typed, told } = taken(report.slice(0, at), `${report.slice(at)}j`);
    expect(typed.join('')).toBe('j');
    expect(told).toHaveLength(1);
  }
});

test('keys with the same prefix are not confused', () => {
  const keys = ['\u001b', '\u001b[A', '\u001b[', '\u001b[<x', '<0;1;1M', '\u001b]', '\u001b]2;x\u0007'];
  expect(taken(...keys)).toEqual({ typed: keys, told: [] });
});
