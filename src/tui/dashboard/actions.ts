/** The actions of the dashboard: keys, palette and last row use one table. This file: the effect of each action. */
import { ownProblem } from '../../core/edit.ts';
import { describeFailure } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import { openItems } from '../../core/item.ts';
import { openWaveItem } from '../../core/plan/waves.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { titleOf } from '../../view/wording.ts';
import {
  arrangements,
  type DetailsPlace,
  type Hit,
  hasDetailsFocus,
  type Mode,
  type Shape,
  sortings,
  type Tab,
  tabs,
  type Ui,
} from './ui.ts';
import type { Runner } from './view.ts';

export type OpenTarget = 'worktree' | 'log' | 'report';

export type KeyCommand =
  | { readonly do: 'pause-session' | 'resume-session' | 'retry-session'; readonly sessionIds: readonly SessionId[] }
  | { readonly do: 'say'; readonly sessionId: SessionId; readonly text: string }
  /** Of a session or of a wave. */
  | { readonly do: 'answer'; readonly item: string; readonly text: string; readonly note?: string }
  | { readonly do: 'open'; readonly sessionId: SessionId; readonly thing: OpenTarget }
  | { readonly do: 'attach' | 'edit'; readonly sessionId: SessionId }
  | { readonly do: 'review' }
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

export const browse: Mode = { kind: 'browse' };

export function refiltered(before: Ui, ui: Ui): Ui {
  const isSame = ui.filter === before.filter && ui.onlyProblems === before.onlyProblems;
  return isSame ? ui : { ...ui, selected: null, top: 0, scroll: 0 };
}

export function selected(ui: Ui, { ids }: KeyContext, index: number): Ui {
  const id = ids[Math.max(0, Math.min(index, ids.length - 1))];
  return id === undefined ? ui : { ...ui, selected: id, home: id, scroll: id === ui.selected ? ui.scroll : 0 };
}

function marked(ui: Ui, { ids, index }: KeyContext): Ui {
  const id = ids[index];
  if (id === undefined) return ui;
  const others = ui.marked.filter((other) => other !== id);
  return { ...ui, marked: others.length < ui.marked.length ? others : [...ui.marked, id] };
}

export function opened(ui: Ui, pane: DetailsPlace, tab: Tab): Ui {
  const under = pane === 'full' && ui.pane !== 'full' ? ui.pane : ui.under;
  return { ...ui, pane, under, tab, scroll: 0 };
}

function back(ui: Ui): Ui {
  return { ...ui, pane: ui.under, scroll: 0 };
}

function next<T>(all: readonly T[], one: T, step = 1): T {
  return all[(all.indexOf(one) + step + all.length) % all.length] as T;
}

/** The log is scrolled from its end, other tabs from their beginning. The next frame limits the value. */
export function scrolled(ui: Ui, lines: number): Ui {
  return { ...ui, scroll: Math.max(0, ui.scroll + (ui.tab === 'log' ? -lines : lines)) };
}

function toEdge(ui: Ui, edge: 'begin' | 'end'): Ui {
  const isNear = (ui.tab === 'log') === (edge === 'end');
  return { ...ui, scroll: isNear ? 0 : Number.MAX_SAFE_INTEGER };
}

function groupKey({ ui, context: { state, runner } }: At): Pressed {
  const ask = (kind: 'ask-pause' | 'ask-start' | 'ask-resume'): Pressed => ({ ui: { ...ui, mode: { kind } } });
  switch (state.status) {
    case 'created':
      return runner === 'none' ? ask('ask-start') : told(ui, 'The group is starting.');
    case 'running':
      if (runner === 'none') return ask('ask-resume');
      if (state.frozenUntil !== undefined) return { ui, command: { do: 'resume-group' } };
      if (state.pausing === undefined || state.draining) return ask('ask-pause');
      return told(ui, 'The group is already pausing.');
    case 'paused':
    case 'failed':
      return { ui, command: { do: 'resume-group' } };
    case 'completed':
    case 'archived':
      return told(ui, `The group is ${state.status}.`);
  }
}

export interface Toggle {
  readonly do: 'pause-session' | 'resume-session';
  readonly word: 'pause' | 'hold' | 'start' | 'resume';
}

