/** Promises: Markdown is readable in a terminal, table columns are aligned, and no text controls the terminal. */
import { expect, test } from 'bun:test';
import { colourStyle, plainStyle } from '../../../../src/view/format.ts';
import { type Line, markdownLines, plainWords, wholeLine, wrapLine } from '../../../../src/view/transcript/markdown.ts';
import { fc } from '../../../support/property.ts';

const plain = (text: string): string[] => markdownLines(text, plainStyle).map(wholeLine);

test('Markdown headings, lists, quotes, rules, links and emphasis are rendered', () => {
  const text = [
    '## What I **did**',
    '',
    '- one *thing*',
    '  * nested `code`',
    '12. twelve',
    '> quoted **loud**',
    '---',
    'See [the docs](https://example.org/a_b) and [https://x.y](https://x.y), not 2 * 3 * 4 or snake_case_name.',
  ];
  expect(plain(text.join('\n'))).toEqual([
    'What I did',
    '',
    '• one thing',
    '  • nested `code`',
    '12. twelve',
    '│ quoted loud',
    '────────',
    'See the docs (https://example.org/a_b) and https://x.y, not 2 * 3 * 4 or snake_case_name.',
  ]);
});

test('code blocks are unchanged, and diffs in them are coloured', () => {
  const text = '```ts\nconst a = **1**;\n\n\t- no list\n```\n~~~diff\n-old\n+new\n~~~\nafter';
  expect(plain(text)).toEqual(['    const a = **1**;', '', '        - no list', '    -old', '    +new', 'after']);
  const coloured = markdownLines(text, colourStyle).map(wholeLine);
  expect(coloured[3]).toBe('    \u001b[31m-old\u001b[39m');
  expect(plain('```\nnever closed')).toEqual(['    never closed']);
});

test('inline code is coloured, or keeps its marks without colours', () => {
  expect(plain('a `b` c')).toEqual(['a `b` c']);
  expect(markdownLines('# a `b` c', colourStyle).map(wholeLine)).toEqual(['\u001b[1ma b c\u001b[22m']);
  expect(plain('# a `b` c')).toEqual(['a `b` c']);
  expect(markdownLines('a `b` c', colourStyle).map(wholeLine)).toEqual(['a \u001b[36mb\u001b[39m c']);
});

test('columns of Markdown tables are aligned, even with wide characters', () => {
  const lines = plain('| name | 値 |\n|:--|--:|\n| 日本語 | 1 |\n| 👩‍👩‍👧 | **2** |\nafter');
  expect(lines).toEqual(['name    値', '日本語  1', '👩‍👩‍👧      2', 'after']);
  const columns = lines.slice(0, 3).map((line) => Bun.stringWidth(line.slice(0, line.search(/[値12]/u))));
  expect(new Set(columns)).toEqual(new Set([8]));
  expect(plain('| no table |')).toEqual(['| no table |']);
});

test('the start of a Markdown text is shown as one line without marks', () => {
  const words = (text: string): string => plainWords(text, 200);
  expect(words('## Done\n\n`keysFor` gives **two** keys:\n\n1. `current`\n2. [previous](a.md)\n')).toBe(
    'Done · keysFor gives two keys: 1. current 2. previous (a.md)',
  );
  expect(words('I have\nread it.\n\n- one\n- two\n\n```js\nconst  a = 1\n```')).toBe(
    'I have read it. • one • two · const a = 1',
  );
  expect(words('It is **not whole…')).toBe('It is not whole…');
  expect(words('\u001b[31m# red\u001b]0;x\u0007\u202e')).toBe('red');
  expect(words('')).toBe('');
  expect(plainWords('word '.repeat(100_000), 10).length).toBeLessThanOrEqual(80);
});

test('long Markdown lines are broken between words and indented below their text', () => {
  const line: Line = { lead: '  • ', text: 'some words that do not fit into the columns there are' };
  const pieces = wrapLine(line, 30);
  expect(pieces).toEqual(['  • some words that do not fit', '    into the columns there are']);
  expect(wrapLine(line, 200)).toEqual([`${line.lead}${line.text}`]);
});

test('wrapped Markdown is never wider than the terminal', () => {
  const words = fc.array(fc.constantFrom('word', '日本語', '👨‍👩‍👧', 'x'.repeat(90), 'é', '-'), { maxLength: 60 });
  fc.assert(
    fc.property(words, fc.integer({ min: 10, max: 120 }), fc.integer({ min: 0, max: 30 }), (parts, columns, indent) => {
      const pieces = wrapLine({ lead: ' '.repeat(indent), text: parts.join(' ') }, columns);
      for (const piece of pieces) expect(Bun.stringWidth(piece)).toBeLessThanOrEqual(columns);
      expect(pieces.join('').replaceAll(' ', '')).toBe(parts.join(''));
    }),
  );
});

test('any Markdown gives lines without control characters', () => {
  const part = fc.constantFrom(
    '`',
    '**',
    '[',
    '](',
    ')',
    '|',
    '\n',
    '- ',
    '> ',
    '#',
    '```',
    '\u001b[2J',
    '\u009b',
    'a',
  );
  const hostile = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(part).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(hostile, (text) => {
      for (const line of plain(text)) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what is looked for.
        expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
      }
    }),
  );
});

test('unclosed Markdown marks take linear time', () => {
  for (const mark of ['[', '**a', '` ', '*a', '|', '![a](', '# ', '> ', '__']) {
    expect(plain(mark.repeat(19_000 / mark.length)).join('').length).toBeGreaterThan(0);
  }
});
