/** What each key does: it changes what is shown, or becomes a command that somebody else carries out. */
import type { SessionId } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { Verdicts } from '../../core/verdict.ts';
import { titleOf } from '../wording.ts';
import { type Mode, type Tab, tabs, type Ui } from './ui.ts';
import { listedSessions, type Runner } from './view.ts';

export type KeyName =
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'page-up'
  | 'page-down'
  | 'home'
  | 'end'
  | 'enter'
  | 'escape'
  | 'tab'
  | 'erase'
  | 'ctrl-c'
  | 'ctrl-l'
  | 'ctrl-u'
  | 'ctrl-z';

/** A named key, or text that was typed or pasted. */
export type Press = { readonly key: KeyName } | { readonly text: string; readonly isPasted?: true };

export type KeyCommand =
  | { readonly do: 'pause-session' | 'resume-session' | 'retry-session'; readonly sessionId: SessionId }
  | { readonly do: 'say'; readonly sessionId: SessionId; readonly text: string }
  | { readonly do: 'pause-group'; readonly mode: 'now' | 'drain' | 'freeze' }
  | { readonly do: 'resume-group' }
  /** Close the dashboard; the group is not concerned. */
  | { readonly do: 'quit' }
  /** The runner behind the dashboard leaves and its sessions go on. */
  | { readonly do: 'leave' }
  /** Ctrl-C. */
  | { readonly do: 'interrupt' }
  | { readonly do: 'redraw' }
  /** Ctrl-Z. */
  | { readonly do: 'suspend' }
  /** Nothing can be done; the sentence says why. */
  | { readonly do: 'tell'; readonly message: string };

export interface Situation {
  readonly state: GroupState;
  readonly verdicts: Verdicts;
  /** The visible sessions in their order. */
  readonly ids: readonly SessionId[];
  /** Index of the selected one. */
  readonly index: number;
  /** Rows of the list, and lines of the details pane, that are visible. */
  readonly listRows: number;
  readonly paneRows: number;
  readonly runner: Runner;
}

export interface Pressed {
  readonly ui: Ui;
  readonly command?: KeyCommand;
}

/** A message is a line, not a file. */
const messageLengthMax = 8_000;
const filterLengthMax = 200;
const browse: Mode = { kind: 'browse' };

export function press(ui: Ui, key: Press, situation: Situation): Pressed {
  if ('key' in key && key.key === 'ctrl-c') return { ui: { ...ui, mode: browse }, command: { do: 'interrupt' } };
  if ('key' in key && key.key === 'ctrl-z') return { ui, command: { do: 'suspend' } };
  if ('key' in key && key.key === 'ctrl-l') return { ui, command: { do: 'redraw' } };
  const { mode } = ui;
  switch (mode.kind) {
    case 'help':
      return { ui: { ...ui, mode: browse } };
    case 'filter':
      return refiltered(ui, typeFilter(ui, key), situation);
    case 'say':
      return typeMessage(ui, mode, key);
    case 'ask-pause':
      return answered(ui, key, pauseAnswers);
    case 'ask-start':
      return answered(ui, key, { y: { do: 'resume-group' } });
    case 'ask-go-on':
      return answered(ui, key, { y: { do: 'resume-group' }, p: { do: 'pause-group', mode: 'now' } });
    case 'ask-leave':
      return answered(ui, key, staysFor(situation.state) === null ? { l: { do: 'leave' }, ...pauseOnly } : pauseOnly);
    case 'browse':
      return 'key' in key ? move(ui, key.key, situation) : letter(ui, key, situation);
  }
}

/** Another filter moves the selection when it hides what was selected. */
function refiltered(before: Ui, { ui }: Pressed, situation: Situation): Pressed {
  if (ui.filter === before.filter && ui.onlyProblems === before.onlyProblems) return { ui };
  const ids = listedSessions(situation, { ...ui, selected: null });
  const isListed = ui.selected !== null && ids.includes(ui.selected);
  return { ui: isListed ? ui : { ...ui, selected: ids[0] ?? null, scroll: 0 } };
}

