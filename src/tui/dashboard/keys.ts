/** What each key does: it changes what is shown, or becomes a command that the caller carries out. */
import { defined } from '../../core/defined.ts';
import type { SessionId } from '../../core/group.ts';
import { openItems } from '../../core/item.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { titleOf } from '../../view/wording.ts';
import {
  arrangements,
  type DetailsPlace,
  type Hit,
  type Mode,
  type Shape,
  sortings,
  type Tab,
  tabs,
  type Ui,
} from './ui.ts';
import type { Runner } from './view.ts';

export const keyNames = [
  ...([
    'up',
    'down',
    'left',
    'right',
    'page-up',
    'page-down',
    'home',
    'end',
    'enter',
    'escape',
    'tab',
    'erase',
  ] as const),
  ...(['ctrl-c', 'ctrl-l', 'ctrl-u', 'ctrl-z'] as const),
] as const;
export type KeyName = (typeof keyNames)[number];

export type OpenTarget = 'worktree' | 'log' | 'report';

export type Press = { readonly key: KeyName } | { readonly text: string; readonly isPasted?: true } | MousePress;

export interface MousePress {
  readonly mouse: 'click' | 'wheel-up' | 'wheel-down';
  readonly x: number;
  readonly y: number;
}

type KeyPress = Exclude<Press, MousePress>;

export type KeyCommand =
  | { readonly do: 'pause-session' | 'resume-session' | 'retry-session'; readonly sessionIds: readonly SessionId[] }
  | { readonly do: 'say'; readonly sessionId: SessionId; readonly text: string; readonly item?: string }
  | { readonly do: 'open'; readonly sessionId: SessionId; readonly thing: OpenTarget }
  | { readonly do: 'attach' | 'edit'; readonly sessionId: SessionId }
  | { readonly do: 'pause-group'; readonly mode: 'now' | 'drain' | 'freeze' }
  | { readonly do: 'resume-group' }
  | { readonly do: 'quit' }
  | { readonly do: 'leave' }
  | { readonly do: 'interrupt' }
  | { readonly do: 'redraw' }
  | { readonly do: 'mouse'; readonly isOn: boolean }
  | { readonly do: 'suspend' }
  | { readonly do: 'tell'; readonly message: string };

export interface KeyContext {
  readonly state: GroupState;
  readonly ids: readonly SessionId[];
  readonly index: number;
  readonly listRows: number;
  readonly paneRows: number;
  readonly shape: Shape;
  readonly runner: Runner;
  hit(x: number, y: number): Hit | null;
}

export interface Pressed {
  readonly ui: Ui;
  readonly command?: KeyCommand;
}

/** A message is a line, not a file. */
const messageLengthMax = 8_000;
const filterLengthMax = 200;
/** Limits how far the help page scrolls. */
const helpRowsMax = 40;
const browse: Mode = { kind: 'browse' };

export function press(ui: Ui, key: Press, situation: KeyContext): Pressed {
  if ('mouse' in key) return { ui: pointed(ui, key, situation) };
  if ('key' in key && key.key === 'ctrl-c') return { ui: { ...ui, mode: browse }, command: { do: 'interrupt' } };
  if ('key' in key && key.key === 'ctrl-z') return { ui, command: { do: 'suspend' } };
  if ('key' in key && key.key === 'ctrl-l') return { ui, command: { do: 'redraw' } };
  const { mode } = ui;
  switch (mode.kind) {
    case 'help':
      return { ui: { ...ui, mode: leafed(mode, key) } };
    case 'filter':
      return refiltered(ui, typeFilter(ui, key));
    case 'say':
      return typeMessage(ui, mode, key);
    case 'ask-pause':
      return answered(ui, key, pauseAnswers);
    case 'ask-start':
      return answered(ui, key, { y: { do: 'resume-group' } });
    case 'ask-go-on':
      return answered(ui, key, { y: { do: 'resume-group' }, p: { do: 'pause-group', mode: 'now' } });
    case 'ask-open': {
      const open = (thing: OpenTarget): KeyCommand => ({ do: 'open', sessionId: mode.sessionId, thing });
      return answered(ui, key, { w: open('worktree'), l: open('log'), r: open('report') });
    }
    case 'ask-leave':
      return answered(ui, key, staysFor(situation.state) === null ? { l: { do: 'leave' }, ...pauseOnly } : pauseOnly);
    case 'browse':
      return 'key' in key ? move(ui, key.key, situation) : letter(ui, key, situation);
  }
}

