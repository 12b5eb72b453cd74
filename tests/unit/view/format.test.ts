/** Promises: figures are formatted for people, columns by terminal width, and text without control characters. */
import { expect, test } from 'bun:test';
import {
  colourStyle,
  fitMoney,
  formatCount,
  formatDuration,
  formatMoney,
  formatTable,
  formatTokens,
  plainStyle,
} from '../../../src/view/format.ts';
import { fitColumns, safeLine, safeText } from '../../../src/view/terminal-text.ts';

test.each([
  [0, '$0.00'],
  [0.0042, '$0.0042'],
  [0.25, '$0.25'],
  [1234.5, '$1234.50'],
])('the amount of %d dollars is formatted', (usd, text) => expect(formatMoney(usd)).toBe(text));

test('an estimated amount is marked with ~', () => expect(formatMoney(0.5, true)).toBe('~$0.50'));

test.each([
  [0.005, true, '~<$0.01'],
  [0.008, false, '<$0.01'],
  [999.5, true, '~$1000'],
  [1234.5, false, '$1235'],
  [1_234_567, true, '~$1.2M'],
] as const)('the amount of %d dollars fits seven columns', (usd, estimated, text) =>
  expect(fitMoney(usd, estimated, 7)).toBe(text),
);

test.each([
  [0, '0'],
  [999, '999'],
  [1000, '1.0k'],
  [9949, '9.9k'],
  [9960, '10k'],
  [34_400, '34k'],
  [999_499, '999k'],
  [999_500, '1.0M'],
  [12_345_678, '12M'],
])('the count %d is formatted', (count, text) => expect(formatCount(count)).toBe(text));

test.each([
  [-5, '0s'],
  [59_499, '59s'],
  [59_600, '1m 00s'],
  [65_000, '1m 05s'],
  [3_599_600, '1h 00m'],
  [7_380_000, '2h 03m'],
  [100_800_000, '1d 04h'],
])('the duration of %d ms is formatted', (ms, text) => expect(formatDuration(ms)).toBe(text));

test('cached input counts as input', () => {
  expect(formatTokens({ input: 1, output: 2, cacheRead: 1000, cacheCreation: 99 })).toBe('1.1k in, 2 out');
});

test('a table aligns by terminal columns, drops empty columns, and styles only words', () => {
  const columns = [{ title: 'NAME' }, { title: 'EMPTY' }, { title: 'N', align: 'right' }] as const;
  const rows = [
    ['日本', '', '1'],
    [{ text: 'abc', tone: 'good' }, '', '22'],
  ] as const;
  expect(formatTable(columns, rows, plainStyle)).toEqual(['NAME   N', '日本   1', 'abc   22']);
  expect(formatTable(columns, rows, colourStyle)[2]).toBe('\u001b[32mabc\u001b[39m   22');
});

test('control sequences are removed from text completely, and wanted line breaks stay', () => {
  expect(safeText('a\u001b[31mred\u001b[0m\tb\r\nc\u0000')).toBe('ared\tb\nc');
  expect(safeText('x\u001b]0;title')).toBe('x');
  expect(safeLine('  one\n\ttwo \u009b31m three\u202e ', 80)).toBe('one two three');
});

test('lines are cut by terminal columns, never inside a wide character', () => {
  expect(fitColumns('abcdef', 4)).toBe('abc…');
  expect(Bun.stringWidth(fitColumns('日本語日本語', 6))).toBeLessThanOrEqual(6);
  expect(fitColumns('abc', 3)).toBe('abc');
});

test('a table that is too wide omits the least important columns first', () => {
  const columns = [{ title: 'A' }, { title: 'B', spare: 1 }, { title: 'C', spare: 2 }] as const;
  const rows = [['one', 'two', 'three']];
  const shown = (columnsMax: number) => formatTable(columns, rows, plainStyle, columnsMax)[1];
  expect([15, 14, 8, 7, 1].map(shown)).toEqual(['one  two  three', 'one  two', 'one  two', 'one', 'one']);
});
