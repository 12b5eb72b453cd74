/** tui/dashboard/: what the dashboard shows. This file: the whole screen, pure; only visible rows are made. */
import type { SessionId } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Tone } from '../../view/format.ts';
import { footerRow, headerRows, noticeRows } from './bars.ts';
import {
  asciiRow,
  cellAt,
  type Glyphs,
  joined,
  padded,
  type Row,
  rowOf,
  type ScreenCell,
  tagged,
  widthOf,
} from './cells.ts';
import { headRows, linesFor, paneRows } from './details.ts';
import { type ListItem, listItems, sessionIdsOf } from './list.ts';
import { columnTitles, isTurning, layoutFor, listColumns, sessionRow } from './session-row.ts';
import { type Hit, paneShape, type Shape, settled, type Ui } from './ui.ts';
import { type Terminal, timeSpan, type View } from './view.ts';

export interface Frame {
  readonly rows: readonly Row[];
  readonly cursor?: { readonly x: number; readonly y: number };
  readonly ui: Ui;
  readonly shape: Shape;
  readonly ids: readonly SessionId[];
  readonly index: number;
  readonly listRows: number;
  readonly paneRows: number;
  readonly isTurning: boolean;
  hit(x: number, y: number): Hit | null;
}

/** Smaller terminals get the rows that fit, from the top. */
const listRowsMin = 3;
const paneRowsMin = 6;

export function frameOf(view: View, given: Ui, terminal: Terminal): Frame {
  const { columns, rows } = terminal;
  const chosen = { ...given, selected: atTheEnd(view, given) ?? given.selected };
  const items = listItems(view, chosen);
  const rule = rowOf([{ text: terminal.glyphs.rule.repeat(columns), tone: 'dim' }], columns);
  const head = [...headerRows(view, terminal), rule];
  // In a small terminal the sessions come first.
  while (head.length > 1 && rows - head.length - 1 < listRowsMin) head.pop();
  const notice = noticeRows(view, terminal, rows - head.length - 1 - listRowsMin);
  const room = Math.max(1, rows - head.length - 1 - notice.length);
  const body = bodyOf(view, chosen, terminal, { items, room });
  const { ui } = body;
  const { mode } = ui;
  const shown = mode.kind === 'help' ? helpRows(terminal, view.runner === 'here', room, mode.top) : body.rows;
  const blank = rowOf([], columns);
  const filled = [...shown.slice(0, room), ...Array.from({ length: Math.max(0, room - shown.length) }, () => blank)];
  const ids = sessionIdsOf(items);
  const { notices: _said, ...quiet } = view;
  const position = positionOf(view, items, ui.top, body.listRows);
  const footer = footerRow(notice.length > 0 ? quiet : view, { ...ui, shape: body.shape }, terminal, position);
  const whole = [...head, ...filled, ...notice, footer.row].slice(-rows);
  const all = terminal.glyphs.isAscii ? whole.map(asciiRow) : whole;
  return {
    rows: all,
    ...(footer.cursor === undefined ? {} : { cursor: { x: footer.cursor, y: all.length - 1 } }),
    ui,
    shape: body.shape,
    ids,
    index: Math.max(0, ids.indexOf(ui.selected ?? '')),
    listRows: body.listRows,
    paneRows: body.paneRows,
    hit: (x, y) => (all[y] === undefined ? null : cellAt(all[y], x)?.on) ?? null,
    isTurning: sessionIdsOf(items.slice(ui.top, ui.top + body.listRows)).some((id) => turns(view, id)),
  };
}

/** What a person looks for when a run is over; null while it runs, and where one has chosen. */
function atTheEnd({ state }: View, { home, filter, onlyProblems }: Ui): SessionId | null {
  if (home !== null || filter !== '' || onlyProblems || state.status === 'running') return null;
  const records = [...state.sessions.values()];
  const first = (status: string) => records.find((record) => record.state.status === status)?.definition.id;
  return first('failed') ?? first('paused') ?? null;
}

function turns(view: View, id: SessionId): boolean {
  const record = view.state.sessions.get(id);
  return record !== undefined && isTurning(view, record);
}

interface List {
  readonly items: readonly ListItem[];
  readonly room: number;
}

interface Body {
  readonly rows: readonly Row[];
  readonly ui: Ui;
  readonly shape: Shape;
  readonly listRows: number;
  readonly paneRows: number;
}

