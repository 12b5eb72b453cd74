/** tui/review/: the review on a terminal, laid out by ink: the sessions, and the facts about the selected one. */
import { Box, Text, type TextProps, useApp, useInput, usePaste, useWindowSize } from 'ink';
import { createElement as h, type ReactNode, useRef, useState } from 'react';
import type { CheckRun } from '../../core/evidence.ts';
import type { GroupId } from '../../core/group.ts';
import {
  actionsOf,
  answersOf,
  changeText,
  checkText,
  choicesOf,
  costText,
  kindTitle,
  type OpenDecision,
  type Review,
  type ReviewAction,
  type ReviewRow,
} from '../../view/review/review.ts';
import { safeLine, safeText, spelledLine } from '../../view/terminal-text.ts';
import { inBorder } from '../app.ts';

/** The result of an action: a sentence, and the row as it is now; null = the row is gone. */
export interface ActionEnd {
  readonly notice: string;
  readonly row: ReviewRow | null;
  /** The rows of other sessions whose work was merged or proposed with it. */
  readonly others?: readonly ReviewRow[];
}

export interface WaveEnd {
  readonly notice: string;
  /** False when the words were no decision. */
  readonly isDecided: boolean;
}

/** Answering is no command of a row: its words depend on the question. */
export type ScreenAction = ReviewAction | 'answer';

export interface ReviewScreenOptions {
  readonly review: Review;
  act(action: ScreenAction, row: ReviewRow, words: string, interrupt: AbortSignal): Promise<ActionEnd>;
  /** Answers the decision that belongs to no session. */
  decide(wave: OpenDecision, words: string): Promise<WaveEnd>;
  /** The first line after an action. */
  headlineFor(rows: readonly ReviewRow[]): string;
}

/** In narrower terminals the details are below the list. */
const wideColumns = 100;
const textMax = 4000;
/** A long task leaves room for the changes, unless the details have the whole screen. */
const askedRowsMax = 4;
const filesMax = 100;
const patchMax = 20_000;
const diffLinesMax = 2000;

const keyOf: Readonly<Record<ScreenAction, string>> = {
  answer: 'a',
  merge: 'm',
  pr: 'p',
  'send-back': 'b',
  discard: 'd',
};
const names: Readonly<Record<ScreenAction, string>> = {
  answer: 'answer',
  merge: 'merge',
  pr: 'pull request',
  'send-back': 'send back',
  discard: 'discard',
};
const help = [
  'j n ↓  next session          k ↑  previous session',
  'space PgDn  details down     PgUp  details up',
  'enter  details on the whole screen, and back',
  'a  answer the question, or the wave that waits',
  'm  merge the work            p  push it and open a pull request',
  'b  send it back with words',
  'd  discard the session; unmerged commits stay on its branch',
  'q  leave, and run what was answered or sent back, and the next wave',
];

interface Ui {
  readonly headline: string;
  /** Of the group. */
  readonly decisions: readonly OpenDecision[];
  readonly rows: readonly ReviewRow[];
  readonly at: number;
  readonly scroll: number;
  readonly notice: string;
  /** The text to send back, or the action that needs a `y`. */
  readonly asking?: { readonly action: ScreenAction; readonly words?: string } | undefined;
  readonly isHelp?: boolean;
  readonly isFull?: boolean;
  /** Interrupts what is being done. */
  readonly busy?: AbortController | undefined;
}

export function createReviewApp(options: ReviewScreenOptions): ReactNode {
  return h(ReviewApp, options);
}

