/**
 * What differs from run to run on a screen (times of day, durations, the date in the id of a group) becomes the same in
 * every picture. What stands behind it keeps its column where it is set off by blanks.
 */
import { unicodeGlyphs } from '../../src/tui/dashboard/cells.ts';

export interface Look {
  readonly colour: string;
  /** Null = the background of the screen. */
  readonly fill: string | null;
  readonly isBold: boolean;
  readonly isDim: boolean;
  readonly isUnderlined: boolean;
}

/** One column. The second half of a wide character has an empty text. */
export interface Cell {
  readonly text: string;
  readonly look: Look;
}

/** Signs that turn while a tool runs. */
const turning = new RegExp(`[${unicodeGlyphs.turning.join('')}]`, 'g');

interface Mask {
  readonly pattern: RegExp;
  readonly instead: string;
}

const masks: readonly Mask[] = [
  { pattern: /\b\d{8}-\d{6}(?=-[a-z])/g, instead: '20260104-143022' },
  { pattern: /\b\d{4}-\d\d-\d\d \d\d:\d\d\b/g, instead: '2026-01-04 14:30' },
  { pattern: /\b\d\d:\d\d:\d\d\b/g, instead: '14:30:22' },
  { pattern: turning, instead: unicodeGlyphs.turning[0] as string },
  { pattern: /\b\d+ above, 0 below/g, instead: '34 above, 0 below' },
  { pattern: /(?<![\w.])(?:\d+h )?(?:\d+m )?\d+s\b/g, instead: '42s' },
];

/** What was spent lately, an hour at that rate, and a guess for which an earlier session is needed. */
const pace = /(?<= )(?<blanks> +)(?<spent>[▁-█]+) {2}(?<rate>\$\d+\.\d\d\/h)(?: {2}~[\dhms ]+ left)?(?= {2})/;
const spent = '▂▃▃▄▅▅▆▆▅▄▅▆▇█▆▅▄▃';
const rate = '$4.20/h';

/** The row with everything masked, exactly `columns` long. */
export function maskRow(cells: readonly Cell[], columns: number): Cell[] {
  let row = maskPace(cells);
  for (const mask of masks) row = replaceIn(row, mask);
  return row.slice(0, columns);
}

/** All of it together: each takes the place that the others leave it. */
function maskPace(row: readonly Cell[]): Cell[] {
  const found = pace.exec(textOf(row));
  if (found === null) return [...row];
  const { blanks = '', spent: graph = '' } = found.groups ?? {};
  const start = found.index;
  const graphAt = start + blanks.length;
  const [blank, graphLook, rateLook] = [start, graphAt, graphAt + graph.length + 2].map((at) => row[at]?.look as Look);
  const shown = spent.slice(0, Math.max(0, found[0].length - rate.length - 2));
  const cellsOf = (text: string, look: Look | undefined) =>
    [...text].map((sign) => ({ text: sign, look: look as Look }));
  const gap = ' '.repeat(found[0].length - shown.length - 2 - rate.length);
  const instead = [
    ...cellsOf(gap, blank),
    ...cellsOf(shown, graphLook),
    ...cellsOf('  ', blank),
    ...cellsOf(rate, rateLook),
  ];
  return [...row.slice(0, start), ...instead, ...row.slice(start + instead.length)];
}

/** One character a cell, so that places in the text are columns. */
function textOf(row: readonly Cell[]): string {
  return row.map((cell) => (cell.text.length === 1 ? cell.text : '\u0000')).join('');
}

function replaceIn(row: Cell[], { pattern, instead }: Mask): Cell[] {
  const text = textOf(row);
  const masked: Cell[] = [];
  let at = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    masked.push(...row.slice(at, index));
    const end = index + found.length;
    const look = (row[index] as Cell).look;
    const blank: Cell = { text: ' ', look };
    const gap = found.length - instead.length;
    // Right-aligned: blanks before it take up the difference; else those behind it do.
    const blanksBefore = /\s*$/.exec(text.slice(0, index))?.[0].length ?? 0;
    const isRight = blanksBefore >= 2;
    if (isRight && gap > 0) masked.push(...Array<Cell>(gap).fill(blank));
    if (isRight && gap < 0) masked.splice(gap, -gap);
    masked.push(...[...instead].map((sign): Cell => ({ text: sign, look })));
    at = end;
    if (isRight || gap === 0) continue;
    const blanksBehind = /^ */.exec(text.slice(end))?.[0].length ?? 0;
    if (gap > 0) masked.push(...Array<Cell>(blanksBehind > 1 ? gap : 0).fill(blank));
    else if (blanksBehind > -gap + 1) at += -gap;
  }
  masked.push(...row.slice(at));
  const last = row.at(-1) as Cell;
  while (masked.length < row.length) masked.push({ text: ' ', look: last.look });
  return masked;
}