/** Lines, or sessions, by which a wheel turns. */
const wheelStep = 3;

function pointed(ui: Ui, { mouse, x, y }: MousePress, situation: KeyContext): Ui {
  const { mode } = ui;
  const step = mouse === 'wheel-up' ? -wheelStep : mouse === 'wheel-down' ? wheelStep : 0;
  if (mode.kind === 'help') {
    return { ...ui, mode: step === 0 ? browse : leafedBy(mode, step) };
  }
  const hit = mode.kind === 'browse' ? situation.hit(x, y) : null;
  if (hit === null) return ui;
  const isOfList = hit.on === 'session' || hit.on === 'list';
  if (step !== 0) return isOfList ? selected(ui, situation, situation.index + step) : scrolled(ui, step);
  if (hit.on === 'tab') return opened(ui, ui.pane, hit.tab);
  if (hit.on !== 'session') return ui;
  // A second click opens what has no room beside it.
  if (hit.id === ui.selected && situation.shape === 'none') return opened(ui, 'split', ui.tab);
  return selected(ui, situation, situation.ids.indexOf(hit.id));
}

type HelpMode = Extract<Mode, { kind: 'help' }>;

/** A small terminal shows a part of the page at a time. */
function leafed(mode: HelpMode, key: KeyPress): Mode {
  const name = 'key' in key ? key.key : key.text;
  const steps: Readonly<Record<string, number>> = { down: 1, j: 1, up: -1, k: -1, 'page-down': 8, 'page-up': -8 };
  const step = Object.hasOwn(steps, name) ? steps[name] : undefined;
  return step === undefined ? browse : leafedBy(mode, step);
}

function leafedBy({ top }: HelpMode, step: number): HelpMode {
  return { kind: 'help', top: Math.max(0, Math.min(helpRowsMax, top + step)) };
}

function refiltered(before: Ui, { ui }: Pressed): Pressed {
  const isSame = ui.filter === before.filter && ui.onlyProblems === before.onlyProblems;
  return { ui: isSame ? ui : { ...ui, selected: null, top: 0, scroll: 0 } };
}

function typeFilter(ui: Ui, key: KeyPress): Pressed {
  if ('text' in key) return { ui: { ...ui, filter: typed(ui.filter, oneLine(key.text), filterLengthMax) } };
  switch (key.key) {
    case 'enter':
      return { ui: { ...ui, mode: browse } };
    case 'escape':
      return { ui: { ...ui, filter: '', mode: browse } };
    case 'erase':
      return { ui: ui.filter === '' ? { ...ui, mode: browse } : { ...ui, filter: withoutLast(ui.filter) } };
    case 'ctrl-u':
      return { ui: { ...ui, filter: '' } };
    default:
      return { ui };
  }
}

function typeMessage(ui: Ui, mode: Extract<Mode, { kind: 'say' }>, key: KeyPress): Pressed {
  const { sessionId, text, item } = mode;
  const changed = (now: string): Pressed => ({ ui: { ...ui, mode: { ...mode, text: now } } });
  if ('text' in key) return changed(typed(text, key.text.replaceAll(/\r\n?/g, '\n'), messageLengthMax));
  switch (key.key) {
    case 'enter':
      if (text.trim() === '') return { ui: { ...ui, mode: browse } };
      return {
        ui: { ...ui, mode: browse },
        command: { do: 'say', sessionId, text: text.trim(), ...defined({ item }) },
      };
    case 'escape':
      return { ui: { ...ui, mode: browse } };
    case 'erase':
      return changed(withoutLast(text));
    case 'ctrl-u':
      return changed('');
    default:
      return { ui };
  }
}