function ReviewApp({ review, act, decide, headlineFor }: ReviewScreenOptions): ReactNode {
  const { exit } = useApp();
  const { columns, rows: height } = useWindowSize();
  // Several keys may arrive before the next frame is drawn.
  const state = useRef<Ui>({ ...review, at: 0, scroll: 0, notice: '' });
  const [, redraw] = useState(state.current);
  const update = (change: Partial<Ui>) => {
    state.current = { ...state.current, ...change };
    redraw(state.current);
  };
  const start = async (action: ScreenAction, row: ReviewRow, words = '') => {
    const busy = new AbortController();
    update({ busy, notice: `${row.title}: ${names[action]} … (Ctrl-C interrupts it)`, asking: undefined });
    const end = await act(action, row, words, busy.signal);
    const rows = rowsAfter(state.current.rows, row, end);
    const at = placeIn(rows, state.current);
    update({ rows, headline: headlineFor(rows), at, notice: end.notice, busy: undefined });
  };
  const settle = async (wave: OpenDecision, words = '') => {
    update({ busy: new AbortController(), asking: undefined });
    const { notice, isDecided } = await decide(wave, words);
    const decisions = state.current.decisions.filter((one) => !isDecided || one !== wave);
    update({ decisions, headline: headlineFor(state.current.rows), notice, busy: undefined });
  };
  const press = (input: string, key: InputKey) => {
    const { rows, at, decisions, asking, busy } = state.current;
    const row = rows[at];
    if (busy !== undefined && key.ctrl && input === 'c') return busy.abort();
    if (asking !== undefined && row !== undefined) {
      const answer = answerTo(asking, input, key);
      const [wave] = row.decisions.length === 0 && asking.action === 'answer' ? decisions : [];
      if (answer === 'start') void (wave ? settle(wave, asking.words) : start(asking.action, row, asking.words));
      else update({ asking: answer, ...(answer === undefined ? { notice: '' } : {}) });
      return;
    }
    if (busy === undefined && (input === 'q' || (key.ctrl && input === 'c'))) return exit();
    const seen = lookedAt(state.current, input, key);
    if (seen !== null) return update(seen);
    if (busy !== undefined) return;
    if (row !== undefined && input === keyOf.answer) {
      if (row.decisions.length === 0 && decisions.length === 0)
        return update({ notice: 'a answer: It has no open question.' });
      return update({ asking: { action: 'answer', words: '' }, notice: '' });
    }
    const command = row && actionsOf(review.groupId, row).find(({ action }) => keyOf[action] === input);
    if (row === undefined || command === undefined) return;
    const { action, disabled } = command;
    if (disabled !== undefined) return update({ notice: `${input} ${names[action]}: ${disabled}` });
    const isGrave = action === 'discard' || (action === 'merge' && row.kind === 'risk');
    if (action === 'send-back') update({ asking: { action, words: '' }, notice: '' });
    else if (isGrave) update({ asking: { action }, notice: '' });
    else void start(action, row);
  };
  useInput((input, key) => {
    if (input === '') press(input, key);
    // Enter may arrive together with what was typed before it.
    for (const sign of input) press(sign === '\r' ? '' : sign, sign === '\r' ? { ...key, return: true } : key);
  });
  usePaste((text) => {
    const { asking } = state.current;
    const pasted = safeText(text.replaceAll(/\r\n?/g, '\n'));
    if (asking?.words !== undefined) update({ asking: { ...asking, words: asking.words + pasted } });
  });
  const { node, scroll } = screenOf(review, state.current, columns, height);
  // What was scrolled past the end does not count.
  state.current = { ...state.current, scroll };
  return node;
}

function rowsAfter(rows: readonly ReviewRow[], acted: ReviewRow, { row, others = [] }: ActionEnd): ReviewRow[] {
  const changed = new Map(others.map((one) => [one.sessionId, one]));
  return rows.flatMap((one) => (one.sessionId === acted.sessionId ? (row ?? []) : (changed.get(one.sessionId) ?? one)));
}

/** The row that was selected, or the one that took the place of a removed one. */
function placeIn(rows: readonly ReviewRow[], before: Ui): number {
  const selected = before.rows[before.at]?.sessionId;
  const found = rows.findIndex(({ sessionId }) => sessionId === selected);
  return found >= 0 ? found : Math.min(before.at, Math.max(0, rows.length - 1));
}

