/** tui/home/: the screen over all groups: what it shows, as rows, and what each key does. */

import type { HomeGroup, HomeWorkflow } from '../../app/watch/overview.ts';
import type { GroupId } from '../../core/group.ts';
import { formatAge, formatMoney, plural, type Tone } from '../../view/format.ts';
import { statusTone } from '../../view/wording.ts';
import {
  fitLine,
  type Glyphs,
  padded,
  type Row,
  rowBetween,
  rowOf,
  type ScreenCell,
  wrapCells,
} from '../dashboard/cells.ts';
import type { KeyName, Press } from '../dashboard/keys.ts';
import type { Notice } from '../dashboard/view.ts';
import { frameSize, type Layout, type PaneContent, paneOf } from '../layout.ts';

export interface HomeFrame extends Layout {
  readonly ui: HomeUi;
  readonly groups: readonly HomeGroup[];
  readonly index: number;
  readonly listRows: number;
}

/** Smaller terminals have no room for a frame. */
const framedRows = 12;
const framedColumns = 50;

export function homeFrame(view: HomeView, chosen: HomeUi, terminal: HomeTerminal): HomeFrame {
  const { columns, rows } = terminal;
  const isFramed = rows >= framedRows && columns >= framedColumns;
  const edge = isFramed ? frameSize : 0;
  const inner = { ...terminal, columns: columns - edge };
  const groups = inHomeOrder(view.groups, view.nowMs);
  const notice = noticeRows(view, columns, rows - 1 - listRowsMin);
  const room = Math.max(0, rows - 1 - notice.length);
  // The title of a frame is in its border.
  const within = room - (isFramed ? edge : 1);
  const found = groups.findIndex(({ id }) => id === chosen.selected);
  // The selected row is gone: select the row that took its place.
  const index = found >= 0 ? found : Math.max(0, Math.min(chosen.top, groups.length - 1));
  const listRows = Math.max(1, within - 1);
  const top = Math.max(0, Math.min(chosen.top, groups.length - listRows, index), index - listRows + 1);
  const ui = { ...chosen, top, selected: groups[index]?.id ?? null };
  const list = (): Row[] => {
    if (groups.length === 0) return emptyRows(view, inner.columns);
    const shown = groups.slice(top, top + listRows);
    const width = nameColumns(inner.columns, groups);
    const rowFor = (group: HomeGroup) => groupRow(group, view, { ...inner, width }, group.id === ui.selected);
    return [titles(inner.columns, width), ...shown.map(rowFor)];
  };
  const body = bodyRows(view, ui, inner, within) ?? list();
  const size = { columns, height: room, isFramed, isFocused: true };
  const pane = paneOf({ ...headOf(view), rows: body }, size);
  const footer = footerRow(ui, groups, { ...terminal, first: top, listRows });
  const foot = paneOf({ title: [], rows: [...notice, footer] }, { columns, height: rows - room, isFramed: false });
  return { bands: [[pane], [foot]], ui, groups, index, listRows };
}

/** A notice about a key may take this many rows from the list. */
const noticeRowsMax = 4;
const noticeColumnsMax = 1_000;
const listRowsMin = 3;

function noticeRows({ notice }: HomeView, columns: number, rowsMax: number): Row[] {
  if (notice === undefined) return [];
  const text = fitLine(notice.text, noticeColumnsMax);
  const lines = wrapCells([{ text, tone: notice.tone ?? 'strong' }], columns - 2);
  return lines
    .slice(0, Math.max(0, Math.min(noticeRowsMax, rowsMax)))
    .map((line) => rowOf([{ text: ' ' }, ...line], columns));
}

function headOf({ programName, groups, nowMs }: HomeView): Pick<PaneContent, 'title' | 'end'> {
  const running = groups.filter(({ status }) => status.startsWith('running')).length;
  const waiting = groups.filter((group) => waitsForPerson(group, nowMs)).length;
  const end: ScreenCell[] = [
    ...(waiting === 0 ? [] : [{ text: ` ${waiting} waiting for you `, tone: 'warn' as const }]),
    ...(running === 0 ? [] : [{ text: ` ${running} running `, tone: 'accent' as const }]),
    { text: ` ${plural(groups.length, 'group')} `, tone: 'dim' as const },
  ];
  return { title: [{ text: ` ${programName} `, tone: 'strong' }], end };
}

function bodyRows(view: HomeView, { mode }: HomeUi, terminal: HomeTerminal, room: number): Row[] | null {
  if (mode.kind === 'help') return helpRows(terminal.columns);
  return mode.kind === 'choose' ? workflowRows(view.workflows, mode.index, terminal, room) : null;
}