function typeFilter(ui: Ui, key: Press): Pressed {
  if ('text' in key) return { ui: { ...ui, filter: typed(ui.filter, oneLine(key.text), filterLengthMax), top: 0 } };
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

function typeMessage(ui: Ui, mode: Extract<Mode, { kind: 'say' }>, key: Press): Pressed {
  const { sessionId, text } = mode;
  const changed = (now: string): Pressed => ({ ui: { ...ui, mode: { ...mode, text: now } } });
  if ('text' in key) return changed(typed(text, key.text.replaceAll(/\r\n?/g, '\n'), messageLengthMax));
  switch (key.key) {
    case 'enter':
      if (text.trim() === '') return { ui: { ...ui, mode: browse } };
      return { ui: { ...ui, mode: browse }, command: { do: 'say', sessionId, text: text.trim() } };
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

/** Without its last character, as people count them. */
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

/**
 * Why the runner behind the dashboard should not be left now; null = it may be. The next runner would begin by letting
 * everything go on, and so undo what was asked of this one.
 */
export function staysFor({ pausing, draining, frozenUntil }: GroupState): 'frozen' | 'draining' | 'pausing' | null {
  if (frozenUntil !== undefined) return 'frozen';
  if (pausing === undefined) return null;
  return draining ? 'draining' : 'pausing';
}

/** Any other key is a no. */
function answered(ui: Ui, key: Press, answers: Answers): Pressed {
  const now = { ...ui, mode: browse };
  const answer = 'text' in key ? key.text.toLowerCase() : key.key;
  const command = Object.hasOwn(answers, answer) ? answers[answer] : undefined;
  return command === undefined ? { ui: now } : { ui: now, command };
}

function move(ui: Ui, key: KeyName, situation: Situation): Pressed {
  const inPane = ui.pane === 'full';
  const page = Math.max(1, situation.listRows - 1);
  switch (key) {
    case 'up':
      return { ui: inPane ? scrolled(ui, -1) : selected(ui, situation, situation.index - 1) };
    case 'down':
      return { ui: inPane ? scrolled(ui, 1) : selected(ui, situation, situation.index + 1) };
    case 'page-up':
      if (ui.pane !== 'none') return { ui: scrolled(ui, -Math.max(1, situation.paneRows - 1)) };
      return { ui: selected(ui, situation, situation.index - page) };
    case 'page-down':
      if (ui.pane !== 'none') return { ui: scrolled(ui, Math.max(1, situation.paneRows - 1)) };
      return { ui: selected(ui, situation, situation.index + page) };
    case 'home':
      return { ui: inPane ? toEdge(ui, 'begin') : selected(ui, situation, 0) };
    case 'end':
      return { ui: inPane ? toEdge(ui, 'end') : selected(ui, situation, situation.ids.length - 1) };
    case 'enter':
      if (situation.ids.length === 0) return { ui };
      return { ui: ui.pane === 'none' ? opened(ui, 'split', ui.tab) : { ...ui, pane: 'none' } };
    case 'escape':
      if (ui.pane !== 'none') return { ui: { ...ui, pane: 'none' } };
      return { ui: { ...ui, filter: '', onlyProblems: false } };
    case 'tab':
    case 'right':
      return { ui: ui.pane === 'none' ? ui : opened(ui, ui.pane, neighbour(ui.tab, 1)) };
    case 'left':
      return { ui: ui.pane === 'none' ? ui : opened(ui, ui.pane, neighbour(ui.tab, -1)) };
    default:
      return { ui };
  }
}

function selected(ui: Ui, { ids }: Situation, index: number): Ui {
  const id = ids[Math.max(0, Math.min(index, ids.length - 1))];
  return id === undefined || id === ui.selected ? ui : { ...ui, selected: id, scroll: 0 };
}

function opened(ui: Ui, pane: Ui['pane'], tab: Tab): Ui {
  return { ...ui, pane, tab, scroll: 0 };
}

function neighbour(tab: Tab, step: 1 | -1): Tab {
  return tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length] as Tab;
}

/** The log is read from its end, everything else from its beginning. What is too far is brought back when drawn. */
function scrolled(ui: Ui, lines: number): Ui {
  return { ...ui, scroll: Math.max(0, ui.scroll + (ui.tab === 'log' ? -lines : lines)) };
}

function toEdge(ui: Ui, edge: 'begin' | 'end'): Ui {
  const isNear = (ui.tab === 'log') === (edge === 'end');
  return { ...ui, scroll: isNear ? 0 : Number.MAX_SAFE_INTEGER };
}

function letter(ui: Ui, { text, isPasted }: Extract<Press, { text: string }>, situation: Situation): Pressed {
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
    case ' ':
      return move(ui, 'page-down', situation);
    case '/':
      return { ui: { ...ui, mode: { kind: 'filter' }, pane: ui.pane === 'full' ? 'split' : ui.pane } };
    case 'f':
      return refiltered(ui, { ui: { ...ui, onlyProblems: !ui.onlyProblems, top: 0 } }, situation);
    case '?':
    case 'h':
      return { ui: { ...ui, mode: { kind: 'help' } } };
    case 'q':
      if (ui.pane === 'full') return { ui: { ...ui, pane: 'none' } };
      return situation.runner === 'here'
        ? { ui: { ...ui, mode: { kind: 'ask-leave' } } }
        : { ui, command: { do: 'quit' } };
    case 'P':
      return groupKey(ui, situation);
    default:
      return sessionKey(ui, text, situation);
  }
}

function groupKey(ui: Ui, { state, runner }: Situation): Pressed {
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

function sessionKey(ui: Ui, text: string, situation: Situation): Pressed {
  const sessionId = situation.ids[situation.index];
  const record = sessionId === undefined ? undefined : situation.state.sessions.get(sessionId);
  if (sessionId === undefined || record === undefined) return { ui };
  switch (text) {
    case 'l':
      return { ui: opened({ ...ui, selected: sessionId }, 'full', 'log') };
    case 'p':
      return { ui, command: pauseOrResume(situation.state, record) };
    case 'r':
      if (record.state.status === 'failed') return { ui, command: { do: 'retry-session', sessionId } };
      return { ui, command: notNow(situation.state, record, 'Only a failed session can be tried again.') };
    case 's':
      if (record.state.status !== 'completed') return { ui: { ...ui, mode: { kind: 'say', sessionId, text: '' } } };
      return { ui, command: notNow(situation.state, record, 'It has given its last answer.') };
    default: {
      const tab = tabs[Number(text) - 1];
      return { ui: tab === undefined ? ui : opened(ui, ui.pane === 'none' ? 'split' : ui.pane, tab) };
    }
  }
}

export interface Toggle {
  readonly do: 'pause-session' | 'resume-session';
  /** What the key does, in one word. */
  readonly word: 'pause' | 'hold' | 'start' | 'resume';
}

/** What `p` does to this session; null = nothing. */
export function toggleOf({ state: { status }, queued }: SessionRecord): Toggle | null {
  if (status === 'running') return { do: 'pause-session', word: 'pause' };
  if (status === 'completed') return null;
  // It would start, or go on, by itself.
  if (queued) return { do: 'pause-session', word: 'hold' };
  if (status === 'failed') return null;
  return { do: 'resume-session', word: status === 'pending' ? 'start' : 'resume' };
}

function pauseOrResume(state: GroupState, record: SessionRecord): KeyCommand {
  const toggle = toggleOf(record);
  if (toggle !== null) return { do: toggle.do, sessionId: record.definition.id };
  const next = record.state.status === 'failed' ? 'Try it again with r.' : 'Its result stays as it is.';
  return notNow(state, record, next);
}

function notNow(state: GroupState, { definition, state: { status } }: SessionRecord, next: string): KeyCommand {
  return { do: 'tell', message: `Session ${titleOf(state, definition.id)} is ${status}. ${next}` };
}