function screenOf(
  review: Review,
  ui: Ui,
  columns: number,
  height: number,
): { readonly node: ReactNode; readonly scroll: number } {
  const row = ui.rows[ui.at];
  const isFull = ui.isFull === true && row !== undefined;
  const isBeside = columns >= wideColumns && !isFull;
  const listWidth = isBeside ? Math.floor(columns * 0.4) : columns;
  const message = questionOf(ui, row) ?? (ui.notice || aboutGroup(review, ui.decisions));
  // What is typed stands at its end.
  const footer = wrapped(message, columns, { color: 'yellow' }).slice(-footerMax);
  const headline = wrapped(safeLine(ui.headline, textMax), columns, { bold: true }).slice(0, headlineMax);
  const body = height - 1 - headline.length - footer.length;
  const list = listOf(ui, Math.max(3, isBeside ? body - 2 : Math.floor(body * 0.35)));
  const listHeight = isFull ? 0 : isBeside ? body : list.length + 2;
  const width = isBeside ? columns - listWidth : columns;
  const rows = Math.max(1, body - 2 - (isBeside ? 0 : listHeight));
  const lines = ui.isHelp ? help.map((text) => ({ text })) : detailsOf(review, row, width - 4, isFull);
  const scroll = Math.max(0, Math.min(ui.scroll, lines.length - rows));
  const below = lines.length - scroll - rows;
  const place = `${ui.rows.length === 0 ? 0 : ui.at + 1} of ${ui.rows.length}`;
  const details = pane({ width, height: rows + 2 }, lines.slice(scroll, scroll + rows), {
    title: row === undefined ? '' : safeLine(row.title, width - 24),
    end: below > 0 ? `${below} below: space` : scroll > 0 ? 'end' : '',
  });
  const node = h(
    Box,
    { flexDirection: 'column', width: columns, height },
    ...headline.map(textOf),
    h(
      Box,
      { flexDirection: isBeside ? 'row' : 'column', height: body, overflow: 'hidden' },
      isFull ? null : pane({ width: listWidth, height: listHeight }, list, { title: 'Review', end: place }),
      details,
    ),
    ...footer.map(textOf),
    keyLine(review.groupId, row, ui.decisions.length > 0),
  );
  return { node, scroll };
}

/** What belongs to no session: why the group is paused, its waves, and whether the safe work goes together. */
function aboutGroup({ halt, union }: Review, decisions: readonly OpenDecision[]): string {
  const asked = decisions.map((decision) => `${decision.text} ${answersOf(decision).join(' · ')}`);
  return safeLine([halt ?? [], ...asked, union ?? []].flat().join(' '), textMax);
}

const headlineMax = 2;
/** Lines of a message or of what is typed. */
const footerMax = 6;

type InputKey = Parameters<Parameters<typeof useInput>[0]>[1];

/** After a key that only shows something else; null = another key. */
function lookedAt(
  { rows, at, scroll, isHelp, isFull, notice, busy }: Ui,
  input: string,
  key: InputKey,
): Partial<Ui> | null {
  if (input === '?' || isHelp) return { isHelp: input === '?' && !isHelp };
  if (key.return) return { isFull: !isFull, scroll: 0 };
  const step = key.downArrow || input === 'j' || input === 'n' ? 1 : key.upArrow || input === 'k' ? -1 : 0;
  const next = Math.max(0, Math.min(rows.length - 1, at + step));
  if (step !== 0) return { at: next, scroll: 0, notice: busy === undefined ? '' : notice };
  const page = key.pageDown || input === ' ' ? 10 : key.pageUp ? -10 : 0;
  return page === 0 ? null : { scroll: Math.max(0, scroll + page) };
}