const statusColumns = 12;
const doneColumns = 7;
const costColumns = 13;
const ageColumns = 5;
const fixedColumns = 4 + statusColumns + doneColumns + costColumns + ageColumns + 4;
const nameColumnsMin = 12;
const nameColumnsMax = 36;

const messageColumnsMin = 20;

/** As wide as the longest name, but the messages of groups keep some room. */
function nameColumns(columns: number, groups: readonly HomeGroup[]): number {
  const longest = Math.max(...groups.map(({ name }) => Bun.stringWidth(name)));
  const most = columns - fixedColumns - (groups.some(({ message }) => message !== undefined) ? messageColumnsMin : 0);
  return Math.max(nameColumnsMin, Math.min(nameColumnsMax, longest, most));
}

function titles(columns: number, width: number): Row {
  const text = [
    `    ${padded('GROUP', width)}`,
    padded('STATUS', statusColumns),
    padded('DONE', doneColumns, 'right'),
    padded('COST', costColumns, 'right'),
    padded('AGE', ageColumns, 'right'),
  ].join(' ');
  return rowOf([{ text, tone: 'dim' }], columns);
}

function groupRow(
  group: HomeGroup,
  { nowMs }: HomeView,
  terminal: HomeTerminal & { readonly width: number },
  isSelected: boolean,
): Row {
  const { columns, glyphs, width } = terminal;
  const [word = ''] = group.status.split(' ');
  const tone = statusTone(word);
  const waits = waitsForPerson(group, nowMs);
  const cost = `${formatMoney(group.costUsd, group.estimated)}${group.isRehearsal ? ' fake' : ''}`;
  const left = columns - fixedColumns - width - 1;
  const cells: ScreenCell[] = [
    { text: isSelected ? glyphs.marker : ' ' },
    { text: `${glyphOf(word, glyphs)}  `, tone },
    { text: `${padded(fitLine(group.name, width), width)} `, ...(waits ? { tone: 'strong' as const } : {}) },
    { text: `${padded(word, statusColumns)} `, tone },
    { text: `${padded(`${group.done}/${group.total}`, doneColumns, 'right')} ` },
    { text: `${padded(cost, costColumns, 'right')} `, ...(group.isRehearsal ? { tone: 'dim' as const } : {}) },
    { text: padded(formatAge(nowMs - Date.parse(group.createdAt)), ageColumns, 'right'), tone: 'dim' },
    { text: '  ' },
    { text: fitLine(group.message ?? group.status.slice(word.length + 1), left), tone: waits ? 'warn' : 'dim' },
  ];
  return rowOf(cells, columns, isSelected);
}

function glyphOf(status: string, glyphs: Glyphs): string {
  const signs: Readonly<Record<string, string>> = {
    running: glyphs.running,
    completed: glyphs.completed,
    archived: glyphs.completed,
    failed: glyphs.failed,
    paused: glyphs.paused,
    interrupted: glyphs.paused,
    damaged: glyphs.failed,
  };
  return signs[status] ?? glyphs.pending;
}

function emptyRows({ programName }: HomeView, columns: number): Row[] {
  const line = (key: string, meaning: string): Row =>
    rowOf([{ text: `   ${padded(key, 24)}`, tone: 'accent' }, { text: meaning }], columns);
  return [
    rowOf([], columns),
    rowOf([{ text: ' There are no groups yet.', tone: 'strong' }], columns),
    rowOf([], columns),
    line('n', 'start one from a workflow'),
    line(`${programName} init`, 'write a workflow over the projects that lie here'),
    line(`${programName} try`, 'see a group at work, at no cost'),
  ];
}

function workflowRows(
  workflows: readonly HomeWorkflow[],
  index: number,
  { columns, glyphs }: HomeTerminal,
  room: number,
): Row[] {
  const listRows = Math.max(1, room - 1);
  const top = Math.max(0, index - listRows + 1);
  const shown = workflows.slice(top, top + listRows).map(({ reference, origin }, place) => {
    const isSelected = top + place === index;
    const name = padded(fitLine(reference, 40), 40);
    return rowOf(
      [{ text: ` ${isSelected ? glyphs.marker : ' '} ${name}` }, { text: `  ${origin}`, tone: 'dim' }],
      columns,
      isSelected,
    );
  });
  return [rowOf([{ text: ' A new group from', tone: 'strong' }], columns), ...shown];
}

const keys: readonly (readonly [keys: string, meaning: string])[] = [
  ['up down, j k', 'select a group'],
  ['page keys, g G', 'a page further, the first, the last'],
  ['enter', 'the dashboard of the group; q comes back here'],
  ['n', 'start a new group from a workflow'],
  ['d', 'delete the group, after a question'],
  ['ctrl-l, ctrl-z', 'redraw the screen; back to the shell, fg returns'],
  ['q, ctrl-c', 'leave; running groups continue'],
];

