/**
 * Rows of styled cells, and foreign text made fit for them. Terminals disagree about the width of what is joined to
 * the character before it, so all of that is taken out: a column that begins after such text stays where it is.
 */
import type { Tone } from '../../view/format.ts';
import { fitColumns, safeLine } from '../../view/terminal-text.ts';
import type { Hit } from './ui.ts';

export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
  readonly isSelected?: true;
  /** What a click on it means. */
  readonly on?: Hit;
}

export interface Row {
  readonly cells: readonly Cell[];
}

/** Joiners, selectors, marks of direction, tags, frames around characters, tones of skin. */
const invisible = /\p{Default_Ignorable_Code_Point}|\p{Me}|\p{Emoji_Modifier}/gu;
/** More marks above and below than any writing has. */
const heapedMarks = /(\p{Mn}{2})\p{Mn}+/gu;
const flagLetter = /[\u{1f1e6}-\u{1f1ff}]/gu;
const privateUse = /\p{Co}/gu;
const plainText = /^[\x20-\x7e]*$/;

/** Characters of which every terminal knows the width, one column or two. */
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
export function foreign(text: string, columns: number): string {
  if (columns <= 0) return '';
  // What is taken out makes room for what follows.
  return fitColumns(plainWidths(safeLine(text, columns * 4)), columns);
}

export function endOf(text: string, columns: number): string {
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

export function rowOf(cells: readonly Cell[], columns: number, isSelected = false): Row {
  const fitted: Cell[] = [];
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

/** The row, with this as what a click means where none of its cells says otherwise. */
export function tagged({ cells }: Row, on: Hit): Row {
  return { cells: cells.map((cell) => ({ on, ...cell })) };
}

export function cellAt({ cells }: Row, x: number): Cell | undefined {
  let end = 0;
  return cells.find(({ text }) => {
    end += Bun.stringWidth(text);
    return x < end;
  });
}

export function joined(left: Row, between: Cell, right: Row): Row {
  return { cells: [...left.cells, between, ...right.cells] };
}

export function widthOf(cells: readonly Cell[]): number {
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

export function rowBetween(left: readonly Cell[], right: readonly Cell[], columns: number): Row {
  const gap = columns - widthOf(left) - widthOf(right);
  return gap < 1 ? rowOf(left, columns) : rowOf([...left, { text: ' '.repeat(gap) }, ...right], columns);
}

export function plainRow({ cells }: Row): string {
  return cells.map(({ text }) => text).join('');
}

/** Those of `colourStyle`. */
const toneOfCode: ReadonlyMap<string, Tone> = new Map([
  ['32', 'good'],
  ['31', 'bad'],
  ['33', 'warn'],
  ['36', 'accent'],
  ['2', 'dim'],
  ['1', 'strong'],
]);

/**
 * The cells of a line that `colourStyle` made out of harmless text; any escape code in it is ours. Styles within
 * styles become the inner one.
 */
export function cellsOf(styled: string): Cell[] {
  const cells: Cell[] = [];
  let tone: Tone | undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of our own styles begin with one.
  for (const part of styled.split(/(\u001b\[[\d;]*m)/)) {
    if (part.startsWith('\u001b')) tone = toneOfCode.get(part.slice(2, -1));
    else if (part !== '') cells.push(tone === undefined ? { text: part } : { text: part, tone });
  }
  return cells;
}

/**
 * Lines of at most `columns` columns that together say what the cells say; words stay whole where they can, and blanks
 * at which a line was broken are left out.
 */
export function wrapCells(cells: readonly Cell[], columns: number): Cell[][] {
  const text = cells.map((cell) => cell.text).join('');
  if (columns <= 0) return [];
  if (Bun.stringWidth(text) <= columns) return [[...cells]];
  const lines = Bun.wrapAnsi(text, columns, { hard: true, trim: false }).split('\n');
  const rest = cells.map((cell) => ({ ...cell }));
  const [first = [], ...more] = lines.map((line) => takeCells(rest, line.length));
  return [first, ...more.map(withoutLead).filter((line) => line.length > 0)];
}

function withoutLead(cells: readonly Cell[]): Cell[] {
  const begin = cells.findIndex(({ text }) => text.trimStart() !== '');
  return begin < 0
    ? []
    : cells.slice(begin).map((cell, index) => (index === 0 ? { ...cell, text: cell.text.trimStart() } : cell));
}

/** Like `wrapCells` for a line whose `lead` stands before the text; what follows stands below the text. */
export function wrapLed(lead: readonly Cell[], text: readonly Cell[], columns: number): Cell[][] {
  const width = widthOf(lead);
  const blank: Cell = { text: ' '.repeat(width) };
  return wrapCells(text, Math.max(1, columns - width)).map((line, index) => [
    ...(index === 0 ? lead : [blank]),
    ...line,
  ]);
}

function takeCells(rest: Cell[], length: number): Cell[] {
  const taken: Cell[] = [];
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
