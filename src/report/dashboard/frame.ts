/**
 * report/dashboard/: what the dashboard shows. This file: the whole screen from state, live progress and what the
 * person chose: pure, so that it can be tested without a terminal. Only what is visible is made into rows, however
 * many sessions there are.
 */
import type { SessionId } from '../../core/group.ts';
import { asciiRow, type Row, rowOf } from './cells.ts';
import { paneLines, paneRows } from './details.ts';
import { footerRow, noticeRows } from './footer.ts';
import { headerRows } from './header.ts';
import { helpRows } from './help.ts';
import type { Lane } from './order.ts';
import { placeSessions } from './order.ts';
import { columnTitles, layoutFor, sessionRow } from './session-row.ts';
import { settled, type Ui } from './ui.ts';
import { listedSessions, type Terminal, type View } from './view.ts';

export interface Frame {
  /** As many as the terminal has. */
  readonly rows: readonly Row[];
  /** Where something is being typed; absent = no cursor. */
  readonly cursor?: { readonly x: number; readonly y: number };
  /** What was chosen, with selection and scrolling brought within bounds. */
  readonly ui: Ui;
  readonly ids: readonly SessionId[];
  readonly index: number;
  readonly listRows: number;
  readonly paneRows: number;
}

/** Smaller terminals get the rows that fit, from the top. */
const listRowsMin = 3;
const paneRowsMin = 6;

export function frameOf(view: View, chosen: Ui, terminal: Terminal): Frame {
  const { columns, rows } = terminal;
  const ids = listedSessions(view, chosen);
  const rule = rowOf([{ text: terminal.glyphs.rule.repeat(columns), tone: 'dim' }], columns);
  const head = [...headerRows(view, terminal), rule];
  // In a small terminal the sessions come first.
  while (head.length > 1 && rows - head.length - 1 < listRowsMin) head.pop();
  const notice = noticeRows(view, terminal, rows - head.length - 1 - listRowsMin);
  const room = Math.max(1, rows - head.length - 1 - notice.length);
  // Which one is selected does not depend on how many are visible.
  const selected = view.state.sessions.get(ids[settled(chosen, ids, 1).index] ?? '');
  const lines = selected === undefined || chosen.pane === 'none' ? [] : paneLines(view, selected, chosen.tab, terminal);
  // A log grows.
  const wanted = chosen.tab === 'log' ? Number.POSITIVE_INFINITY : lines.length;
  const heights = divide(room, chosen.pane, ids.length, wanted);
  const { index, ...ui } = settled(chosen, ids, heights.list);
  const body: Row[] = [];
  let scroll = ui.scroll;
  if (ui.mode.kind === 'help') body.push(...helpRows(terminal, view.runner === 'here'));
  else {
    if (heights.list > 0) body.push(...listRows(view, ui, terminal, { room, ids, index, height: heights.list }));
    if (heights.pane > 0 && selected !== undefined) {
      const pane = paneRows(view, selected, { ...ui, lines }, terminal, heights.pane);
      body.push(...pane.rows);
      scroll = pane.scroll;
    }
  }
  const blank = rowOf([], columns);
  const filled = [...body.slice(0, room), ...Array.from({ length: Math.max(0, room - body.length) }, () => blank)];
  const first = ui.top + 1;
  const position = {
    first,
    last: Math.min(ids.length, ui.top + heights.list),
    listed: ids.length,
    all: view.state.sessions.size,
  };
  const { notice: _said, ...quiet } = view;
  const footer = footerRow(notice.length > 0 ? quiet : view, ui, terminal, position);
  const whole = [...head, ...filled, ...notice, footer.row].slice(-rows);
  const all = terminal.glyphs.isAscii ? whole.map(asciiRow) : whole;
  return {
    rows: all,
    ...(footer.cursor === undefined ? {} : { cursor: { x: footer.cursor, y: all.length - 1 } }),
    ui: { ...ui, scroll },
    ids,
    index,
    listRows: heights.list,
    paneRows: Math.max(0, heights.pane - 1),
  };
}

interface Heights {
  /** Rows for sessions, the titles of the columns left out. */
  readonly list: number;
  /** Rows of the pane with its head. */
  readonly pane: number;
}

/** `lines`: what the pane has to show. */
function divide(room: number, pane: Ui['pane'], sessions: number, lines: number): Heights {
  if (pane === 'full') return { list: 0, pane: room };
  const list = room - titleRows(room);
  if (pane === 'none') return { list: Math.max(1, list), pane: 0 };
  // A short list leaves the room it does not need.
  const most = Math.max(paneRowsMin, Math.floor(room * 0.55));
  const wanted = Math.max(Math.min(most, lines + 1), list - sessions);
  const height = Math.max(0, Math.min(wanted, list - Math.min(listRowsMin, sessions)));
  return { list: Math.max(1, list - height), pane: height };
}

/** The titles of the columns, where there is room. */
function titleRows(room: number): number {
  return room > listRowsMin ? 1 : 0;
}

interface List {
  /** Rows of list and pane together. */
  readonly room: number;
  readonly ids: readonly SessionId[];
  readonly index: number;
  readonly height: number;
}

function listRows(view: View, ui: Ui, terminal: Terminal, { room, ids, index, height }: List): Row[] {
  const layout = layoutFor(view.state, terminal.columns);
  const rows: Row[] = titleRows(room) === 0 ? [] : [columnTitles(layout, terminal)];
  const whole = height + rows.length;
  if (ids.length === 0) {
    const text = view.state.sessions.size === 0 ? 'No sessions so far.' : 'Nothing matches. Escape shows all sessions.';
    rows.push(rowOf([{ text: `    ${text}`, tone: 'dim' }], terminal.columns));
  }
  const placed = placeSessions(view.state);
  // Lanes lead from row to row, so they say nothing when rows are missing.
  const isWhole = ids.length === placed.length;
  const none: readonly Lane[] = [];
  for (let place = ui.top; place < Math.min(ids.length, ui.top + height); place += 1) {
    const record = view.state.sessions.get(ids[place] as SessionId);
    if (record === undefined) continue;
    const lanes = isWhole ? (placed[place]?.lanes ?? none) : none;
    rows.push(sessionRow(view, { record, lanes, isSelected: place === index }, layout, terminal));
  }
  return [...rows, ...Array.from({ length: Math.max(0, whole - rows.length) }, () => rowOf([], terminal.columns))];
}