function bodyOf(view: View, chosen: Ui, terminal: Terminal, { items, room }: List): Body {
  const { columns } = terminal;
  const keys = items.map((item) => ('id' in item ? item.id : null));
  // Which one is selected does not depend on how many are visible.
  const record = view.state.sessions.get(keys[settled(chosen, keys, 1).index] ?? '');
  const shape = record === undefined ? 'none' : paneShape(chosen, columns);
  const isBeside = shape === 'beside';
  const wide = isBeside ? listColumns(columns) : columns;
  const paneColumns = isBeside ? columns - wide - 1 : columns;
  const options = (of: SessionRecord) => ({ record: of, tab: chosen.tab, scroll: chosen.scroll, isBeside });
  const lines =
    record === undefined || shape === 'none'
      ? []
      : linesFor(view, options(record), { ...terminal, columns: paneColumns, rows: room });
  // A log grows.
  const wanted = chosen.tab === 'log' ? Number.POSITIVE_INFINITY : lines.length;
  const heights = divide(room, shape, items.length, wanted);
  const { index, ...ui } = settled(chosen, keys, heights.list);
  const part = { ...terminal, columns: wide };
  const height = heights.list;
  const list = height === 0 ? [] : listRows(view, ui, part, { room, items, index, height });
  const counts = { listRows: height, paneRows: Math.max(0, heights.pane - headRows(isBeside)) };
  if (record === undefined || heights.pane === 0) return { rows: list, ui, shape, ...counts };
  const pane = paneRows(view, options(record), { ...terminal, columns: paneColumns, rows: heights.pane }, lines);
  const between: ScreenCell = { text: terminal.glyphs.lane, tone: 'dim' };
  const blank = rowOf([], paneColumns);
  const details = pane.rows.map((row) => tagged(row, { on: 'pane' }));
  const rows = isBeside ? list.map((row, nth) => joined(row, between, details[nth] ?? blank)) : [...list, ...details];
  return { rows, ui: { ...ui, scroll: pane.scroll }, shape, ...counts };
}

interface Heights {
  readonly list: number;
  readonly pane: number;
}

function divide(room: number, shape: Shape, items: number, lines: number): Heights {
  if (shape === 'full') return { list: 0, pane: room };
  const list = Math.max(1, room - titleRows(room));
  if (shape === 'none') return { list, pane: 0 };
  if (shape === 'beside') return { list, pane: room };
  // A short list leaves the room it does not need.
  const most = Math.max(paneRowsMin, Math.floor(room * 0.55));
  const wanted = Math.max(Math.min(most, lines + 1), list - items);
  const height = Math.max(0, Math.min(wanted, list - Math.min(listRowsMin, items)));
  return { list: Math.max(1, list - height), pane: height };
}

function titleRows(room: number): number {
  return room > listRowsMin ? 1 : 0;
}

interface ListPart extends List {
  readonly index: number;
  readonly height: number;
}

function listRows(view: View, ui: Ui, terminal: Terminal, { room, items, index, height }: ListPart): Row[] {
  const { columns } = terminal;
  const { hasTimeline, sorting, marked } = ui;
  const layout = layoutFor(view.state, columns);
  const titles = columnTitles(layout, terminal, { doing: hasTimeline ? 'TIMELINE' : 'DOING', sorting });
  const rows: Row[] = titleRows(room) === 0 ? [] : [titles];
  const span = hasTimeline ? { span: timeSpan(view) } : {};
  const whole = height + rows.length;
  if (items.length === 0) {
    const text = view.state.sessions.size === 0 ? 'No sessions so far.' : 'Nothing matches. Escape shows all sessions.';
    rows.push(rowOf([{ text: `    ${text}`, tone: 'dim' }], columns));
  }
  for (const [nth, item] of items.slice(ui.top, ui.top + height).entries()) {
    if ('heading' in item) {
      rows.push(rowOf([{ text: ` ${item.heading}`, tone: 'dim' }], columns));
      continue;
    }
    const record = view.state.sessions.get(item.id);
    if (record === undefined) continue;
    const isSelected = ui.top + nth === index;
    const isMarked = marked.includes(item.id);
    const row = sessionRow(view, { record, lanes: item.lanes, isSelected, isMarked, ...span }, layout, terminal);
    rows.push(tagged(row, { on: 'session', id: item.id }));
  }
  const blanks = Array.from({ length: Math.max(0, whole - rows.length) }, () => rowOf([], columns));
  return [...rows, ...blanks].map((row) => tagged(row, { on: 'list' }));
}

/** Headings do not count. */
function positionOf({ state }: View, items: readonly ListItem[], top: number, height: number) {
  const before = sessionIdsOf(items.slice(0, top)).length;
  const listed = before + sessionIdsOf(items.slice(top)).length;
  const visible = sessionIdsOf(items.slice(top, top + height)).length;
  return { first: before + 1, last: before + visible, listed, all: state.sessions.size };
}

export type HelpEntry = readonly [keys: readonly string[], meaning: string];

