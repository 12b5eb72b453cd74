/** Rows of styled cells: sanitized text, glyphs, and how a terminal draws them. */

import type { Tone } from '../../view/format.ts';
import { fitColumns, safeLine } from '../../view/terminal-text.ts';
import type { Hit } from './ui.ts';

export interface ScreenCell {
  readonly text: string;
  readonly tone?: Tone;
  readonly isSelected?: true;
  /** The effect of a click on it. */
  readonly on?: Hit;
}

export interface Row {
  readonly cells: readonly ScreenCell[];
}

/** Joiners, variation selectors, direction marks, tags, enclosing marks, skin tones. */
const invisible = /\p{Default_Ignorable_Code_Point}|\p{Me}|\p{Emoji_Modifier}/gu;
/** More combining marks than any script uses. */
const heapedMarks = /(\p{Mn}{2})\p{Mn}+/gu;
const flagLetter = /[\u{1f1e6}-\u{1f1ff}]/gu;
const privateUse = /\p{Co}/gu;
const plainText = /^[\x20-\x7e]*$/;

/** Characters whose width, one or two columns, is the same in every terminal. */
export function plainWidths(text: string): string {
  if (plainText.test(text)) return text;
  return text
    .normalize('NFC')
    .replace(invisible, '')
    .replace(heapedMarks, '$1')
    .replace(flagLetter, (letter) => String.fromCharCode((letter.codePointAt(0) as number) - 0x1f1e6 + 65))
    .replace(privateUse, '?');
}

/** One harmless line of at most `columns` columns, whatever `text` is. */
export function fitLine(text: string, columns: number): string {
  if (columns <= 0) return '';
  // Removed characters make room for the text that follows.
  return fitColumns(plainWidths(safeLine(text, columns * 4)), columns);
}

export function fitEnd(text: string, columns: number): string {
  let width = Bun.stringWidth(text);
  let from = 0;
  for (const { segment, index } of new Intl.Segmenter().segment(text)) {
    if (width <= columns) break;
    width -= Bun.stringWidth(segment);
    from = index + segment.length;
  }
  return text.slice(from);
}

export function padded(text: string, columns: number, align: 'left' | 'right' = 'left'): string {
  const fitted = fitColumns(text, columns);
  const gap = ' '.repeat(Math.max(0, columns - Bun.stringWidth(fitted)));
  return align === 'left' ? fitted + gap : gap + fitted;
}

export function rowOf(cells: readonly ScreenCell[], columns: number, isSelected = false): Row {
  const fitted: ScreenCell[] = [];
  let left = columns;
  for (const cell of cells) {
    if (left <= 0) break;
    if (cell.text === '') continue;
    const text = fitColumns(cell.text, left);
    fitted.push(text === cell.text ? cell : { ...cell, text });
    left -= Bun.stringWidth(text);
  }
  if (left > 0) fitted.push({ text: ' '.repeat(left) });
  return { cells: isSelected ? fitted.map((cell) => ({ ...cell, isSelected: true })) : fitted };
}

/** The row with `on` as the click target of all cells that have none. */
export function tagged({ cells }: Row, on: Hit): Row {
  return { cells: cells.map((cell) => ({ on, ...cell })) };
}

export function cellAt({ cells }: Row, x: number): ScreenCell | undefined {
  let end = 0;
  return cells.find(({ text }) => {
    end += Bun.stringWidth(text);
    return x < end;
  });
}

export function widthOf(cells: readonly ScreenCell[]): number {
  return cells.reduce((sum, { text }) => sum + Bun.stringWidth(text), 0);
}

export function asciiRow(row: Row): Row {
  const spelt = (character: string): string => (character === '…' ? '~' : '?'.repeat(Bun.stringWidth(character)));
  const cells = row.cells.map((cell) => {
    if (plainText.test(cell.text)) return cell;
    const text = [...cell.text].map((character) => (plainText.test(character) ? character : spelt(character))).join('');
    return { ...cell, text: padded(text, Bun.stringWidth(cell.text)) };
  });
  return { cells };
}

export function rowBetween(left: readonly ScreenCell[], right: readonly ScreenCell[], columns: number): Row {
  const gap = columns - widthOf(left) - widthOf(right);
  return gap < 1 ? rowOf(left, columns) : rowOf([...left, { text: ' '.repeat(gap) }, ...right], columns);
}

export function plainRow({ cells }: Row): string {
  return cells.map(({ text }) => text).join('');
}

/** The styles of `colourStyle`. */
const toneOfCode: ReadonlyMap<string, Tone> = new Map([
  ['32', 'good'],
  ['31', 'bad'],
  ['33', 'warn'],
  ['36', 'accent'],
  ['2', 'dim'],
  ['1', 'strong'],
]);

