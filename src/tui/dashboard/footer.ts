/** The last rows: what the last key came to, and below it the open question or input, else the keys. */
import type { SessionStatus } from '../../core/status.ts';
import { safeText } from '../../view/terminal-text.ts';
import { titleOf, withLocalTimes } from '../../view/wording.ts';
import { type Cell, endOf, foreign, plainWidths, type Row, rowBetween, rowOf, widthOf, wrapCells } from './cells.ts';
import { staysFor, toggleOf } from './keys.ts';
import type { Mode, Shape, Ui } from './ui.ts';
import type { Terminal, View } from './view.ts';

export interface Footer {
  readonly row: Row;
  readonly cursor?: number;
}

export interface ListPosition {
  readonly first: number;
  readonly last: number;
  readonly listed: number;
  readonly all: number;
}

interface Chosen extends Ui {
  readonly shape: Shape;
}

/** A notice of the view takes the place of the keys: it is for terminals that have no rows to spare for it. */
export function footerRow(view: View, ui: Chosen, terminal: Terminal, position: ListPosition): Footer {
  const { columns } = terminal;
  switch (ui.mode.kind) {
    case 'filter':
      return input(' filter: ', ui.filter, terminal);
    case 'say':
      return input(` say to ${plainWidths(titleOf(view.state, ui.mode.sessionId))}: `, ui.mode.text, terminal);
    case 'ask-pause':
    case 'ask-start':
    case 'ask-go-on':
    case 'ask-leave':
    case 'ask-open':
      return { row: rowOf([{ text: ` ${question(ui.mode.kind, view, columns - 1)}`, tone: 'warn' }], columns) };
    default:
      return { row: bottomRow(view, ui, terminal, position) };
  }
}

type Question = Extract<Mode['kind'], `ask-${string}`>;

const questions: Readonly<Record<Question, readonly [question: string, otherwise: string]>> = {
  'ask-leave': ['Leave the sessions running (l), or pause them (p)?', 'stay'],
  'ask-open': ['Open the worktree (w), the log (l) or the report (r)?', 'no'],
  'ask-pause': ['Pause all: now (y), when running sessions have finished (d), freeze (f)?', 'no'],
  'ask-start': ['Start the group for real, with a runner of its own (y)?', 'no'],
  'ask-go-on': ['Nobody runs the group. Go on (y), or pause what still works (p)?', 'no'],
};

/** Where leaving would undo what was asked for. */
const stays = {
  frozen: 'Everything is frozen. Pause it now and leave (p)?',
  draining: 'It pauses when what runs has finished. Pause it now and leave (p)?',
  pausing: 'It is being paused, and this ends then; Ctrl-C leaves at once.',
} as const;

function question(kind: Question, { state }: View, columns: number): string {
  const [usual, otherwise] = questions[kind];
  const stay = kind === 'ask-leave' ? staysFor(state) : null;
  const asked = stay === null ? usual : stays[stay];
  const whole = `${asked} Any other key: ${otherwise}.`;
  return whole.length <= columns ? whole : asked;
}

function input(label: string, text: string, { columns, glyphs }: Terminal): Footer {
  const start = Bun.stringWidth(label) <= columns / 2 ? label : ' > ';
  const clean = plainWidths(safeText(text).replaceAll('\n', glyphs.newline).replaceAll('\t', ' '));
  // One column is left for the cursor.
  const shown = endOf(clean, Math.max(1, columns - Bun.stringWidth(start) - 1));
  const cursor = Math.min(columns - 1, Bun.stringWidth(start) + Bun.stringWidth(shown));
  return { row: rowOf([{ text: start, tone: 'accent' }, { text: shown }], columns), cursor };
}

function bottomRow(view: View, ui: Chosen, { columns }: Terminal, position: ListPosition): Row {
  const right = where(ui, position);
  return rowBetween(hints(view, ui, columns - widthOf(right) - 1), right, columns);
}

/** So much of the list gives way to what a key came to. */
const noticeRowsMax = 4;
const noticeColumnsMax = 1_000;