function helpRows(columns: number): Row[] {
  return [
    rowOf([{ text: ' Keys', tone: 'strong' }], columns),
    ...keys.map(([key, meaning]) =>
      rowOf([{ text: `  ${padded(key, 18)}`, tone: 'accent' }, { text: meaning }], columns),
    ),
    rowOf([], columns),
    rowOf([{ text: ' The first groups wait for you: paused, interrupted, or failed within a day.' }], columns),
    rowOf([{ text: ' Any key returns.', tone: 'dim' }], columns),
  ];
}

interface Place extends HomeTerminal {
  readonly first: number;
  readonly listRows: number;
}

function footerRow({ mode }: HomeUi, groups: readonly HomeGroup[], place: Place): Row {
  const { columns } = place;
  const say = (text: string, tone: Tone): Row => rowOf([{ text: ` ${fitLine(text, columns - 1)}`, tone }], columns);
  switch (mode.kind) {
    case 'ask-delete': {
      const name = groups.find(({ id }) => id === mode.id)?.name ?? mode.id;
      return say(`Delete ${name} with its transcripts (y)? Any other key: no.`, 'warn');
    }
    case 'ask-start':
      return say(
        `Rehearse ${mode.reference} at no cost (enter, r), or run it for real (y)? Any other key: no.`,
        'warn',
      );
    default:
      return hintRow(mode.kind === 'choose' ? choosing : browsing, groups.length, place);
  }
}

const browsing = ['enter open', 'n new', 'd delete', '? help', 'q quit'];
const choosing = ['enter choose', 'up down select', 'any other key: back'];

function hintRow(hints: readonly string[], all: number, { columns, first, listRows }: Place): Row {
  const cells = hints.flatMap((hint, place): ScreenCell[] => {
    const [key = '', ...words] = hint.split(' ');
    const gap = { text: place === 0 ? ' ' : '  ' };
    return [gap, { text: key, tone: 'accent' }, { text: ` ${words.join(' ')}`, tone: 'dim' }];
  });
  const last = Math.min(all, first + listRows);
  const where: ScreenCell[] = all > listRows ? [{ text: `${first + 1}-${last} of ${all} `, tone: 'dim' }] : [];
  return rowBetween(cells, where, columns);
}

export interface HomeView {
  readonly groups: readonly HomeGroup[];
  readonly workflows: readonly HomeWorkflow[];
  readonly programName: string;
  readonly nowMs: number;
  readonly notice?: Notice;
}

export interface HomeTerminal {
  readonly columns: number;
  readonly rows: number;
  readonly glyphs: Glyphs;
}

/** An older failure no longer needs attention. */
const staleMs = 24 * 3_600_000;

/** The user has to decide about it. */
export function waitsForPerson({ status, updatedAt }: HomeGroup, nowMs: number): boolean {
  if (status === 'paused' || status === 'interrupted') return true;
  return status === 'failed' && nowMs - Date.parse(updatedAt) < staleMs;
}

/** Groups that wait for the user first, then running, then created ones; the newest first in each. */
export function inHomeOrder(groups: readonly HomeGroup[], nowMs: number): readonly HomeGroup[] {
  const rank = (group: HomeGroup): number => {
    if (waitsForPerson(group, nowMs)) return 0;
    if (group.status.startsWith('running')) return 1;
    if (group.status === 'created') return 2;
    return group.status === 'archived' ? 4 : 3;
  };
  return groups.toSorted(
    (a, b) => rank(a) - rank(b) || b.createdAt.localeCompare(a.createdAt) || b.id.localeCompare(a.id),
  );
}

export type HomeMode =
  | { readonly kind: 'browse' }
  | { readonly kind: 'help' }
  | { readonly kind: 'ask-delete'; readonly id: GroupId }
  | { readonly kind: 'choose'; readonly index: number }
  | { readonly kind: 'ask-start'; readonly reference: string };

export interface HomeUi {
  readonly selected: GroupId | null;
  readonly top: number;
  readonly mode: HomeMode;
}

export const firstHomeUi: HomeUi = { selected: null, top: 0, mode: { kind: 'browse' } };

export type HomeCommand =
  | { readonly do: 'open' | 'delete'; readonly id: GroupId }
  | { readonly do: 'start'; readonly reference: string; readonly rehearse: boolean }
  | { readonly do: 'quit' }
  | { readonly do: 'redraw' }
  | { readonly do: 'suspend' }
  | { readonly do: 'tell'; readonly message: string };