/** The cells of a line that `colourStyle` made; styles within styles become the inner one. */
export function cellsOf(styled: string): ScreenCell[] {
  const cells: ScreenCell[] = [];
  let tone: Tone | undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of our own styles begin with one.
  for (const part of styled.split(/(\u001b\[[\d;]*m)/)) {
    if (part.startsWith('\u001b')) tone = toneOfCode.get(part.slice(2, -1));
    else if (part !== '') cells.push(tone === undefined ? { text: part } : { text: part, tone });
  }
  return cells;
}

/** Lines of at most `columns` columns; words stay whole if possible, and blanks at a break are dropped. */
export function wrapCells(cells: readonly ScreenCell[], columns: number): ScreenCell[][] {
  const text = cells.map((cell) => cell.text).join('');
  if (columns <= 0) return [];
  if (Bun.stringWidth(text) <= columns) return [[...cells]];
  const lines = Bun.wrapAnsi(text, columns, { hard: true, trim: false }).split('\n');
  const rest = cells.map((cell) => ({ ...cell }));
  const [first = [], ...more] = lines.map((line) => takeCells(rest, line.length));
  return [first, ...more.map(withoutLead).filter((line) => line.length > 0)];
}

function withoutLead(cells: readonly ScreenCell[]): ScreenCell[] {
  const begin = cells.findIndex(({ text }) => text.trimStart() !== '');
  return begin < 0
    ? []
    : cells.slice(begin).map((cell, index) => (index === 0 ? { ...cell, text: cell.text.trimStart() } : cell));
}

/** Like `wrapCells` for a line with a `lead` before the text; further lines are aligned with the text. */
export function wrapLed(lead: readonly ScreenCell[], text: readonly ScreenCell[], columns: number): ScreenCell[][] {
  const width = widthOf(lead);
  const blank: ScreenCell = { text: ' '.repeat(width) };
  return wrapCells(text, Math.max(1, columns - width)).map((line, index) => [
    ...(index === 0 ? lead : [blank]),
    ...line,
  ]);
}

function takeCells(rest: ScreenCell[], length: number): ScreenCell[] {
  const taken: ScreenCell[] = [];
  for (let left = length; left > 0; ) {
    const first = rest.shift();
    if (first === undefined) break;
    const head = first.text.slice(0, left);
    taken.push({ ...first, text: head });
    if (head.length < first.text.length) rest.unshift({ ...first, text: first.text.slice(head.length) });
    left -= head.length;
  }
  return taken;
}

/** `colour`: the sixteen colours that every theme defines itself, so that they suit light and dark backgrounds. */
export type Paint = 'plain' | 'colour';

type Codes = readonly [on: string, off: string];

const reverse: Codes = ['7', '27'];
const bold: Codes = ['1', '22'];
const faint: Codes = ['2', '22'];

const palettes: Readonly<Record<Paint, Readonly<Partial<Record<Tone, Codes>>>>> = {
  // Without colours, problems are bold.
  plain: { bad: bold, warn: bold, strong: bold, dim: faint },
  colour: {
    good: ['32', '39'],
    bad: ['31', '39'],
    warn: ['33', '39'],
    accent: ['36', '39'],
    dim: faint,
    strong: bold,
  },
};

function escaped(code: string): string {
  return `\u001b[${code}m`;
}

export function paintRow({ cells }: Row, paint: Paint): string {
  const tones = palettes[paint];
  let line = '';
  let isOn = false;
  for (const { text, tone, isSelected = false } of cells) {
    if (isSelected !== isOn) line += escaped(reverse[isSelected ? 0 : 1]);
    isOn = isSelected;
    const codes = tone === undefined || isSelected ? undefined : tones[tone];
    line += codes === undefined ? text : `${escaped(codes[0])}${text}${escaped(codes[1])}`;
  }
  return isOn ? line + escaped(reverse[1]) : line;
}

export interface Glyphs {
  /** The terminal supports only ASCII; foreign text is transliterated. */
  readonly isAscii: boolean;
  readonly running: string;
  readonly accepting: string;
  readonly stopping: string;
  readonly pending: string;
  readonly blocked: string;
  readonly paused: string;
  readonly completed: string;
  readonly failed: string;
  readonly marker: string;
  readonly mark: string;
  readonly rule: string;
  readonly barSpent: string;
  readonly barReserved: string;
  readonly barFree: string;
  readonly lane: string;
  readonly branch: string;
  readonly lastBranch: string;
  readonly newline: string;
  readonly turning: readonly string[];
}

export const unicodeGlyphs: Glyphs = {
  isAscii: false,
  running: '●',
  accepting: '◐',
  stopping: '◌',
  pending: '○',
  blocked: '⊘',
  paused: '‖',
  completed: '✓',
  failed: '✗',
  marker: '›',
  mark: '◆',
  rule: '─',
  barSpent: '█',
  barReserved: '░',
  barFree: '·',
  lane: '│',
  branch: '├',
  lastBranch: '└',
  newline: '↵',
  turning: [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'],
};

export const asciiGlyphs: Glyphs = {
  isAscii: true,
  running: '*',
  accepting: '%',
  stopping: '~',
  pending: 'o',
  blocked: '-',
  paused: '=',
  completed: '+',
  failed: 'x',
  marker: '>',
  mark: '#',
  rule: '-',
  barSpent: '#',
  barReserved: '=',
  barFree: '.',
  lane: '|',
  branch: '|',
  lastBranch: '`',
  newline: '/',
  turning: [...'|/-\\'],
};
