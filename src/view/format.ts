/** Formats money, tokens, durations, times and tables. Widths never include styles. */

import { styleText } from 'node:util';
import type { Tokens } from '../core/group.ts';
import { formatMoney } from '../core/text.ts';

export type Tone = 'good' | 'bad' | 'warn' | 'dim' | 'strong' | 'accent';

export type Style = (tone: Tone, text: string) => string;

export const plainStyle: Style = (_tone, text) => text;

const colours = {
  good: 'green',
  bad: 'red',
  warn: 'yellow',
  dim: 'dim',
  strong: 'bold',
  accent: 'cyan',
} as const satisfies Record<Tone, string>;

export const colourStyle: Style = (tone, text) => styleText(colours[tone], text, { validateStream: false });

export { formatMoney };

/** Formats money for a narrow column: drops digits, but never the mark or the magnitude. */
export function fitMoney(usd: number, estimated: boolean, columns: number): string {
  const mark = estimated ? '~' : '';
  if (usd !== 0 && Math.abs(usd) < 0.01) return `${mark}<$0.01`;
  const forms = [formatMoney(usd, estimated), `${mark}$${usd.toFixed(0)}`, `${mark}$${formatCount(usd)}`];
  return forms.find((form) => form.length <= columns) ?? (forms.at(-1) as string);
}

/** `950`, `1.2k`, `34k`, `1.2M`. */
export function formatCount(count: number): string {
  if (count < 1000) return String(Math.round(count));
  if (count < 999_500) return `${shorten(count / 1000)}k`;
  return `${shorten(count / 1_000_000)}M`;
}

function shorten(value: number): string {
  return value < 9.95 ? value.toFixed(1) : String(Math.round(value));
}

export function inputTokens(tokens: Tokens): number {
  return tokens.input + tokens.cacheRead + tokens.cacheCreation;
}

export function formatTokens(tokens: Tokens): string {
  return `${formatCount(inputTokens(tokens))} in, ${formatCount(tokens.output)} out`;
}

/** `8s`, `1m 05s`, `2h 03m`, `1d 04h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${pad2(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${pad2(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d ${pad2(hours % 24)}h`;
}

/** How long ago: `8s`, `5m`, `2h`, `12d`. */
export function formatAge(ms: number): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  if (minutes === 0) return `${Math.floor(Math.max(0, ms) / 1000)}s`;
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** `14:30:22` in the local time zone; `--:--:--` for an invalid time. */
export function formatClock(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '--:--:--';
  return `${pad2(date.getHours())}:${pad2(date.getMinutes())}:${pad2(date.getSeconds())}`;
}

/** `2026-01-04 14:30` in the local time zone; empty for an invalid time. */
export function formatDate(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '';
  const day = `${date.getFullYear()}-${pad2(date.getMonth() + 1)}-${pad2(date.getDate())}`;
  return `${day} ${pad2(date.getHours())}:${pad2(date.getMinutes())}`;
}

/** The time, with the date if it is not the day of `nowMs`. */
export function formatMoment(at: string, nowMs: number): string {
  const isToday = new Date(at).toDateString() === new Date(nowMs).toDateString();
  return isToday ? formatClock(at) : formatDate(at);
}

/** `2026-01-04 14:30:22 UTC`; the text itself for an invalid time. */
export function formatUtc(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

function pad2(value: number): string {
  return String(value).padStart(2, '0');
}

export function plural(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

export function padColumns(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - Bun.stringWidth(text)));
}

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
  /** Dropped if the table is too wide, highest number first; absent = never. */
  readonly spare?: number;
}

export function titled(titles: readonly string[], ...alignedRight: readonly string[]): Column[] {
  return titles.map((title) => ({ title, align: alignedRight.includes(title) ? 'right' : 'left' }));
}

export type TableCell = string | { readonly text: string; readonly tone: Tone };

/** Omits empty columns, and spare ones while lines are wider than `columnsMax`. */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly TableCell[])[],
  style: Style,
  columnsMax = Number.POSITIVE_INFINITY,
): string[] {
  const text = (cell: TableCell | undefined): string => (typeof cell === 'object' ? cell.text : (cell ?? ''));
  const widths = columns.map(({ title }, index) =>
    rows.reduce((width, row) => Math.max(width, Bun.stringWidth(text(row[index]))), title.length),
  );
  const filled = columns.map((_, index) => index).filter((index) => rows.some((row) => text(row[index]) !== ''));
  const shown = withoutSpare(columns, widths, filled, columnsMax);
  const line = (cells: readonly TableCell[]): string =>
    shown
      .map((index, place) => {
        const cell = cells[index];
        const words = text(cell);
        const styled = typeof cell === 'object' && words !== '' ? style(cell.tone, words) : words;
        const gap = ' '.repeat(Math.max(0, (widths[index] ?? 0) - Bun.stringWidth(words)));
        if (columns[index]?.align === 'right') return gap + styled;
        return place === shown.length - 1 ? styled : styled + gap;
      })
      .join(' '.repeat(gapColumns))
      .trimEnd();
  const titles = columns.map(({ title }): TableCell => ({ text: title, tone: 'dim' }));
  return [line(titles), ...rows.map(line)];
}

const gapColumns = 2;

function withoutSpare(
  columns: readonly Column[],
  widths: readonly number[],
  shown: readonly number[],
  columnsMax: number,
): readonly number[] {
  const width = shown.reduce((sum, index) => sum + (widths[index] ?? 0) + gapColumns, -gapColumns);
  const spareOf = (index: number): number => columns[index]?.spare ?? 0;
  const most = Math.max(0, ...shown.map(spareOf));
  if (width <= columnsMax || most === 0) return shown;
  const fewer = shown.filter((index) => spareOf(index) < most);
  return withoutSpare(columns, widths, fewer, columnsMax);
}
