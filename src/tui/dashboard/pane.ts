/** The details pane around its tabs: its head, and what of a tab is visible, below the list or beside it. */
import type { SessionRecord } from '../../core/session-state.ts';
import { formatDuration, formatMoney } from '../../view/format.ts';
import { statusTone, titleOf } from '../../view/wording.ts';
import { type Cell, foreign, plainWidths, type Row, rowBetween, rowOf, widthOf } from './cells.ts';
import { logLines, tabLines } from './details.ts';
import { usageNow } from './session-row.ts';
import { type Tab, tabs } from './ui.ts';
import type { Terminal, View } from './view.ts';

export interface PaneOptions {
  readonly record: SessionRecord;
  readonly tab: Tab;
  readonly scroll: number;
  readonly isBeside: boolean;
}

/** The part of the terminal that the pane has. */
export type Part = Pick<Terminal, 'columns' | 'rows' | 'glyphs'>;

export interface ShownPane {
  /** As many as its part of the terminal has. */
  readonly rows: readonly Row[];
  readonly scroll: number;
}

/** A short log below what a session does now says more than a blank. */
const logRowsMin = 3;

/** Rows of the head: the name has one of its own where the pane stands beside the list. */
export function headRows(isBeside: boolean): number {
  return isBeside ? 2 : 1;
}

/** The lines of a tab, broken already. */
export function linesFor(
  view: View,
  { record, tab, isBeside }: PaneOptions,
  { columns, rows, glyphs }: Part,
): Cell[][] {
  const lines = tabLines(view, tab, { record, columns: columns - 2, glyphs });
  const room = rows - headRows(isBeside);
  const left = room - lines.length - 2;
  if (!isBeside || tab !== 'now' || left < logRowsMin) return lines;
  const material = view.material?.sessionId === record.definition.id ? view.material : undefined;
  const log = logLines(material, columns - 2, left);
  return log.length === 0 ? lines : [...lines, [], [{ text: 'log', tone: 'dim' }], ...log];
}

/** `lines` are those of `linesFor`; `scroll` is brought within bounds. */
export function paneRows(view: View, options: PaneOptions, part: Part, lines: readonly Cell[][]): ShownPane {
  const { tab, scroll: wanted, isBeside } = options;
  const { columns, rows } = part;
  const room = Math.max(0, rows - headRows(isBeside));
  const most = Math.max(0, lines.length - room);
  const scroll = Math.min(wanted, most);
  const from = tab === 'log' ? most - scroll : scroll;
  const shown = lines.slice(from, from + room);
  const body = Array.from({ length: room }, (_, index) => rowOf([{ text: ' ' }, ...(shown[index] ?? [])], columns));
  const hidden = hiddenText(from, Math.max(0, lines.length - from - room));
  const head = isBeside ? besideHead(view, options, part, hidden) : [belowHead(view, options, part, hidden)];
  return { rows: [...head, ...body].slice(0, rows), scroll };
}

function hiddenText(above: number, below: number): string {
  return above + below === 0 ? '' : ` ${above} above, ${below} below `;
}

function tabNames(tab: Tab, between: string): Cell[] {
  return tabs.flatMap((name, index): Cell[] => [
    { text: index === 0 ? ' ' : between, tone: 'dim' },
    { text: name === tab ? `[${name}]` : name, tone: name === tab ? 'strong' : 'dim', on: { on: 'tab', tab: name } },
  ]);
}

/** One row that parts it from the list as well. */
function belowHead({ state }: View, { record, tab }: PaneOptions, { columns, glyphs }: Part, hidden: string): Row {
  const title = plainWidths(titleOf(state, record.definition.id));
  const left: Cell[] = [
    { text: glyphs.rule.repeat(2), tone: 'dim' },
    { text: ` ${title} `, tone: 'strong' },
    { text: glyphs.rule.repeat(2), tone: 'dim' },
    ...tabNames(tab, ` ${glyphs.dot} `),
    { text: ' ' },
  ];
  const room = columns - widthOf(left);
  const end = hidden.length + 2 <= room ? hidden : '';
  const rule = { text: glyphs.rule.repeat(Math.max(0, room - end.length)), tone: 'dim' } as const;
  return rowOf([...left, rule, { text: end, tone: 'dim' }], columns);
}

function besideHead(view: View, { record, tab }: PaneOptions, { columns, glyphs }: Part, hidden: string): Row[] {
  const { state, verdicts } = view;
  const { status } = record.state;
  const why = verdicts(record);
  const usage = usageNow(view, record);
  const figures = `${formatDuration(usage.durationMs)}  ${formatMoney(usage.costUsd, usage.estimated)} `;
  const name: Cell[] = [
    { text: ` ${plainWidths(titleOf(state, record.definition.id))}`, tone: 'strong' },
    { text: `  ${why === null ? status : `${status} (${foreign(why.reason, 20)})`}`, tone: statusTone(status) },
  ];
  return [
    rowBetween(name, record.attempts === 0 ? [] : [{ text: figures }], columns),
    rowBetween(tabNames(tab, ` ${glyphs.dot} `), [{ text: hidden, tone: 'dim' }], columns),
  ];
}