function typed(before: string, added: string, lengthMax: number): string {
  return (before + added).slice(0, lengthMax);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

function withoutLast(text: string): string {
  const last = [...new Intl.Segmenter().segment(text)].at(-1);
  return last === undefined ? '' : text.slice(0, last.index);
}

const pauseAnswers: Answers = {
  y: { do: 'pause-group', mode: 'now' },
  enter: { do: 'pause-group', mode: 'now' },
  d: { do: 'pause-group', mode: 'drain' },
  f: { do: 'pause-group', mode: 'freeze' },
};

type Answers = Readonly<Record<string, KeyCommand>>;

const pauseOnly: Answers = { p: { do: 'pause-group', mode: 'now' } };

/** Why the runner should not be left now: the next one would let everything go on. Null = it may be. */
export function staysFor({ pausing, draining, frozenUntil }: GroupState): 'frozen' | 'draining' | 'pausing' | null {
  if (frozenUntil !== undefined) return 'frozen';
  if (pausing === undefined) return null;
  return draining ? 'draining' : 'pausing';
}

function answered(ui: Ui, key: KeyPress, answers: Answers): Pressed {
  const now = { ...ui, mode: browse };
  const answer = 'text' in key ? key.text.toLowerCase() : key.key;
  const command = Object.hasOwn(answers, answer) ? answers[answer] : undefined;
  return command === undefined ? { ui: now } : { ui: now, command };
}

function move(ui: Ui, key: KeyName, situation: KeyContext): Pressed {
  const { shape, index, ids } = situation;
  const isFull = shape === 'full';
  const page = Math.max(1, (shape === 'none' ? situation.listRows : situation.paneRows) - 1);
  switch (key) {
    case 'up':
      return { ui: isFull ? scrolled(ui, -1) : selected(ui, situation, index - 1) };
    case 'down':
      return { ui: isFull ? scrolled(ui, 1) : selected(ui, situation, index + 1) };
    case 'page-up':
      return { ui: shape === 'none' ? selected(ui, situation, index - page) : scrolled(ui, -page) };
    case 'page-down':
      return { ui: shape === 'none' ? selected(ui, situation, index + page) : scrolled(ui, page) };
    case 'home':
      return { ui: isFull ? toEdge(ui, 'begin') : selected(ui, situation, 0) };
    case 'end':
      return { ui: isFull ? toEdge(ui, 'end') : selected(ui, situation, ids.length - 1) };
    case 'enter':
      if (isFull) return { ui: back(ui) };
      if (ids.length === 0) return { ui };
      return { ui: shape === 'none' ? opened(ui, 'split', ui.tab) : { ...ui, pane: 'none' } };
    case 'escape':
      if (isFull) return { ui: back(ui) };
      // What stands beside the list is part of it.
      if (shape === 'below') return { ui: { ...ui, pane: 'none' } };
      if (ui.marked.length > 0) return { ui: { ...ui, marked: [] } };
      return refiltered(ui, { ui: { ...ui, filter: '', onlyProblems: false } });
    case 'tab':
    case 'right':
      return { ui: shape === 'none' ? ui : opened(ui, ui.pane, neighbour(ui.tab, 1)) };
    case 'left':
      return { ui: shape === 'none' ? ui : opened(ui, ui.pane, neighbour(ui.tab, -1)) };
    default:
      return { ui };
  }
}

function selected(ui: Ui, { ids }: KeyContext, index: number): Ui {
  const id = ids[Math.max(0, Math.min(index, ids.length - 1))];
  return id === undefined ? ui : { ...ui, selected: id, home: id, scroll: id === ui.selected ? ui.scroll : 0 };
}

function marked(ui: Ui, { ids, index }: KeyContext): Ui {
  const id = ids[index];
  if (id === undefined) return ui;
  const others = ui.marked.filter((other) => other !== id);
  return { ...ui, marked: others.length < ui.marked.length ? others : [...ui.marked, id] };
}

function opened(ui: Ui, pane: DetailsPlace, tab: Tab): Ui {
  const under = pane === 'full' && ui.pane !== 'full' ? ui.pane : ui.under;
  return { ...ui, pane, under, tab, scroll: 0 };
}

function back(ui: Ui): Ui {
  return { ...ui, pane: ui.under, scroll: 0 };
}

function next<T>(all: readonly T[], one: T, step = 1): T {
  return all[(all.indexOf(one) + step + all.length) % all.length] as T;
}

function neighbour(tab: Tab, step: 1 | -1): Tab {
  return next(tabs, tab, step);
}

/** The log is read from its end, everything else from its beginning. What is too far is brought back when drawn. */
function scrolled(ui: Ui, lines: number): Ui {
  return { ...ui, scroll: Math.max(0, ui.scroll + (ui.tab === 'log' ? -lines : lines)) };
}

function toEdge(ui: Ui, edge: 'begin' | 'end'): Ui {
  const isNear = (ui.tab === 'log') === (edge === 'end');
  return { ...ui, scroll: isNear ? 0 : Number.MAX_SAFE_INTEGER };
}

function letter(ui: Ui, { text, isPasted }: Extract<Press, { text: string }>, situation: KeyContext): Pressed {
  // A text that lands here by accident must not press a key with each of its letters.
  if (isPasted || text.length > 1) return { ui };
  switch (text) {
    case 'j':
      return move(ui, 'down', situation);
    case 'k':
      return move(ui, 'up', situation);
    case 'g':
      return move(ui, 'home', situation);
    case 'G':
      return move(ui, 'end', situation);
    case ',':
      return { ui: selected(ui, situation, situation.index - Math.max(1, situation.listRows - 1)) };
    case '.':
      return { ui: selected(ui, situation, situation.index + Math.max(1, situation.listRows - 1)) };
    case 'v':
      return { ui: { ...ui, arrangement: next(arrangements, ui.arrangement) } };
    case 'S':
      return { ui: { ...ui, sorting: next(sortings, ui.sorting) } };
    case ' ':
      return { ui: selected(marked(ui, situation), situation, situation.index + 1) };
    case '*':
      return { ui: { ...ui, marked: ui.marked.length > 0 ? [] : situation.ids } };
    case 'm':
      return { ui: { ...ui, hasMouse: !ui.hasMouse }, command: { do: 'mouse', isOn: !ui.hasMouse } };
    case 't':
      return { ui: { ...ui, hasTimeline: !ui.hasTimeline } };
    case '/':
      return { ui: { ...(situation.shape === 'full' ? back(ui) : ui), mode: { kind: 'filter' } } };
    case 'f':
      return refiltered(ui, { ui: { ...ui, onlyProblems: !ui.onlyProblems } });
    case '?':
    case 'h':
      return { ui: { ...ui, mode: { kind: 'help', top: 0 } } };
    case 'q':
      if (situation.shape === 'full') return { ui: back(ui) };
      return situation.runner === 'here'
        ? { ui: { ...ui, mode: { kind: 'ask-leave' } } }
        : { ui, command: { do: 'quit' } };
    case 'P':
      return groupKey(ui, situation);
    default:
      return sessionKey(ui, text, situation);
  }
}

function groupKey(ui: Ui, { state, runner }: KeyContext): Pressed {
  const ask = (kind: 'ask-pause' | 'ask-start' | 'ask-go-on'): Pressed => ({ ui: { ...ui, mode: { kind } } });
  switch (state.status) {
    case 'created':
      return runner === 'none' ? ask('ask-start') : { ui };
    case 'running':
      if (runner === 'none') return ask('ask-go-on');
      if (state.frozenUntil !== undefined) return { ui, command: { do: 'resume-group' } };
      if (state.pausing === undefined || state.draining) return ask('ask-pause');
      return { ui, command: { do: 'tell', message: 'It is being paused already.' } };
    case 'paused':
    case 'failed':
      return { ui, command: { do: 'resume-group' } };
    case 'completed':
    case 'archived':
      return { ui, command: { do: 'tell', message: `The group is ${state.status}.` } };
  }
}

function sessionKey(ui: Ui, text: string, situation: KeyContext): Pressed {
  const sessionId = situation.ids[situation.index];
  const record = sessionId === undefined ? undefined : situation.state.sessions.get(sessionId);
  if (sessionId === undefined || record === undefined) return { ui };
  switch (text) {
    case 'o':
      return { ui: { ...ui, mode: { kind: 'ask-open', sessionId } } };
    case 'l':
      return { ui: opened({ ...ui, selected: sessionId, home: sessionId }, 'full', 'log') };
    case 'a':
      return { ui, command: { do: 'attach', sessionId } };
    case 'e':
      return { ui, command: { do: 'edit', sessionId } };
    case 'p':
      return { ui, command: pauseOrResume(situation.state, targets(ui, situation, record)) };
    case 'r':
      return { ui, command: retry(situation.state, targets(ui, situation, record)) };
    case 'i': {
      const [asked] = openItems(record);
      if (asked === undefined) return { ui, command: notNow(situation.state, record, 'It asks nothing.') };
      return { ui: { ...ui, mode: { kind: 'say', sessionId, text: '', item: asked.id } } };
    }
    case 's':
      if (record.state.status !== 'completed') return { ui: { ...ui, mode: { kind: 'say', sessionId, text: '' } } };
      return { ui, command: notNow(situation.state, record, 'It has given its last answer.') };
    default: {
      const tab = tabs[Number(text) - 1];
      return { ui: tab === undefined ? ui : opened(ui, situation.shape === 'none' ? 'split' : ui.pane, tab) };
    }
  }
}

export interface Toggle {
  readonly do: 'pause-session' | 'resume-session';
  readonly word: 'pause' | 'hold' | 'start' | 'resume';
}

export function toggleOf({ state: { status }, queued }: SessionRecord): Toggle | null {
  if (status === 'running') return { do: 'pause-session', word: 'pause' };
  if (status === 'completed') return null;
  // It would start, or go on, by itself.
  if (queued) return { do: 'pause-session', word: 'hold' };
  if (status === 'failed') return null;
  return { do: 'resume-session', word: status === 'pending' ? 'start' : 'resume' };
}

type Targets = readonly [SessionRecord, ...SessionRecord[]];

/** The marked sessions that are still there; without any the selected one. */
function targets({ marked: ids }: Ui, { state }: KeyContext, record: SessionRecord): Targets {
  const [first, ...others] = ids.flatMap((id) => state.sessions.get(id) ?? []);
  return first === undefined ? [record] : [first, ...others];
}

function idsOf(records: readonly SessionRecord[]): SessionId[] {
  return records.map(({ definition }) => definition.id);
}

function pauseOrResume(state: GroupState, records: Targets): KeyCommand {
  for (const wanted of ['pause-session', 'resume-session'] as const) {
    const meant = records.filter((record) => toggleOf(record)?.do === wanted);
    if (meant.length > 0) return { do: wanted, sessionIds: idsOf(meant) };
  }
  const [first] = records;
  if (records.length > 1) return none(records, 'can be paused or let go on');
  return notNow(state, first, first.state.status === 'failed' ? 'Retry with r.' : 'Its result stays as it is.');
}

function retry(state: GroupState, records: Targets): KeyCommand {
  const failed = records.filter((record) => record.state.status === 'failed');
  if (failed.length > 0) return { do: 'retry-session', sessionIds: idsOf(failed) };
  if (records.length > 1) return none(records, 'has failed');
  return notNow(state, records[0], 'Only a failed session can be tried again.');
}

function none(records: readonly SessionRecord[], could: string): KeyCommand {
  return { do: 'tell', message: `None of the ${records.length} marked sessions ${could}.` };
}

function notNow(state: GroupState, { definition, state: { status } }: SessionRecord, next: string): KeyCommand {
  return { do: 'tell', message: `Session ${titleOf(state, definition.id)} is ${status}. ${next}` };
}