/**
 * What keys came to and what just happened, for above the last row: whole where `rowsMax` allows, for it often ends in
 * a command. The newest have the room.
 */
export function noticeRows({ notices = [], nowMs }: View, { columns }: Terminal, rowsMax: number): Row[] {
  const most = Math.max(0, Math.min(noticeRowsMax, rowsMax));
  let shown: Cell[][] = [];
  for (const { text, tone } of notices.toReversed()) {
    const said = foreign(withLocalTimes(text, nowMs), noticeColumnsMax);
    const lines = wrapCells([tone === undefined ? { text: said } : { text: said, tone }], columns - 2);
    if (shown.length > 0 && shown.length + lines.length > most) break;
    shown = [...lines.slice(0, most), ...shown];
  }
  return shown.map((line) => rowOf([{ text: ' ' }, ...line], columns));
}

function hints(view: View, ui: Chosen, columns: number): Cell[] {
  const notice = view.notices?.at(-1);
  if (notice !== undefined) {
    const text = ` ${foreign(notice.text, columns - 1)}`;
    return [notice.tone === undefined ? { text } : { text, tone: notice.tone }];
  }
  const all =
    ui.shape === 'full'
      ? ['enter list', 'tab next', ...actions(view, ui), ...ownHands(view, ui), '? help', 'q back']
      : [
          ui.shape === 'none' ? 'enter open' : 'enter close',
          ...actions(view, ui),
          'l log',
          '/ find',
          'f problems',
          ...ownHands(view, ui),
          '? help',
          'q quit',
        ];
  const cells: Cell[] = [];
  let left = columns + 1;
  const kept = new Set<string>();
  for (const hint of [...all.slice(-2), ...all.slice(0, -2)]) {
    left -= hint.length + 2;
    if (left >= 0) kept.add(hint);
  }
  for (const hint of all.filter((one) => kept.has(one))) {
    const [key = '', ...words] = hint.split(' ');
    cells.push(
      { text: cells.length === 0 ? ' ' : '  ' },
      { text: key, tone: 'accent' },
      { text: ` ${words.join(' ')}`, tone: 'dim' },
    );
  }
  return cells;
}

function actions({ state, runner }: View, { selected }: Ui): string[] {
  const { status } = state;
  if (runner === 'none') {
    if (status === 'completed' || status === 'archived') return [];
    return [status === 'created' ? 'P start' : 'P go on'];
  }
  const record = state.sessions.get(selected ?? '');
  const toggle = record === undefined ? null : toggleOf(record);
  const is = (wanted: SessionStatus): boolean => record?.state.status === wanted;
  return [
    ...(toggle === null ? [] : [`p ${toggle.word}`]),
    ...(is('failed') ? ['r retry'] : []),
    ...(record === undefined || is('completed') ? [] : ['s say']),
    'P group',
  ];
}

function ownHands({ state }: View, { selected }: Ui): string[] {
  const record = state.sessions.get(selected ?? '');
  const status = record?.state.status;
  if (record === undefined || status === 'completed') return [];
  return [...(status === 'pending' ? [] : ['a take over']), ...(status === 'running' ? [] : ['e edit'])];
}

function where(ui: Ui, position: ListPosition): Cell[] {
  const { marked } = ui;
  const marks: Cell[] = marked.length === 0 ? [] : [{ text: `${marked.length} marked `, tone: 'accent' }];
  return [...marks, ...listed(ui, position)];
}

function listed(ui: Ui, { first, last, listed: count, all }: ListPosition): Cell[] {
  const filtered = count < all || ui.filter !== '' || ui.onlyProblems;
  const of = filtered ? `${count} of ${all} shown` : '';
  // The list is hidden by the pane.
  if (last < first && count > 0) return [];
  if (last - first + 1 >= count) return of === '' ? [] : [{ text: `${of} `, tone: 'warn' }];
  return [{ text: `${first}-${last} of ${count}${filtered ? ` (${all})` : ''} `, tone: filtered ? 'warn' : 'dim' }];
}