/** The question after a key: the same, another one, or none, or the action begins. */
function answerTo(asking: NonNullable<Ui['asking']>, input: string, key: InputKey): Ui['asking'] | 'start' {
  const { words } = asking;
  if (key.escape || (key.ctrl && input === 'c')) return undefined;
  if (words === undefined) return input === 'y' ? 'start' : undefined;
  if (key.return) return words.trim() === '' ? undefined : 'start';
  if (key.backspace || key.delete) return { ...asking, words: [...words].slice(0, -1).join('') };
  return key.ctrl || key.meta ? asking : { ...asking, words: words + input };
}

const answerForms: Readonly<Record<OpenDecision['kind'], string>> = {
  question: 'numbers of options, or words',
  permission: 'allow or deny, and words if you like',
  guard: 'allow or deny, and words if you like',
  wave: 'continue or stop, and a sentence for all later prompts if you like',
};

function questionOf({ asking, decisions }: Ui, row: ReviewRow | undefined): string | undefined {
  if (asking === undefined || row === undefined) return undefined;
  const { title, decisions: own } = row;
  const [asked] = asking.action === 'answer' ? [...own, ...decisions] : [];
  const hint = asked === undefined ? '' : ` (${answerForms[asked.kind]})`;
  if (asking.words !== undefined)
    return `To ${asked?.kind === 'wave' ? 'the wave' : title}${hint}: ${asking.words}▏ (Enter sends, Esc cancels)`;
  const stays = row.pullRequest === undefined ? '' : `It stays in ${row.pullRequest}.`;
  const why = asking.action === 'merge' ? row.risks[0]?.text : stays;
  return `y: ${names[asking.action]} ${title}? ${why ?? ''}`;
}

interface Line extends TextProps {
  readonly text: string;
}

interface PaneNames {
  readonly title: string;
  /** Shown at the right end of the upper border. */
  readonly end: string;
}

function pane(
  size: { readonly width: number; readonly height: number },
  lines: readonly Line[],
  { title, end }: PaneNames,
): ReactNode {
  return h(
    Box,
    { ...size, flexShrink: 0 },
    h(
      Box,
      { ...size, borderStyle: 'round', flexDirection: 'column', overflow: 'hidden', paddingX: 1 },
      ...lines.map(textOf),
    ),
    inBorder('left', title === '' ? '' : ` ${title} `),
    inBorder('right', end === '' ? '' : ` ${end} `),
  );
}

const textOf = ({ text, ...props }: Line) => h(Text, { wrap: 'truncate', ...props }, text === '' ? ' ' : text);

function wrapped(text: string, columns: number, props: TextProps = {}): Line[] {
  const rows = Bun.wrapAnsi(text, Math.max(1, columns), { hard: true }).split('\n');
  return rows.map((row) => ({ ...props, text: row }));
}

const colours = { high: 'red', medium: 'yellow', low: 'gray' } as const;

/** The sign of a row, its colour, and in a few words why a person should look. */
function looksOf({ kind, status, risks, decisions, said }: ReviewRow): readonly [string, TextProps, string] {
  const [worst] = risks;
  switch (kind) {
    case 'decision':
      return ['?', { color: 'yellow' }, decisions[0]?.text ?? ''];
    case 'unfinished':
      return status === 'failed' ? ['✗', { color: 'red' }, said] : ['‖', { color: 'yellow' }, said];
    case 'risk':
      return ['!', { color: colours[worst?.level ?? 'low'] }, worst?.text ?? ''];
    case 'unchanged':
      return ['·', { color: 'yellow' }, said];
    case 'waiting':
      return ['○', { dimColor: true }, status];
    default:
      return ['✓', {}, ''];
  }
}

function listOf({ rows, at }: Ui, height: number): Line[] {
  const lines = rows.flatMap((row, index): (Line & { readonly isAt?: boolean })[] => {
    const [sign, props, why] = looksOf(row);
    const facts = [row.title, row.project, why === '' ? changeText(row) : safeLine(why, 300)];
    const isAt = index === at;
    const own = { ...props, text: `${isAt ? '›' : ' '}${sign} ${facts.join('  ')}`, inverse: isAt, isAt };
    return row.kind === rows[index - 1]?.kind ? [own] : [{ text: kindTitle(row.kind), bold: true }, own];
  });
  const begin = Math.max(0, Math.min(lines.findIndex(({ isAt }) => isAt) - (height >> 1), lines.length - height));
  return lines.slice(begin, begin + height).map(({ isAt: _at, ...line }) => line);
}

