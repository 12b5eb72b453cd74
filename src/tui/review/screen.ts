/** tui/review/: the review on a terminal, laid out by ink: the sessions, and the facts about the selected one. */
import { Box, Text, type TextProps, useApp, useInput, usePaste, useWindowSize } from 'ink';
import { createElement as h, type ReactNode, useRef, useState } from 'react';
import {
  type ActionCommand,
  actionsOf,
  answersOf,
  changeText,
  checkText,
  costText,
  kindTitle,
  type Review,
  type ReviewAction,
  type ReviewRow,
} from '../../view/review/review.ts';
import { safeLine, spelledLine } from '../../view/terminal-text.ts';

/** The result of an action: a sentence, and the row as it is now; null = the row is gone. */
export interface ActionEnd {
  readonly notice: string;
  readonly row: ReviewRow | null;
}

export interface ReviewScreenOptions {
  readonly review: Review;
  act(action: ReviewAction, row: ReviewRow, words: string): Promise<ActionEnd>;
}

/** In narrower terminals the details are below the list. */
const wideColumns = 100;
const textMax = 4000;
const filesMax = 100;
const patchMax = 20_000;
const diffLinesMax = 2000;

const keyOf: Readonly<Record<ReviewAction, string>> = { merge: 'm', pr: 'p', 'send-back': 'b', discard: 'd' };
const names: Readonly<Record<ReviewAction, string>> = {
  merge: 'merge',
  pr: 'pull request',
  'send-back': 'send back',
  discard: 'discard',
};
const help = [
  'j n ↓  next session          k ↑  previous session',
  'space PgDn  details down     PgUp  details up',
  'm  merge the work            p  push it and open a pull request',
  'b  send it back with words   d  discard the session; unmerged commits stay on its branch',
  'q  leave; sessions that were sent back then run',
];

interface Ui {
  readonly rows: readonly ReviewRow[];
  readonly at: number;
  readonly scroll: number;
  readonly notice: string;
  /** The text to send back, or the action that needs a `y`. */
  readonly asking?: { readonly action: ReviewAction; readonly words?: string } | undefined;
  readonly isHelp?: boolean;
  readonly isBusy?: boolean;
}

export function createReviewApp(options: ReviewScreenOptions): ReactNode {
  return h(ReviewApp, options);
}

function ReviewApp({ review, act }: ReviewScreenOptions): ReactNode {
  const { exit } = useApp();
  const { columns, rows: height } = useWindowSize();
  // Several keys may arrive before the next frame is drawn.
  const state = useRef<Ui>({ rows: review.rows, at: 0, scroll: 0, notice: '' });
  const [, redraw] = useState(state.current);
  const update = (change: Partial<Ui>) => {
    state.current = { ...state.current, ...change };
    redraw(state.current);
  };
  const start = async (action: ReviewAction, row: ReviewRow, words = '') => {
    update({ isBusy: true, notice: `${row.title}: ${names[action]} …`, asking: undefined });
    const { notice, row: now } = await act(action, row, words);
    const rows = state.current.rows.flatMap((one) => (one.sessionId !== row.sessionId ? one : (now ?? [])));
    update({ rows, at: Math.min(state.current.at, Math.max(0, rows.length - 1)), notice, isBusy: false });
  };
  const press = (input: string, key: InputKey) => {
    const { rows, at, scroll, asking, isBusy, isHelp } = state.current;
    const row = rows[at];
    if (isBusy) return;
    if (asking !== undefined && row !== undefined) {
      const answer = answerTo(asking, input, key);
      if (answer === 'start') void start(asking.action, row, asking.words);
      else update({ asking: answer, ...(answer === undefined ? { notice: '' } : {}) });
      return;
    }
    if (input === 'q' || (key.ctrl && input === 'c')) return exit();
    if (input === '?' || isHelp) return update({ isHelp: input === '?' && !isHelp });
    const step = key.downArrow || input === 'j' || input === 'n' ? 1 : key.upArrow || input === 'k' ? -1 : 0;
    if (step !== 0) return update({ at: Math.max(0, Math.min(rows.length - 1, at + step)), scroll: 0, notice: '' });
    const page = key.pageDown || input === ' ' ? 10 : key.pageUp ? -10 : 0;
    if (page !== 0) return update({ scroll: Math.max(0, scroll + page) });
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
    for (const sign of input) press(sign, key);
  });
  const ui = state.current;
  const row = ui.rows[ui.at];
  usePaste((text) => {
    const { asking } = state.current;
    if (asking?.words !== undefined) update({ asking: { ...asking, words: asking.words + safeLine(text, textMax) } });
  });
  const isWide = columns >= wideColumns;
  const listRows = isWide ? height - 6 : Math.floor((height - 6) * 0.4);
  return h(
    Box,
    { flexDirection: 'column', width: columns, height },
    h(Text, { bold: true, wrap: 'truncate' }, safeLine(review.headline, columns)),
    h(
      Box,
      { flexDirection: isWide ? 'row' : 'column', flexGrow: 1, overflow: 'hidden' },
      pane({ width: isWide ? '40%' : '100%', height: isWide ? undefined : listRows + 2 }, listOf(ui, listRows)),
      pane(
        { flexGrow: 1, flexBasis: 0 },
        ui.isHelp ? help.map((text) => line(text)) : detailsOf(review, row, ui.scroll),
      ),
    ),
    h(Text, { wrap: 'truncate', color: 'yellow' }, questionOf(ui, row) ?? (ui.notice || (review.union ?? ''))),
    keyLine(row === undefined ? [] : actionsOf(review.groupId, row)),
  );
}