export function toggleOf({ state: { status }, queued }: SessionRecord): Toggle | null {
  if (status === 'running') return { do: 'pause-session', word: 'pause' };
  if (status === 'completed') return null;
  // It would start or resume automatically.
  if (queued) return { do: 'pause-session', word: 'hold' };
  if (status === 'failed') return null;
  return { do: 'resume-session', word: status === 'pending' ? 'start' : 'resume' };
}

type Targets = readonly [SessionRecord, ...SessionRecord[]];

/** The marked sessions that still exist; if none is marked, the selected one. */
function targets({ ui: { marked: ids }, context: { state } }: At, record: SessionRecord): Targets {
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
  if (records.length > 1) return none(records, 'can be paused or resumed');
  return notNow(state, first, first.state.status === 'failed' ? 'Retry with r.' : 'It cannot be paused or resumed.');
}

function retry(state: GroupState, records: Targets): KeyCommand {
  const failed = records.filter((record) => record.state.status === 'failed');
  if (failed.length > 0) return { do: 'retry-session', sessionIds: idsOf(failed) };
  if (records.length > 1) return none(records, 'has failed');
  return notNow(state, records[0], 'Only failed sessions can be retried.');
}

function none(records: readonly SessionRecord[], could: string): KeyCommand {
  return { do: 'tell', message: `None of the ${records.length} marked sessions ${could}.` };
}

function notNow(state: GroupState, { definition, state: { status } }: SessionRecord, next: string): KeyCommand {
  return { do: 'tell', message: `Session ${titleOf(state, definition.id)} is ${status}. ${next}` };
}

function told(ui: Ui, message: string): Pressed {
  return { ui, command: { do: 'tell', message } };
}

interface At {
  readonly ui: Ui;
  readonly context: KeyContext;
  /** The selected session. */
  readonly record: SessionRecord | undefined;
}

export function atOf(ui: Ui, context: KeyContext): At {
  return { ui, context, record: context.state.sessions.get(context.ids[context.index] ?? '') };
}

type Words = string | ((at: At) => string);

/** An action that is not possible now returns a `tell` command with the reason. */
export interface KeyAction {
  readonly keys: readonly string[];
  readonly label: Words;
  /** A word for the last row; absent = not shown there. */
  readonly hint?: Words;
  run(at: At): Pressed;
}

/** `keys`: separated by blanks. */
function action(keys: string, label: Words, run: (at: At) => Pressed, hint?: Words): KeyAction {
  return { keys: keys.split(' ').filter((key) => key !== ''), label, run, ...(hint === undefined ? {} : { hint }) };
}

function onSession(
  keys: string,
  label: Words,
  run: (record: SessionRecord, at: At) => Pressed,
  hint?: Words,
): KeyAction {
  const checked = (at: At): Pressed => {
    if (at.record === undefined) return told(at.ui, 'No session is selected.');
    const { ui, ...rest } = run(at.record, at);
    // The selection stays where the user acted.
    return { ui: { ...ui, home: at.record.definition.id }, ...rest };
  };
  return action(keys, label, checked, hint);
}

function changing(keys: string, label: Words, change: (ui: Ui, at: At) => Ui): KeyAction {
  return action(keys, label, (at) => ({ ui: change(at.ui, at) }));
}

function wordsOf(words: Words, at: At): string {
  return typeof words === 'string' ? words : words(at);
}

function isInDetails({ ui, context: { shape } }: At): boolean {
  return hasDetailsFocus(ui, shape);
}

/** Moves the selection in the list. `scroll`: the effect of the same key in the details. */
function moving(keys: string, label: string, to: (context: KeyContext) => number, scroll?: (ui: Ui) => Ui): KeyAction {
  return changing(keys, label, (ui, at) =>
    scroll !== undefined && isInDetails(at) ? scroll(ui) : selected(ui, at.context, to(at.context)),
  );
}

function page({ listRows }: KeyContext): number {
  return Math.max(1, listRows - 1);
}