export interface HomeKeyContext {
  readonly groups: readonly HomeGroup[];
  readonly workflows: readonly HomeWorkflow[];
  readonly index: number;
  readonly listRows: number;
}

export interface HomePressed {
  readonly ui: HomeUi;
  readonly command?: HomeCommand;
}

const browse: HomeMode = { kind: 'browse' };

export function pressHome(ui: HomeUi, press: Press, situation: HomeKeyContext): HomePressed {
  const key = 'key' in press ? press.key : null;
  if (key === 'ctrl-c') return { ui, command: { do: 'quit' } };
  if (key === 'ctrl-z') return { ui, command: { do: 'suspend' } };
  if (key === 'ctrl-l') return { ui, command: { do: 'redraw' } };
  // A text that lands here by accident must not press a key with each of its letters.
  const text = 'text' in press && press.isPasted !== true && press.text.length === 1 ? press.text : null;
  const { mode } = ui;
  switch (mode.kind) {
    case 'help':
      return { ui: { ...ui, mode: browse } };
    case 'ask-delete': {
      const quiet = { ...ui, mode: browse };
      return text?.toLowerCase() === 'y' ? { ui: quiet, command: { do: 'delete', id: mode.id } } : { ui: quiet };
    }
    case 'choose':
      return choose(ui, mode.index, key ?? text, situation);
    case 'ask-start': {
      const { reference } = mode;
      const quiet = { ...ui, mode: browse };
      if (text === 'r' || key === 'enter') return { ui: quiet, command: { do: 'start', reference, rehearse: true } };
      return text === 'y' ? { ui: quiet, command: { do: 'start', reference, rehearse: false } } : { ui: quiet };
    }
    case 'browse':
      return key === null ? letter(ui, text, situation) : move(ui, key, situation);
  }
}

function choose(ui: HomeUi, index: number, key: string | null, { workflows }: HomeKeyContext): HomePressed {
  const at = (to: number): HomePressed => {
    const within = Math.max(0, Math.min(to, workflows.length - 1));
    return { ui: { ...ui, mode: { kind: 'choose', index: within } } };
  };
  switch (key) {
    case 'up':
    case 'k':
      return at(index - 1);
    case 'down':
    case 'j':
      return at(index + 1);
    case 'home':
      return at(0);
    case 'end':
      return at(workflows.length - 1);
    case 'enter': {
      const chosen = workflows[index];
      if (chosen === undefined) return { ui: { ...ui, mode: browse } };
      return { ui: { ...ui, mode: { kind: 'ask-start', reference: chosen.reference } } };
    }
    default:
      return { ui: { ...ui, mode: browse } };
  }
}

function letter(ui: HomeUi, text: string | null, situation: HomeKeyContext): HomePressed {
  const { groups, index, workflows } = situation;
  const selected = groups[index];
  switch (text) {
    case 'j':
      return move(ui, 'down', situation);
    case 'k':
      return move(ui, 'up', situation);
    case 'g':
      return move(ui, 'home', situation);
    case 'G':
      return move(ui, 'end', situation);
    case ' ':
      return move(ui, 'page-down', situation);
    case '?':
    case 'h':
      return { ui: { ...ui, mode: { kind: 'help' } } };
    case 'q':
      return { ui, command: { do: 'quit' } };
    case 'd':
      if (selected === undefined) return { ui };
      if (selected.status.startsWith('running')) {
        return { ui, command: { do: 'tell', message: 'It is running. Open it with enter and pause it with P first.' } };
      }
      return { ui: { ...ui, mode: { kind: 'ask-delete', id: selected.id } } };
    case 'n': {
      const message = 'There is no workflow in this folder and no template of one.';
      if (workflows.length === 0) return { ui, command: { do: 'tell', message } };
      return { ui: { ...ui, mode: { kind: 'choose', index: 0 } } };
    }
    default:
      return { ui };
  }
}

function move(ui: HomeUi, key: KeyName, { groups, index, listRows }: HomeKeyContext): HomePressed {
  const page = Math.max(1, listRows - 1);
  const to = (place: number): HomePressed => {
    const group = groups[Math.max(0, Math.min(place, groups.length - 1))];
    return { ui: group === undefined ? ui : { ...ui, selected: group.id } };
  };
  switch (key) {
    case 'up':
      return to(index - 1);
    case 'down':
      return to(index + 1);
    case 'page-up':
      return to(index - page);
    case 'page-down':
      return to(index + page);
    case 'home':
      return to(0);
    case 'end':
      return to(groups.length - 1);
    case 'enter':
    case 'right': {
      const selected = groups[index];
      return selected === undefined ? { ui } : { ui, command: { do: 'open', id: selected.id } };
    }
    default:
      return { ui };
  }
}
