/** tui/dashboard/: what the dashboard shows. This file: the whole screen, pure. Only visible rows are built. */
import type { SessionId } from '../../core/group.ts';
import { frameSize, hitAt, type Layout, type Pane, type PaneSize, paneOf } from '../layout.ts';
import { keyHints, type PaletteChoice, paletteChoices } from './actions.ts';
import { footerRow, headContent, noticeRows, where, withQuestion } from './bars.ts';
import { fitLine, padded, type Row, rowOf, type ScreenCell, tagged } from './cells.ts';
import { detailsContent, linesFor } from './details.ts';
import { type ListItem, listItems, sessionIdsOf } from './list.ts';
import { columnTitles, isTurning, layoutFor, listColumns, sessionRow } from './session-row.ts';
import { type Hit, hasDetailsFocus, paneShape, type Shape, settled, type Ui } from './ui.ts';
import type { Terminal, View } from './view.ts';

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
  const chosen = { ...given, selected: followed(view, given) ?? given.selected };
  const items = listItems(view, chosen);
  const head = headPane(view, terminal, isFramed);
  const notice = noticeRows(withQuestion(view, chosen, terminal), terminal, rows - head.height - 1 - listRowsMin);
  const room = Math.max(0, rows - head.height - 1 - notice.length);
  const body = bodyOf(view, chosen, terminal, { items, room, isFramed });
  const { ui } = body;
  const ids = sessionIdsOf(items);
  const hit = (x: number, y: number): Hit | null => hitAt(layout, x, y);
  const index = Math.max(0, ids.indexOf(ui.selected ?? ''));
  const { listRows, paneRows, shape } = body;
  const context = { state: view.state, runner: view.runner, ids, index, listRows, paneRows, shape, hit };
  const { notices: _said, ...quiet } = view;
  const position = isFramed ? null : positionOf(view, items, ui.top, listRows);
  const last = { view: notice.length > 0 ? quiet : view, ui, hints: keyHints(ui, context), position };
  const footer = footerRow(last, terminal);
  const footSize = { columns, height: rows - head.height - room, isFramed: false };
  const foot = paneOf({ title: [], rows: [...notice, footer.row] }, footSize);
  const choices = ui.mode.kind === 'palette' ? paletteChoices(ui, context) : null;
  const size = { columns, height: room, isFramed, isFocused: true };
  const bands = choices === null ? body.bands : [[palettePane(choices, ui, size, terminal)]];
  const layout: Layout = {
    bands: [[head], ...bands, [foot]],
    ...(footer.cursor === undefined ? {} : { cursor: { x: footer.cursor, y: rows - 1 } }),
  };
  const isTurning = sessionIdsOf(items.slice(ui.top, ui.top + listRows)).some((id) => turns(view, id));
  return { ...layout, ui, shape, ids, index, listRows, paneRows, hit, isTurning };
}

const shortNames: Readonly<Record<string, string>> = {
  'page-up': 'pgup',
  'page-down': 'pgdn',
  escape: 'esc',
};
const keyColumns = 8;
const labelColumns = 46;

/** All actions that match the typed text. Actions that are not possible are grey, with the reason. */
function palettePane(choices: readonly PaletteChoice[], { mode }: Ui, size: PaneSize, { glyphs }: Terminal): Pane {
  const { columns, height, isFramed } = size;
  const [inner, room] = isFramed ? [columns - frameSize, height - frameSize] : [columns, height];
  const chosen = Math.min(mode.kind === 'palette' ? mode.index : 0, choices.length - 1);
  const top = Math.max(0, Math.min(chosen - Math.floor(room / 2), choices.length - room));
  const rows = choices.slice(top, top + room).map(({ action, label, refusal }, nth) => {
    const isChosen = top + nth === chosen;
    const keys = action.keys.map((key) => shortNames[key] ?? key).join(' ');
    const tone = refusal === null ? {} : ({ tone: 'dim' } as const);
    return rowOf(
      [
        { text: isChosen ? `${glyphs.marker} ` : '  ' },
        { text: padded(keys, keyColumns), tone: refusal === null ? 'accent' : 'dim' },
        { text: `${refusal === null ? label : padded(label, labelColumns)} `, ...tone },
        { text: fitLine(refusal ?? '', 200), ...tone },
      ],
      inner,
      isChosen,
    );
  });
  if (rows.length === 0) rows.push(rowOf([{ text: '  No command has this name.', tone: 'dim' }], inner));
  const end: ScreenCell[] = [{ text: ' enter run  esc close ', tone: 'dim' }];
  return paneOf({ title: isFramed ? [{ text: ' Commands ', tone: 'strong' }] : [], end, rows }, size);
}

