/** Renders Markdown as lines for a terminal. Other text passes unchanged. */
import { plainStyle, type Style } from '../format.ts';
import { safeText } from '../terminal-text.ts';

/** Longer lines are not prose, and patterns would run over them for long. */
const proseChars = 20_000;
const tabColumns = 4;
/** Deepest nesting of quotes. */
const quotesMax = 10;
/** Larger tables are shown unchanged. */
const tableRowsMax = 500;

const fence = /^(\s*)(`{3,}|~{3,})\s*(\S*)/;
const heading = /^ {0,3}#{1,6}\s+(.*)$/;
const rule = /^ {0,3}(?:(?:- ?){3,}|(?:\* ?){3,}|(?:_ ?){3,})$/;
const bullet = /^(\s*)[-*+]\s+(.*)$/;
const numbered = /^(\s*)(\d{1,9}[.)])\s+(.*)$/;
const quote = /^ {0,3}>\s?(.*)$/;
const tableRow = /^\s*\|.*\|\s*$/;
const tableRule = /^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/;

const bareStyle: Style = (_tone, text) => text;

export function markdownLines(text: string, style: Style): Line[] {
  const rows = expandTabs(safeText(text)).trim().split('\n');
  const lines: Line[] = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at] ?? '';
    const opened = fence.exec(row);
    if (opened !== null) {
      at = takeCode(rows, at, opened, lines, style);
      continue;
    }
    const table = tableRow.test(row) && tableRule.test(rows[at + 1] ?? '') ? takeTable(rows, at, style) : null;
    if (table !== null) {
      lines.push(...table.lines);
      at = table.next;
      continue;
    }
    lines.push(proseLine(row, style));
    at += 1;
  }
  return lines;
}

/** The start of a Markdown text as one plain line. */
export function plainWords(text: string, columns: number): string {
  const lines = markdownLines(text.slice(0, columns * 8), bareStyle).map((line) => wholeLine(line).trim());
  let words = '';
  for (const [index, line] of lines.entries()) {
    if (line === '') continue;
    // Separate a heading from the text that follows.
    const isSetOff = lines[index - 1] === '' && !line.startsWith('•') && !/[.,:;!?…]$/.test(words);
    const gap = isSetOff ? ' · ' : ' ';
    words += words === '' ? line : `${gap}${line}`;
  }
  // Remove a mark whose other half was cut off.
  return words.replace(/(?:\*\*|`{1,3})(?=[^*`]*…$)/, '').replaceAll(/\s+/g, ' ');
}

function takeCode(
  rows: readonly string[],
  start: number,
  opened: RegExpExecArray,
  lines: Line[],
  style: Style,
): number {
  const [, indent = '', mark = '', language = ''] = opened;
  const lead = `${indent}    `;
  let at = start + 1;
  for (; at < rows.length; at += 1) {
    const row = rows[at] ?? '';
    const closing = row.trim();
    if (closing.startsWith(mark) && closing === (mark[0] ?? '`').repeat(closing.length)) return at + 1;
    const code = row.startsWith(indent) ? row.slice(indent.length) : row.trimStart();
    lines.push({ lead, text: language === 'diff' ? diffTone(code, style) : code });
  }
  return at;
}

function diffTone(code: string, style: Style): string {
  if (code.startsWith('+')) return style('good', code);
  return code.startsWith('-') ? style('bad', code) : code;
}