function paging(key: 'page-up' | 'page-down', label: string, sign: 1 | -1): KeyAction {
  return changing(key, label, (ui, { context }) =>
    context.shape === 'none'
      ? selected(ui, context, context.index + sign * page(context))
      : scrolled(ui, sign * Math.max(1, context.paneRows - 1)),
  );
}

const changeTab =
  (step: 1 | -1) =>
  ({ ui, context }: At): Pressed =>
    context.shape === 'none'
      ? told(ui, 'The details are closed. Open them with enter.')
      : { ui: opened(ui, ui.pane, next(tabs, ui.tab, step)) };

function toggleDetails({ ui, context: { shape, ids } }: At): Pressed {
  if (shape === 'full') return { ui: back(ui) };
  if (ids.length === 0) return told(ui, 'No session is selected.');
  if (shape === 'none') return { ui: opened(ui, 'split', ui.tab) };
  return { ui: ui.focus === 'details' ? opened(ui, 'full', ui.tab) : { ...ui, pane: 'none' } };
}

function goBack({ ui, context: { shape } }: At): Pressed {
  if (shape === 'full') return { ui: back(ui) };
  if (shape !== 'none' && ui.focus === 'details') return { ui: { ...ui, focus: 'list' } };
  if (shape === 'below') return { ui: { ...ui, pane: 'none' } };
  if (ui.marked.length > 0) return { ui: { ...ui, marked: [] } };
  if (ui.filter === '' && !ui.onlyProblems) return { ui: { ...ui, home: null } };
  return { ui: refiltered(ui, { ...ui, filter: '', onlyProblems: false }) };
}

function focusNext({ ui, context: { shape } }: At): Pressed {
  if (shape === 'full') return told(ui, 'Only the details are shown. Press enter to see the list.');
  if (shape === 'none') return { ui: { ...opened(ui, 'split', ui.tab), focus: 'details' } };
  return { ui: { ...ui, focus: ui.focus === 'list' ? 'details' : 'list' } };
}

/** Failed, paused until the user resumes it, or with an open question. */
function needsUser(record: SessionRecord): boolean {
  const { status } = record.state;
  return status === 'failed' || (status === 'paused' && !record.queued) || openItems(record).length > 0;
}

function nextProblem({ ui, context }: At): Pressed {
  const { ids, index, state } = context;
  const id = [...ids.slice(index + 1), ...ids.slice(0, index + 1)].find((one) => {
    const record = state.sessions.get(one);
    return record !== undefined && needsUser(record);
  });
  if (id === undefined) return told(ui, 'No listed session failed, is paused or waits for an answer.');
  return { ui: selected({ ...ui, focus: 'list' }, context, ids.indexOf(id)) };
}

function decideWave({ ui, context: { state } }: At): Pressed {
  const item = openWaveItem(state);
  if (item === undefined) return told(ui, 'No wave waits for a decision.');
  return { ui: { ...ui, mode: { kind: 'ask-wave', item: item.id } } };
}

function review({ ui, context: { state } }: At): Pressed {
  const isTried = [...state.sessions.values()].some(({ attempts, inherited }) => attempts > 0 || inherited);
  return isTried ? { ui, command: { do: 'review' } } : told(ui, 'No session was started yet.');
}

function edit({ definition, ...rest }: SessionRecord, { ui, context: { state } }: At): Pressed {
  const problem = ownProblem(state, { definition, ...rest }, { ...definition, prompt: `${definition.prompt}\n` });
  if (problem?.ok === false) return told(ui, describeFailure(problem.failure));
  return { ui, command: { do: 'edit', sessionId: definition.id } };
}

function quit({ ui, context: { shape, runner } }: At): Pressed {
  if (shape === 'full') return { ui: back(ui) };
  return runner === 'here' ? { ui: { ...ui, mode: { kind: 'ask-leave' } } } : { ui, command: { do: 'quit' } };
}

function groupWord({ context: { state, runner } }: At): string {
  if (state.status === 'created') return 'start';
  return state.status === 'running' && runner !== 'none' && state.frozenUntil === undefined ? 'pause' : 'resume';
}

function find({ ui, context: { shape } }: At): Pressed {
  return { ui: { ...(shape === 'full' ? back(ui) : ui), mode: { kind: 'filter' } } };
}