function headPane(view: View, terminal: Terminal, isFramed: boolean): Pane {
  const { columns, rows } = terminal;
  const content = headContent(view, { ...terminal, columns: isFramed ? columns - frameSize : columns });
  const wanted = content.rows.length + (isFramed ? frameSize : 1);
  // In a small terminal the sessions come first.
  const height = isFramed ? wanted : Math.max(0, Math.min(wanted, rows - 1 - listRowsMin));
  return paneOf(content, { columns, height, isFramed });
}

/** Until the user chooses a session, the selection follows running sessions, and after the run a failed one. */
function followed({ state }: View, { home, filter, onlyProblems, selected }: Ui): SessionId | null {
  if (home !== null || filter !== '' || onlyProblems) return null;
  const ids = state.status === 'running' ? state.running : state.failed;
  return selected !== null && ids.has(selected) ? selected : (ids.values().next().value ?? null);
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
  // The selection does not depend on the number of visible rows.
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
  // A log may need any number of rows.
  const wanted = chosen.tab === 'log' ? Number.POSITIVE_INFINITY : lines.length;
  const heights = divide({ room, shape, items: items.length, lines: wanted, edge, paneEdge });
  const { list: listHeight, pane: paneHeight } = heights;
  const hasTitles = listHeight - edge > Math.min(listRowsMin, items.length);
  const visible = Math.max(0, listHeight - edge - (hasTitles ? 1 : 0));
  const { index, ...ui } = settled(chosen, keys, visible);
  const rows = listRows(view, ui, { ...terminal, columns: listWide - edge }, { items, index, visible, hasTitles });
  const position = positionOf(view, items, ui.top, visible);
  const title: ScreenCell[] = isFramed ? [{ text: ' Sessions', tone: 'strong' }, { text: `${choiceWords(ui)} ` }] : [];
  const isFocused = !hasDetailsFocus(ui, shape);
  const list = paneOf(
    { title, end: isFramed ? framedEnd(where(ui, position)) : [], rows, on: { on: 'list' } },
    { columns: listWide, height: listHeight, isFramed, isFocused },
  );
  const counts = { shape, listRows: visible, paneRows: Math.max(0, paneHeight - paneEdge) };
  if (record === undefined || paneHeight === 0) return { bands: [[list]], ui, ...counts };
  const content = detailsContent(view, { ...chosen, record }, part(counts.paneRows), lines);
  const size = { columns: paneWide, height: paneHeight, isFramed, isFocused: !isFocused };
  const pane = paneOf(content, size);
  const bands = shape === 'full' ? [[pane]] : isBeside ? [[list, pane]] : [[list], [pane]];
  return { bands, ui: { ...ui, scroll: content.scroll }, ...counts };
}

/** The order and filter that the user chose. */
function choiceWords({ sorting, onlyProblems, filter }: Ui): string {
  const parts = [
    sorting === 'graph' ? '' : ` by ${sorting}`,
    onlyProblems ? ', problems only' : '',
    filter === '' ? '' : `, with ${fitLine(filter, 20)}`,
  ];
  return parts.join('');
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
  const layout = layoutFor(view, columns);
  const rows: Row[] = hasTitles ? [columnTitles(layout, columns)] : [];
  if (items.length === 0) {
    const text = view.state.sessions.size === 0 ? 'No sessions yet.' : 'Nothing matches. Escape shows all sessions.';
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
    const isMarked = ui.marked.includes(item.id);
    const row = sessionRow(view, { record, lanes: item.lanes, isSelected, isMarked }, layout, terminal);
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