export const helpEntries: readonly HelpEntry[] = [
  [['up', 'down', 'j', 'k'], 'select a session'],
  [['g', 'G', 'home', 'end'], 'the first, the last'],
  [[',', '.'], 'a page of the list'],
  [['page-up', 'page-down'], 'a page of the details'],
  [['v'], 'tree, waves, status …'],
  [['S'], 'sort: cost, time, name'],
  [['t'], 'when each one worked'],
  [['/'], 'show only what matches'],
  [['f'], 'show only problems'],
  [['escape'], 'show all again; back'],
  [['enter'], 'details open, closed'],
  [['tab', 'left', 'right'], 'the next tab of them'],
  [['1', '2', '3', '4', '5', '6'], 'now, log, diff …'],
  [['l'], 'its log, full screen'],
  [['o'], 'open in editor, pager'],
  [[' ', '*'], 'mark it; all or none'],
  [['p'], 'pause, hold, let go on'],
  [['r'], 'try a failed one again'],
  [['s'], 'say something to it'],
  [['i'], 'answer what it asks'],
  [['a'], 'take it over yourself'],
  [['e'], 'edit its task, retry'],
  [['P'], 'pause, start the group'],
  [['m'], 'mouse off, to copy text'],
  [['ctrl-l', 'ctrl-z'], 'redraw; to the shell'],
  [['?', 'h'], 'this page'],
];

const keyColumns = 17;
const entryColumns = 40;

const shortNames: Readonly<Record<string, string>> = {
  ' ': 'space',
  'page-up': 'pgup',
  'page-down': 'pgdn',
  escape: 'esc',
};

function spelled(keys: readonly string[]): string {
  const [first, last] = [keys[0], keys.at(-1)];
  // More than four are a range.
  if (keys.length > 4) return `${first}-${last}`;
  return keys.map((key) => shortNames[key] ?? key).join(' ');
}

/** Keys in columns, and what the signs mean; from row `from` on, which is brought within bounds. */
export function helpRows(terminal: Terminal, isRunner: boolean, room: number, from: number): readonly Row[] {
  const { columns, glyphs } = terminal;
  const quit: readonly HelpEntry[] = isRunner
    ? [
        [['q'], 'leave it, or pause it'],
        [['ctrl-c'], 'pause all; twice: leave'],
      ]
    : [[['q', 'ctrl-c'], 'leave (run continues)']];
  const entries = [...helpEntries, ...quit];
  const across = Math.max(1, Math.min(3, Math.floor(columns / entryColumns)));
  const down = Math.ceil(entries.length / across);
  const width = across === 1 ? columns : entryColumns;
  const lines = Array.from({ length: down }, (_, nth) =>
    Array.from({ length: across }, (_, column) => entryCells(entries[column * down + nth], width)).flat(),
  );
  const signs = wrapSigns(legend(glyphs), columns);
  const rows = [
    [{ text: ' Keys', tone: 'strong' } as const],
    ...lines,
    [],
    ...signs,
    [{ text: ' Any key returns.', tone: 'dim' } as const],
  ].map((cells) => rowOf(cells, columns));
  const top = Math.max(0, Math.min(from, rows.length - room));
  return rows.slice(top, top + room);
}

function entryCells(entry: HelpEntry | undefined, columns: number): ScreenCell[] {
  if (entry === undefined) return [];
  const [keys, meaning] = entry;
  return [
    { text: `  ${padded(spelled(keys), keyColumns - 2)}`, tone: 'accent' },
    { text: padded(meaning, columns - keyColumns) },
  ];
}

function wrapSigns(signs: readonly ScreenCell[][], columns: number): ScreenCell[][] {
  const lines: ScreenCell[][] = [[]];
  for (const sign of signs) {
    const line = lines.at(-1) as ScreenCell[];
    if (widthOf(line) + widthOf(sign) <= columns) line.push(...sign);
    else lines.push([...sign]);
  }
  return lines;
}

function legend(glyphs: Glyphs): ScreenCell[][] {
  const signs: readonly (readonly [glyph: string, meaning: string, tone: Tone])[] = [
    [glyphs.turning[0] as string, 'runs a tool', 'accent'],
    [glyphs.running, 'running', 'accent'],
    [glyphs.accepting, 'accepting', 'accent'],
    [glyphs.stopping, 'stopping', 'warn'],
    [glyphs.pending, 'waiting', 'dim'],
    [glyphs.blocked, 'blocked', 'warn'],
    [glyphs.paused, 'paused', 'warn'],
    [glyphs.completed, 'done', 'good'],
    [glyphs.failed, 'failed', 'bad'],
  ];
  return signs.map(([glyph, meaning, tone]) => [{ text: ` ${glyph}`, tone }, { text: ` ${meaning}` }]);
}