function answer(record: SessionRecord, { ui, context: { state } }: At): Pressed {
  const [asked] = openItems(record);
  if (asked === undefined) return { ui, command: notNow(state, record, 'It has no open question.') };
  return { ui: { ...ui, mode: { kind: 'answer', item: asked.id, text: '' } } };
}

function message(record: SessionRecord, { ui, context: { state } }: At): Pressed {
  if (record.state.status === 'completed') return { ui, command: notNow(state, record, 'It takes no more messages.') };
  return { ui: { ...ui, mode: { kind: 'say', sessionId: record.definition.id, text: '' } } };
}

function attach(record: SessionRecord, { ui, context: { state } }: At): Pressed {
  if (record.attempts === 0)
    return { ui, command: notNow(state, record, 'It was never started, so there is no conversation.') };
  return { ui, command: { do: 'attach', sessionId: record.definition.id } };
}

function openPalette({ ui }: At): Pressed {
  return { ui: { ...ui, mode: { kind: 'palette', text: '', index: 0 } } };
}

const toggleWord = ({ record }: At): string => (record === undefined ? null : toggleOf(record))?.word ?? 'pause';
const enterWord = ({ context: { shape } }: At): string =>
  shape === 'none' ? 'open' : shape === 'full' ? 'list' : 'close';

const sessionActions: readonly KeyAction[] = [
  onSession(
    'p',
    (at) => `${toggleWord(at)} the session or the marked ones`,
    (record, at) => ({ ui: at.ui, command: pauseOrResume(at.context.state, targets(at, record)) }),
    toggleWord,
  ),
  onSession(
    'r',
    'retry the failed session or the marked ones',
    (record, at) => ({ ui: at.ui, command: retry(at.context.state, targets(at, record)) }),
    'retry',
  ),
  onSession('i', 'answer the question of the session', answer, 'answer'),
  action('w', 'decide on the wave: continue or stop', decideWave, 'wave'),
  onSession('s', 'send a message to the session', message, 'message'),
  action(
    'P',
    (at) => `${groupWord(at)} the group`,
    groupKey,
    (at) => `${groupWord(at)} all`,
  ),
  action('n !', 'go to the next problem', nextProblem, 'problem'),
  onSession(
    'l',
    'show the log on the whole screen',
    ({ definition: { id } }, { ui }) => ({ ui: opened({ ...ui, selected: id, home: id }, 'full', 'log') }),
    'log',
  ),
  action('R', 'review the work: merge, pull request, send back', review, 'review'),
  action('/', 'filter the list by text', find, 'find'),
  onSession('a', 'attach to the session', attach, 'attach'),
  onSession('e', 'edit the task, then continue with it', edit, 'edit'),
  onSession('o', 'open the worktree, the log or the report', ({ definition: { id } }, { ui }) => ({
    ui: { ...ui, mode: { kind: 'ask-open', sessionId: id } },
  })),
];

const listActions: readonly KeyAction[] = [
  changing('f', 'show only problems, or all', (ui) => refiltered(ui, { ...ui, onlyProblems: !ui.onlyProblems })),
  changing(
    'S',
    ({ ui }) => `sort by ${next(sortings, ui.sorting)}`,
    (ui) => ({ ...ui, sorting: next(sortings, ui.sorting) }),
  ),
  changing(
    'v',
    ({ ui }) => `show as ${next(arrangements, ui.arrangement)}`,
    (ui) => ({ ...ui, arrangement: next(arrangements, ui.arrangement) }),
  ),
  ...sortings.map((sorting) => changing('', `sort by ${sorting}`, (ui) => ({ ...ui, sorting }))),
  changing('space', 'mark the session', (ui, { context }) => selected(marked(ui, context), context, context.index + 1)),
  changing('*', 'mark all sessions or none', (ui, { context: { ids } }) => ({
    ...ui,
    marked: ui.marked.length > 0 ? [] : ids,
  })),
  moving(
    'down j',
    'next session or line',
    ({ index }) => index + 1,
    (ui) => scrolled(ui, 1),
  ),
  moving(
    'up k',
    'previous session or line',
    ({ index }) => index - 1,
    (ui) => scrolled(ui, -1),
  ),
  moving(
    'home g',
    'first session or line',
    () => 0,
    (ui) => toEdge(ui, 'begin'),
  ),
  moving(
    'end G',
    'last session or line',
    ({ ids }) => ids.length - 1,
    (ui) => toEdge(ui, 'end'),
  ),
  moving('.', 'next page of the list', (context) => context.index + page(context)),
  moving(',', 'previous page of the list', (context) => context.index - page(context)),
  paging('page-down', 'next page of the details', 1),
  paging('page-up', 'previous page of the details', -1),
];