function detailsOf({ groupId }: Review, row: ReviewRow | undefined, columns: number, isFull: boolean): Line[] {
  if (row === undefined) return [{ text: 'Nothing to review.' }];
  const { project, status, reason, risks, decisions, asked, said, evidence, files, pullRequest } = row;
  const wrap = (text: string, props?: TextProps) => wrapped(safeLine(text, textMax), columns, props);
  const part = (name: string, lines: readonly Line[]) =>
    lines.length === 0 ? [] : [{ text: name, dimColor: true }, ...lines];
  const paragraph = (text: string) => (text === '' ? [] : text.split('\n').flatMap((one) => wrap(one)));
  const task = paragraph(asked);
  const isCut = !isFull && task.length > askedRowsMax;
  return [
    ...wrap(`${project}, ${status}${reason === undefined ? '' : ` (${reason})`}, ${costText(row)}`, { bold: true }),
    ...decisions.flatMap((decision) => [
      ...wrap(decision.text),
      ...choicesOf(decision).flatMap((choice) => wrap(choice)),
      ...answersOf(decision).map((text) => ({ text })),
    ]),
    ...(pullRequest === undefined ? [] : wrap(`Pull request ${pullRequest}`)),
    ...risks.flatMap(({ level, text }) => wrap(spelledLine(text), { color: colours[level] })),
    ...part('Said at its end', paragraph(said)),
    ...part(
      'Checks',
      evidence.flatMap((run) => wrap(checkText(run), isRed(run) ? { color: 'red' } : {})),
    ),
    ...part(
      'Asked',
      isCut ? [...task.slice(0, askedRowsMax - 1), { text: '… (enter shows all)', dimColor: true }] : task,
    ),
    ...part(`${changeText(row)} in ${groupId}`, [
      ...files
        .slice(0, filesMax)
        .flatMap(({ text }) => text.slice(0, patchMax).replace(/\n$/, '').split('\n'))
        .slice(0, diffLinesMax)
        .map(diffLine),
    ]),
  ];
}

/** A check that should have passed. On the earlier code it should fail. */
function isRed({ code, exitCode }: CheckRun): boolean {
  return code !== 'base' && exitCode !== 0;
}

const diffColours: readonly (readonly [start: RegExp, props: TextProps])[] = [
  [/^(?:diff |index |--- |\+\+\+ )/, { bold: true }],
  [/^@@ /, { color: 'cyan' }],
  [/^\+/, { color: 'green' }],
  [/^-/, { color: 'red' }],
];

function diffLine(raw: string): Line {
  const [, props] = diffColours.find(([start]) => start.test(raw)) ?? [];
  return { text: spelledLine(raw.slice(0, 500)), ...props };
}

function keyLine(groupId: GroupId, row: ReviewRow | undefined, hasWave: boolean): ReactNode {
  const actions = row === undefined ? [] : actionsOf(groupId, row);
  // Work that waits for an answer can neither be merged nor proposed.
  const isAsked = row !== undefined && row.decisions.length > 0;
  const shown: readonly { readonly action: ScreenAction; readonly disabled?: string }[] = [
    ...(isAsked || (row !== undefined && hasWave) ? [{ action: 'answer' } as const] : []),
    ...actions.filter(({ disabled }) => !isAsked || disabled === undefined),
  ];
  const keys = shown.map(({ action, disabled }) =>
    h(Text, { key: action, dimColor: disabled !== undefined }, `${keyOf[action]} ${names[action]}  `),
  );
  return h(Text, { wrap: 'truncate' }, ...keys, 'enter details  ? help  q leave');
}
