/** tui/dashboard/: what the dashboard shows. This file: the whole screen, pure; only visible rows are made. */
import type { SessionId } from '../../core/group.ts';
import type { Tone } from '../../view/format.ts';
import { frameSize, hitAt, type Layout, type Pane, paneOf } from '../layout.ts';
import { footerRow, headContent, noticeRows, where } from './bars.ts';
import { type Glyphs, padded, type Row, rowOf, type ScreenCell, tagged, widthOf } from './cells.ts';
import { detailsContent, linesFor } from './details.ts';
import { type ListItem, listItems, sessionIdsOf } from './list.ts';
import { columnTitles, isTurning, layoutFor, listColumns, sessionRow } from './session-row.ts';
import { type Hit, paneShape, type Shape, settled, type Ui } from './ui.ts';
import { type Terminal, timeSpan, type View } from './view.ts';

export interface Frame extends Layout {
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
/** Smaller terminals have no room for frames. */
const framedRows = 14;
const framedColumns = 50;

export function frameOf(view: View, given: Ui, terminal: Terminal): Frame {
  const { columns, rows } = terminal;
  const isFramed = rows >= framedRows && columns >= framedColumns;
  const chosen = { ...given, selected: atTheEnd(view, given) ?? given.selected };
  const items = listItems(view, chosen);
  const head = headPane(view, terminal, isFramed);
  const notice = noticeRows(view, terminal, rows - head.height - 1 - listRowsMin);
  const room = Math.max(0, rows - head.height - 1 - notice.length);
  const body = bodyOf(view, chosen, terminal, { items, room, isFramed });
  const { ui } = body;
  const { mode } = ui;
  const ids = sessionIdsOf(items);
  const { notices: _said, ...quiet } = view;
  const position = isFramed ? null : positionOf(view, items, ui.top, body.listRows);
  const footer = footerRow(notice.length > 0 ? quiet : view, { ...ui, shape: body.shape }, terminal, position);
  const foot = paneOf(
    { title: [], rows: [...notice, footer.row] },
    { columns, height: rows - head.height - room, isFramed: false },
  );
  const layout: Layout = {
    bands: [
      [head],
      ...(mode.kind === 'help' ? helpBands(view, mode.top, terminal, { room, isFramed }) : body.bands),
      [foot],
    ],
    ...(footer.cursor === undefined ? {} : { cursor: { x: footer.cursor, y: rows - 1 } }),
  };
  return {
    ...layout,
    ui,
    shape: body.shape,
    ids,
    index: Math.max(0, ids.indexOf(ui.selected ?? '')),
    listRows: body.listRows,
    paneRows: body.paneRows,
    hit: (x, y) => hitAt(layout, x, y),
    isTurning: sessionIdsOf(items.slice(ui.top, ui.top + body.listRows)).some((id) => turns(view, id)),
  };
}

function headPane(view: View, terminal: Terminal, isFramed: boolean): Pane {
  const { columns, rows } = terminal;
  const content = headContent(view, { ...terminal, columns: isFramed ? columns - frameSize : columns });
  const wanted = content.rows.length + (isFramed ? frameSize : 1);
  // In a small terminal the sessions come first.
  const height = isFramed ? wanted : Math.max(0, Math.min(wanted, rows - 1 - listRowsMin));
  return paneOf(content, { columns, height, isFramed });
}

function helpBands(view: View, top: number, terminal: Terminal, { room, isFramed }: Omit<List, 'items'>): Pane[][] {
  const size = { columns: terminal.columns, height: room, isFramed, isFocused: true };
  const [columns, height] = isFramed ? [terminal.columns - frameSize, room - frameSize] : [terminal.columns, room];
  const rows = helpRows({ ...terminal, columns }, view.runner === 'here', height, top);
  return [[paneOf({ title: isFramed ? [{ text: ' Keys ', tone: 'strong' }] : [], rows }, size)]];
}

/** What a person looks for when a run is over; null while it runs, and where one has chosen. */
function atTheEnd({ state }: View, { home, filter, onlyProblems }: Ui): SessionId | null {
  if (home !== null || filter !== '' || onlyProblems || state.status === 'running') return null;
  return state.failed.values().next().value ?? null;
}

function turns(view: View, id: SessionId): boolean {
  const record = view.state.sessions.get(id);
  return record !== undefined && isTurning(view, record);
}

interface List {
  readonly items: readonly ListItem[];
  readonly room: number;
  readonly isFramed: boolean;
}

interface Body {
  readonly bands: readonly (readonly Pane[])[];
  readonly ui: Ui;
  readonly shape: Shape;
  readonly listRows: number;
  readonly paneRows: number;
}

function bodyOf(view: View, chosen: Ui, terminal: Terminal, { items, room, isFramed }: List): Body {
  const { columns } = terminal;
  const keys = items.map((item) => ('id' in item ? item.id : null));
  // Which one is selected does not depend on how many are visible.
  const record = view.state.sessions.get(keys[settled(chosen, keys, 1).index] ?? '');
  const shape = record === undefined ? 'none' : paneShape(chosen, columns);
  const isBeside = shape === 'beside';
  const edge = isFramed ? frameSize : 0;
  const listWide = isBeside ? listColumns(columns) : columns;
  const paneWide = isBeside ? columns - listWide : columns;
  // Without a frame the title is a row.
  const paneEdge = isFramed ? edge : 1;
  const part = (rows: number) => ({ ...terminal, columns: paneWide - edge, rows: Math.max(0, rows) });
  const lines =
    record === undefined || shape === 'none'
      ? []
      : linesFor(view, { ...chosen, record }, part(shape === 'below' ? 0 : room - paneEdge));
  // A log grows.
  const wanted = chosen.tab === 'log' ? Number.POSITIVE_INFINITY : lines.length;
  const heights = divide({ room, shape, items: items.length, lines: wanted, edge, paneEdge });
  const { list: listHeight, pane: paneHeight } = heights;
  const hasTitles = listHeight - edge > Math.min(listRowsMin, items.length);
  const visible = Math.max(0, listHeight - edge - (hasTitles ? 1 : 0));
  const { index, ...ui } = settled(chosen, keys, visible);
  const rows = listRows(view, ui, { ...terminal, columns: listWide - edge }, { items, index, visible, hasTitles });
  const position = positionOf(view, items, ui.top, visible);
  const title: ScreenCell[] = isFramed ? [{ text: ' Sessions ', tone: 'strong' }] : [];
  const isFocused = ui.focus === 'list' || shape === 'none';
  const list = paneOf(
    { title, end: isFramed ? framedEnd(where(ui, position)) : [], rows, on: { on: 'list' } },
    { columns: listWide, height: listHeight, isFramed, isFocused },
  );
  const counts = { shape, listRows: visible, paneRows: Math.max(0, paneHeight - paneEdge) };
  if (record === undefined || paneHeight === 0) return { bands: [[list]], ui, ...counts };
  const content = detailsContent(view, { ...chosen, record }, part(counts.paneRows), lines);
  const size = { columns: paneWide, height: paneHeight, isFramed, isFocused: !isFocused || shape === 'full' };
  const pane = paneOf(content, size);
  const bands = shape === 'full' ? [[pane]] : isBeside ? [[list, pane]] : [[list], [pane]];
  return { bands, ui: { ...ui, scroll: content.scroll }, ...counts };
}

function framedEnd(cells: readonly ScreenCell[]): ScreenCell[] {
  return cells.length === 0 ? [] : [{ text: ' ' }, ...cells];
}

interface Shares {
  readonly room: number;
  readonly shape: Shape;
  readonly items: number;
  readonly lines: number;
  readonly edge: number;
  readonly paneEdge: number;
}

/** The heights of list and details, with their borders. */
function divide({ room, shape, items, lines, edge, paneEdge }: Shares): {
  readonly list: number;
  readonly pane: number;
} {
  if (shape === 'full') return { list: 0, pane: room };
  if (shape !== 'below') return { list: room, pane: shape === 'none' ? 0 : room };
  // A short list leaves the room it does not need.
  const both = room - edge - 1 - paneEdge;
  const most = Math.max(paneRowsMin, Math.floor(both * 0.55));
  const rows = Math.min(Math.max(Math.min(most, lines), both - items), both - Math.min(listRowsMin, items));
  return rows < 1 ? { list: room, pane: 0 } : { list: room - rows - paneEdge, pane: rows + paneEdge };
}

interface ListPart {
  readonly items: readonly ListItem[];
  readonly index: number;
  readonly visible: number;
  readonly hasTitles: boolean;
}

function listRows(view: View, ui: Ui, terminal: Terminal, { items, index, visible, hasTitles }: ListPart): Row[] {
  const { columns } = terminal;
  const { hasTimeline, sorting, marked } = ui;
  const layout = layoutFor(view.state, columns);
  const titles = columnTitles(layout, terminal, { doing: hasTimeline ? 'TIMELINE' : 'DOING', sorting });
  const rows: Row[] = hasTitles ? [titles] : [];
  const span = hasTimeline ? { span: timeSpan(view) } : {};
  if (items.length === 0) {
    const text = view.state.sessions.size === 0 ? 'No sessions so far.' : 'Nothing matches. Escape shows all sessions.';
    rows.push(rowOf([{ text: `    ${text}`, tone: 'dim' }], columns));
  }
  for (const [nth, item] of items.slice(ui.top, ui.top + visible).entries()) {
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
  return rows;
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
  const rows = [...lines, [], ...signs, [{ text: ' Any key returns.', tone: 'dim' } as const]].map((cells) =>
    rowOf(cells, columns),
  );
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