export const keyActions: readonly KeyAction[] = [
  action('enter', 'open or close the details', toggleDetails, enterWord),
  ...sessionActions,
  ...listActions,
  action('tab', 'focus the list or the details', focusNext),
  action('right', 'next tab of the details', changeTab(1)),
  action('left', 'previous tab of the details', changeTab(-1)),
  ...tabs.map((tab, index) =>
    changing(String(index + 1), `show the tab ${tab}`, (ui, { context: { shape } }) =>
      opened(ui, shape === 'none' ? 'split' : ui.pane, tab),
    ),
  ),
  action('escape', 'back; show all; follow what runs', goBack),
  action('m', 'turn the mouse off or on, to select text', ({ ui }) => ({
    ui: { ...ui, hasMouse: !ui.hasMouse },
    command: { do: 'mouse', isOn: !ui.hasMouse },
  })),
  action('ctrl-l', 'redraw the screen', ({ ui }) => ({ ui, command: { do: 'redraw' } })),
  action('ctrl-z', 'suspend the dashboard; fg continues', ({ ui }) => ({ ui, command: { do: 'suspend' } })),
  action('ctrl-c', 'pause all, or leave a watched group', ({ ui }) => ({ ui, command: { do: 'interrupt' } })),
  action('? h :', 'all commands and keys', openPalette, 'help'),
  action('q', 'leave', quit, ({ context: { shape } }) => (shape === 'full' ? 'back' : 'quit')),
];

export const actionOfKey: ReadonlyMap<string, KeyAction> = new Map(
  keyActions.flatMap((one) => one.keys.map((key) => [key, one] as const)),
);

function refusal({ run }: KeyAction, at: At): string | null {
  const { command } = run(at);
  return command?.do === 'tell' ? command.message : null;
}

/** For the last row: the keys that have an effect now. */
export function keyHints(ui: Ui, context: KeyContext): string[] {
  const at = atOf(ui, context);
  return keyActions.flatMap((one) =>
    one.hint === undefined || refusal(one, at) !== null ? [] : [`${one.keys[0]} ${wordsOf(one.hint, at)}`],
  );
}

export interface PaletteChoice {
  readonly action: KeyAction;
  readonly label: string;
  /** Why it is not possible now. */
  readonly refusal: string | null;
}

/** The actions that match the text, best match first. Among equal matches, actions that are possible now come first. */
export function paletteChoices(ui: Ui, context: KeyContext): PaletteChoice[] {
  const { mode } = ui;
  const at = atOf({ ...ui, mode: browse }, context);
  const wanted = mode.kind === 'palette' ? mode.text.trim().toLowerCase() : '';
  const choices = keyActions.flatMap((one) => {
    const label = wordsOf(one.label, at);
    const rank = wanted === one.keys[0] ? -1 : fuzzyRank(label, wanted);
    return rank === null ? [] : [{ action: one, label, refusal: refusal(one, at), rank }];
  });
  const weight = (choice: (typeof choices)[number]): number => (choice.refusal === null ? 0 : 500) + choice.rank;
  return choices.toSorted((one, other) => weight(one) - weight(other));
}

/** Lower is better; null = the label does not contain the letters in this order. */
function fuzzyRank(label: string, wanted: string): number | null {
  const whole = label.indexOf(wanted);
  if (whole >= 0) return whole;
  let from = 0;
  for (const letter of wanted) {
    const found = label.indexOf(letter, from);
    if (found < 0) return null;
    from = found + 1;
  }
  return 1_000 + from;
}