function proseLine(row: string, style: Style, quotes = 0): Line {
  if (row.length > proseChars) return { lead: '', text: row };
  const title = heading.exec(row);
  if (title !== null)
    return {
      lead: '',
      text: style('strong', inline(title[1] ?? '', style === plainStyle ? plainStyle : bareStyle)),
    };
  if (rule.test(row)) return { lead: '', text: style('dim', '────────') };
  const quoted = quote.exec(row);
  if (quoted !== null && quotes < quotesMax) {
    const inner = proseLine(quoted[1] ?? '', style, quotes + 1);
    return { lead: `${style('dim', '│ ')}${inner.lead}`, text: inner.text };
  }
  const point = bullet.exec(row);
  if (point !== null) return { lead: `${point[1]}• `, text: inline(point[2] ?? '', style) };
  const item = numbered.exec(row);
  if (item !== null) return { lead: `${item[1]}${item[2]} `, text: inline(item[3] ?? '', style) };
  const [indent = ''] = /^ */.exec(row) ?? [];
  return { lead: indent, text: inline(row.slice(indent.length), style) };
}

/** All repetitions are bounded, so that hostile lines take no longer than others. */
const spans = new RegExp(
  [
    // `code`
    /(?<ticks>`{1,3})([^`\n]{1,2000})\k<ticks>/,
    // [label](target)
    /!?\[([^\]\n]{1,500})\]\(([^()\s]{1,1000})\)/,
    // **bold**
    /(?<mark>\*\*|__)(?=\S)([^*_\n]{1,1000}?\S|\S)\k<mark>/,
    // *italic*
    /(?<![\w*])\*(?=[^\s*])([^*\n]{1,1000}?)(?<=\S)\*(?![\w*])/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
);

/** Code, links, bold and italics in a line. Without colours, code keeps its backticks. */
function inline(row: string, style: Style): string {
  return row.replace(spans, (whole, ticks, code, label, target, bold, strong, italic) => {
    if (ticks !== undefined) return style === plainStyle ? whole : style('accent', code);
    if (label !== undefined) return label === target ? label : `${label} (${target})`;
    if (bold !== undefined) return style('strong', strong);
    return italic;
  });
}

function takeTable(rows: readonly string[], start: number, style: Style): { lines: Line[]; next: number } | null {
  const cells: string[][] = [];
  let next = start;
  for (; next < rows.length && tableRow.test(rows[next] ?? ''); next += 1) {
    const row = rows[next] ?? '';
    if (row.length > proseChars || cells.length >= tableRowsMax) return null;
    if (next !== start + 1) cells.push(cellsOf(row));
  }
  const widths: number[] = [];
  for (const row of cells) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, Bun.stringWidth(cell));
  }
  const lines = cells.map((row, index): Line => {
    const text = row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - Bun.stringWidth(cell))).join('  ');
    return { lead: '', text: index === 0 ? style('strong', text.trimEnd()) : text.trimEnd() };
  });
  return { lines, next };
}

/** Cells have no colours, so that their width can be measured. */
function cellsOf(row: string): string[] {
  const inner = row.trim().slice(1, -1);
  return inner.split('|').map((cell) => inline(cell.trim(), plainStyle));
}

/** Tabs have no fixed width, so replace them. */
export function expandTabs(text: string): string {
  return text.replaceAll('\t', ' '.repeat(tabColumns));
}

export interface Line {
  readonly lead: string;
  readonly text: string;
}

/** Narrower terminals get unbroken lines. */
const columnsMin = 20;

export function wholeLine({ lead, text }: Line): string {
  return `${lead}${text}`.trimEnd();
}

export function wrapLine(line: Line, columns: number): string[] {
  const whole = wholeLine(line);
  // A fast path for short lines: a character has at most two columns.
  if (whole.length * 2 <= columns || Bun.stringWidth(whole) <= columns) return [whole];
  // Indentation is part of the lead, so that wrapped lines align below it.
  const [indent = ''] = /^ */.exec(line.text) ?? [];
  const lead = line.lead + indent;
  const width = Bun.stringWidth(lead);
  const room = columns - width;
  if (room < columnsMin) return Bun.wrapAnsi(whole, Math.max(1, columns), { hard: true, trim: false }).split('\n');
  const pieces = Bun.wrapAnsi(line.text.slice(indent.length), room, { hard: true }).split('\n');
  return pieces.map((piece, index) => `${index === 0 ? lead : ' '.repeat(width)}${piece}`);
}