type InputKey = Parameters<Parameters<typeof useInput>[0]>[1];

/** The question after a key: the same, another one, or none, or the action begins. */
function answerTo(asking: NonNullable<Ui['asking']>, input: string, key: InputKey): Ui['asking'] | 'start' {
  const { words } = asking;
  if (key.escape || (key.ctrl && input === 'c')) return undefined;
  if (words === undefined) return input === 'y' ? 'start' : undefined;
  if (key.return) return words.trim() === '' ? undefined : 'start';
  if (key.backspace || key.delete) return { ...asking, words: words.slice(0, -1) };
  return key.ctrl || key.meta ? asking : { ...asking, words: words + input };
}

function questionOf({ asking }: Ui, row: ReviewRow | undefined): string | undefined {
  if (asking === undefined || row === undefined) return undefined;
  if (asking.words !== undefined) return `To ${row.title}: ${asking.words}▏ (Enter sends, Esc cancels)`;
  const why = row.risks[0] === undefined ? '' : ` ${row.risks[0].text}`;
  return `y: ${names[asking.action]} ${row.title}?${why}`;
}

function pane(style: Parameters<typeof Box>[0], children: readonly ReactNode[]): ReactNode {
  return h(
    Box,
    { ...style, borderStyle: 'round', flexDirection: 'column', overflow: 'hidden', paddingX: 1 },
    ...children,
  );
}

function line(text: string, props: TextProps = {}): ReactNode {
  // Rows that do not fit are cut off at the bottom.
  return h(Box, { flexShrink: 0 }, h(Text, { wrap: 'truncate', ...props }, text === '' ? ' ' : text));
}

const colours = { high: 'red', medium: 'yellow', low: 'gray' } as const;

function listOf({ rows, at }: Ui, height: number): ReactNode[] {
  const lines = rows.flatMap((row, index) => {
    const { kind, title, project, risks } = row;
    const level = kind === 'risk' ? (risks[0]?.level ?? 'low') : undefined;
    const mark = level === undefined ? (kind === 'safe' ? '✓' : ' ') : '!';
    const text = `${index === at ? '›' : ' '}${mark} ${title}  ${project}  ${changeText(row)}`;
    const color = level === undefined ? {} : { color: colours[level] };
    const own = { isAt: index === at, node: line(text, { ...color, inverse: index === at }) };
    return kind === rows[index - 1]?.kind ? [own] : [{ isAt: false, node: line(kindTitle(kind), { bold: true }) }, own];
  });
  const begin = Math.max(0, Math.min(lines.findIndex(({ isAt }) => isAt) - (height >> 1), lines.length - height));
  return lines.slice(begin, begin + height).map(({ node }) => node);
}

function detailsOf({ groupId }: Review, row: ReviewRow | undefined, scroll: number): ReactNode[] {
  if (row === undefined) return [line('Nothing to review.')];
  const { title, status, reason, risks, decisions, asked, said, evidence, files } = row;
  const part = (name: string, text: string) =>
    text === '' ? [] : [line(name, { dimColor: true }), line(safeLine(text, textMax), { wrap: 'wrap' })];
  const nodes = [
    line(`${title}  ${status}${reason === undefined ? '' : ` (${reason})`}  ${costText(row)}`, { bold: true }),
    ...decisions.flatMap((decision) => [
      line(safeLine(decision.text, textMax), { wrap: 'wrap' }),
      ...answersOf(decision).map((text) => line(text)),
    ]),
    ...risks.map(({ level, text }) =>
      line(spelledLine(safeLine(text, textMax)), { color: colours[level], wrap: 'wrap' }),
    ),
    ...part('Asked', asked),
    ...part('Said at its end', said),
    ...evidence.map((run) => line(safeLine(checkText(run), textMax), { wrap: 'wrap', dimColor: true })),
    line(`${changeText(row)} in ${groupId}`, { dimColor: true }),
    ...files
      .slice(0, filesMax)
      .flatMap(({ text }) => text.slice(0, patchMax).replace(/\n$/, '').split('\n'))
      .slice(0, diffLinesMax)
      .map(diffLine),
  ];
  return nodes.slice(Math.min(scroll, nodes.length - 1), scroll + 200);
}

function diffLine(raw: string): ReactNode {
  const color = raw.startsWith('@@ ')
    ? 'cyan'
    : raw.startsWith('+')
      ? 'green'
      : raw.startsWith('-')
        ? 'red'
        : undefined;
  const isHead = /^(?:diff |index |--- |\+\+\+ )/.test(raw);
  return line(spelledLine(raw.slice(0, 500)), isHead ? { bold: true } : color === undefined ? {} : { color });
}

function keyLine(actions: readonly ActionCommand[]): ReactNode {
  const keys = actions.map(({ action, disabled }) =>
    h(Text, { key: action, dimColor: disabled !== undefined }, `${keyOf[action]} ${names[action]}  `),
  );
  return h(Text, { wrap: 'truncate' }, ...keys, 'n next  ? help  q leave');
}
