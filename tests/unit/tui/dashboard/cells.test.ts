/**
 * Promises: foreign text becomes one harmless line of known width, styles do not change the width, and wrapping loses
 * no text.
 */
import { expect, test } from 'bun:test';
import {
  cellsOf,
  fitEnd,
  fitLine,
  padded,
  paintRow,
  plainRow,
  plainWidths,
  rowOf,
  type ScreenCell,
  wrapCells,
} from '../../../../src/tui/dashboard/cells.ts';
import { colourStyle, type Tone } from '../../../../src/view/format.ts';
import { fc } from '../../../support/property.ts';

const nasty = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '\u001b[31m',
    '\u001b]52;c;AAAA\u0007',
    '\u001b[2J',
    '\u202e',
    '\u200f',
    '👨‍👩‍👧',
    '🏳️‍🌈',
    '漢字',
    '🇩🇪',
    'e\u0301',
    '𗀀ൗ',
  ),
);
const hostile = fc.array(nasty, { maxLength: 12 }).map((parts) => parts.join(''));
/** Control characters, and characters without width or that change the text direction. */
const forbidden = /\p{Cc}|[\u200b-\u200f\u2028-\u202e\u2060-\u2069]|\ufe0f|\p{Emoji_Modifier}|[\u{e0000}-\u{e007f}]/u;

test('foreign text fits and contains nothing that controls a terminal', () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 0, max: 60 }), (text, columns) => {
      const line = fitLine(text, columns);
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
      expect(line).not.toMatch(forbidden);
    }),
  );
});

test('the width of a line is the sum of the widths of its characters', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const line = fitLine(text, 200);
      // Marks of joining scripts are the exception: terminals differ, so such text is last in its row.
      if (/[\p{Mc}\p{Mn}]|\p{Lo}/u.test(line)) return;
      const sum = [...line].reduce((width, character) => width + Bun.stringWidth(character), 0);
      expect(sum).toBe(Bun.stringWidth(line));
    }),
  );
});

test.each([
  ['a family', '👨‍👩‍👧', '👨👩👧'],
  ['a flag', '🇩🇪', 'DE'],
  ['a warning sign', '⚠️', '⚠'],
  ['a keycap', '1️⃣', '1'],
  ['a skin tone', '👍🏽', '👍'],
  ['an accent as its own character', 'e\u0301', 'é'],
  ['stacked marks', `a${'\u0334'.repeat(40)}`, 'a\u0334\u0334'],
  ['direction marks', 'a\u200f\u061cb', 'ab'],
])('the terminal width of a text is right: %s', (_, text, plain) => {
  expect(plainWidths(text)).toBe(plain);
});

const tones = fc.constantFrom<(Tone | undefined)[]>(undefined, 'good', 'bad', 'warn', 'dim', 'strong', 'accent');
const someCells: fc.Arbitrary<ScreenCell[]> = fc.array(
  fc
    .record({ text: hostile.map((text) => fitLine(text, 80)), tone: tones })
    .map(({ text, tone }): ScreenCell => (tone === undefined ? { text } : { text, tone })),
  { maxLength: 6 },
);

test('a row has the requested width, and paint adds only styles', () => {
  fc.assert(
    fc.property(someCells, fc.integer({ min: 1, max: 120 }), fc.boolean(), (cells, columns, isSelected) => {
      const row = rowOf(cells, columns, isSelected);
      expect(Bun.stringWidth(plainRow(row))).toBe(columns);
      for (const paint of ['colour', 'plain'] as const) {
        expect(Bun.stripANSI(paintRow(row, paint))).toBe(plainRow(row));
      }
    }),
  );
});

test('no background is painted, and without colours no colour', () => {
  const all: ScreenCell[] = (['good', 'bad', 'warn', 'dim', 'strong', 'accent'] as const).map((tone) => ({
    text: 'x',
    tone,
  }));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding escape codes is what this is for.
  const codes = (line: string) => [...line.matchAll(/\u001b\[(\d+)m/g)].map(([, code]) => Number(code));
  const coloured = codes(paintRow(rowOf(all, 10), 'colour'));
  expect(coloured.filter((code) => code >= 40 && code !== 49)).toEqual([]);
  expect(coloured).toContain(31);
  expect(codes(paintRow(rowOf(all, 10), 'plain')).filter((code) => code >= 30)).toEqual([]);
});

test('wrapped lines fit and together contain the whole text', () => {
  fc.assert(
    fc.property(someCells, fc.integer({ min: 2, max: 60 }), (cells, columns) => {
      const lines = wrapCells(cells, columns);
      for (const line of lines)
        expect(Bun.stringWidth(line.map(({ text }) => text).join(''))).toBeLessThanOrEqual(columns);
      const whole = (some: readonly ScreenCell[]) => some.map(({ text }) => text).join('');
      const said = (text: string) => text.replaceAll(/\s/g, '');
      expect(said(lines.map(whole).join(''))).toBe(said(whole(cells)));
      for (const line of lines.slice(1)) expect(whole(line)).toMatch(/^\S/);
    }),
  );
});

test('the program’s own styles are parsed', () => {
  const line = `${colourStyle('accent', '>')} Bash ${colourStyle('bad', 'failed')}${colourStyle('dim', '.')}`;
  expect(cellsOf(line)).toEqual([
    { text: '>', tone: 'accent' },
    { text: ' Bash ' },
    { text: 'failed', tone: 'bad' },
    { text: '.', tone: 'dim' },
  ]);
});

test('padding truncates, fills and aligns by columns', () => {
  expect(padded('漢字', 6)).toBe('漢字  ');
  expect(padded('漢字', 6, 'right')).toBe('  漢字');
  expect(padded('漢字漢字', 5)).toBe('漢字…');
  expect(fitEnd('abc漢字', 4)).toBe('漢字');
  expect(fitEnd('abc漢字', 3)).toBe('字');
});
