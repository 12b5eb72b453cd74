/** The header, and the last rows: notices, an open question or input, or the keys. */
import { type Advice, commandText } from '../../core/advice.ts';
import { addUsage, noUsage, type Usage } from '../../core/group.ts';
import { openItems } from '../../core/item.ts';
import { groupAdvice, runCommand } from '../../core/plan/advice.ts';
import { openWaveItem } from '../../core/plan/waves.ts';
import type { FleetStanding } from '../../core/progress.ts';
import { elapsedMs, type GroupState, isThrottled } from '../../core/state.ts';
import { formatAge, formatDuration, formatMoney, formatTokens, plural, type Tone } from '../../view/format.ts';
import { safeLine, safeText } from '../../view/terminal-text.ts';
import { messageAtRest, statusTone, titleOf, withAdvice, withLocalTimes } from '../../view/wording.ts';
import type { PaneContent } from '../layout.ts';
import {
  fitEnd,
  fitLine,
  type Glyphs,
  plainWidths,
  type Row,
  rowBetween,
  rowOf,
  type ScreenCell,
  widthOf,
  wrapCells,
} from './cells.ts';
import { staysFor } from './keys.ts';
import type { Mode, Ui } from './ui.ts';
import { isBlocked, limitNow, momentIn, type Notice, reasoned, type Terminal, type View } from './view.ts';

const sentenceColumnsMax = 400;
const heldRowsMax = 2;

/** The title, and below it the budget, the hosts of a fleet, and what delays the group. */
export function headContent(view: View, terminal: Terminal): PaneContent {
  const { columns } = terminal;
  const machines = view.fleet === undefined ? [] : [fleetRow(view.fleet, terminal)];
  const rows = [moneyRow(view, terminal), ...machines];
  const held = heldBy(view);
  if (held !== null) {
    const wrapped = (text: string) => wrapCells([{ ...held, text: fitLine(text, sentenceColumnsMax) }], columns - 2);
    const full = wrapped(withAdvice(held.text, held.advice));
    // Half a command could be pasted and would do something else.
    const lines = full.length <= heldRowsMax ? full : wrapped(fitLine(held.text, heldRowsMax * (columns - 10)));
    rows.push(...lines.map((line) => rowOf([{ text: ' ' }, ...line], columns)));
  }
  return { ...titleOfGroup(view, terminal), rows };
}

function titleOfGroup(view: View, { columns, glyphs }: Terminal): Pick<PaneContent, 'title' | 'end'> {
  const { state, nowMs, runner } = view;
  const isGone = state.status === 'running' && runner === 'none';
  const word = isGone ? 'interrupted' : state.status;
  const atMs = isGone ? Date.parse(state.updatedAt) : nowMs;
  // A rehearsal is marked at every width; the name is cut first.
  const rest: ScreenCell[] = [
    { text: '  ' },
    { text: word, tone: statusTone(word) },
    { text: `  ${formatDuration(elapsedMs(state, atMs))}` },
    { text: state.run?.rehearsal ? '  rehearsal' : '', tone: 'dim' },
    { text: ' ' },
  ];
  const [worded, brief] = [countCells(view, glyphs, true), countCells(view, glyphs, false)];
  const nameColumns = Math.max(12, Math.min(40, columns - widthOf(rest) - widthOf(brief) - 6));
  const title: ScreenCell[] = [{ text: ` ${fitLine(state.group.name, nameColumns)}`, tone: 'strong' }, ...rest];
  const room = columns - widthOf(title) - 4;
  return { title, end: [worded, brief].find((cells) => widthOf(cells) < room) ?? brief.slice(-3) };
}

function countCells({ state, verdicts }: View, glyphs: Glyphs, hasWords: boolean): ScreenCell[] {
  const { running, pending, paused, failed, completed } = state.counts;
  const records = [...state.sessions.values()];
  const blocked = records.filter((record) => isBlocked(verdicts, record)).length;
  const asking = records.filter((record) => openItems(record).length > 0).length;
  const one = (glyph: string, count: number, word: string, tone: Tone): ScreenCell[] =>
    count === 0 ? [] : [{ text: `${glyph} ${count}${hasWords ? ` ${word}` : ''} `, tone }, { text: ' ' }];
  return [
    { text: ' ' },
    ...one('?', asking, 'waiting for you', 'warn'),
    ...one(glyphs.running, running, 'running', 'accent'),
    ...one(glyphs.pending, pending - blocked, 'waiting', 'dim'),
    ...one(glyphs.blocked, blocked, 'blocked', 'warn'),
    ...one(glyphs.paused, paused, 'paused', 'warn'),
    ...one(glyphs.failed, failed, 'failed', 'bad'),
    { text: `${glyphs.completed} ${completed}/${state.sessions.size}${hasWords ? ' done' : ''} `, tone: 'good' },
  ];
}

function moneyRow(view: View, terminal: Terminal): Row {
  const { state, live } = view;
  const { columns, glyphs } = terminal;
  let usage: Usage = state.usage;
  let reservedUsd = 0;
  for (const id of state.running) {
    const now = live.get(id)?.usage ?? noUsage;
    usage = addUsage(usage, now);
    reservedUsd += stillReserved(state, id, now.costUsd);
  }
  for (const id of state.takenOver) reservedUsd += state.sessions.get(id)?.takenOver?.reservedUsd ?? 0;
  const capUsd = state.group.config.maxBudgetUsd;
  const spent = formatMoney(usage.costUsd, usage.estimated);
  const tokens: ScreenCell[] = [{ text: `${formatTokens(usage.tokens)} `, tone: 'dim' }];
  if (capUsd === undefined) {
    const left: ScreenCell[] = [
      { text: ` ${spent} spent`, tone: 'strong' },
      { text: ', no cap', tone: 'dim' },
    ];
    return paced(view, terminal, { left, reserved: '', right: tokens });
  }
  const width = Math.max(8, Math.min(40, Math.floor(columns / 5)));
  const reserved = reservedUsd > 0 ? `  ${formatMoney(reservedUsd)} reserved` : '';
  const left: ScreenCell[] = [
    { text: ` ${spent}`, tone: 'strong' },
    { text: ` of ${formatMoney(capUsd)}  ` },
    ...bar(state, { spentUsd: usage.costUsd, reservedUsd, capUsd, width }, glyphs),
  ];
  return paced(view, terminal, { left, reserved, right: tokens });
}

interface MoneyParts {
  readonly left: readonly ScreenCell[];
  /** The bar shows this value as well. */
  readonly reserved: string;
  readonly right: readonly ScreenCell[];
}

function paced(view: View, terminal: Terminal, { left, reserved, right }: MoneyParts): Row {
  const { columns } = terminal;
  const room = columns - widthOf(left) - widthOf(right) - 2;
  const pace = paceCells(view, columns >= roomyColumns ? room - reserved.length : room);
  const isTold = widthOf(pace) + reserved.length <= room;
  return rowBetween([...left, ...(isTold ? [{ text: reserved, tone: 'dim' } as const] : []), ...pace], right, columns);
}

/** Usually wide enough for everything. */
const roomyColumns = 100;

/** Lost, refusing and drained hosts are named only if there are any. */
function fleetRow({ up, drained, refusing, lost, silent, used, slots }: FleetStanding, { columns }: Terminal): Row {
  const one = (count: number, word: string, tone: Tone): ScreenCell[] =>
    count === 0 ? [] : [{ text: `  ${count} ${word}`, tone }];
  const left: ScreenCell[] = [
    { text: ' fleet:' },
    { text: ` ${up} up`, tone: up === 0 ? 'bad' : 'good' },
    ...one(lost, 'lost', 'bad'),
    ...Object.entries(silent).map(
      ([host, ms]): ScreenCell => ({
        text: `  ${safeLine(host, 20)} last seen ${formatAge(ms)} ago`,
        tone: 'bad',
      }),
    ),
    ...one(refusing, 'refusing', 'bad'),
    ...one(drained, 'drained', 'warn'),
  ];
  return rowBetween(left, [{ text: `${used}/${plural(slots, 'slot')} used `, tone: 'dim' }], columns);
}

function paceCells({ state, runner, perHourUsd = null, remainingMs }: View, room: number): ScreenCell[] {
  if (state.status !== 'running' || runner === 'none') return [];
  const burn = perHourUsd === null || state.running.size === 0 ? '' : `  ${formatMoney(perHourUsd)}/h`;
  const left = remainingMs === undefined ? '' : `  ~${formatDuration(remainingMs)} left`;
  const [isBurnShown, isLeftShown] = [burn.length <= room, burn.length + left.length <= room];
  return [{ text: isBurnShown ? burn : '' }, { text: isLeftShown ? left : '', tone: 'dim' }];
}

function stillReserved(state: GroupState, id: string, spentUsd: number): number {
  const of = state.sessions.get(id)?.state;
  return of?.status === 'running' ? Math.max(0, (of.attempt.reservedUsd ?? 0) - spentUsd) : 0;
}

interface Amounts {
  readonly spentUsd: number;
  readonly reservedUsd: number;
  readonly capUsd: number;
  readonly width: number;
}

function bar(state: GroupState, { spentUsd, reservedUsd, capUsd, width }: Amounts, glyphs: Glyphs): ScreenCell[] {
  const share = capUsd > 0 ? Math.min(1, spentUsd / capUsd) : 1;
  // A small amount still fills one column.
  const spent = Math.min(width, spentUsd > 0 ? Math.max(1, Math.round(share * width)) : 0);
  const free = capUsd > 0 ? Math.min(width - spent, Math.round((reservedUsd / capUsd) * width)) : 0;
  const tone = share >= 1 ? 'bad' : share >= state.group.config.warningThreshold ? 'warn' : 'good';
  return [
    { text: glyphs.barSpent.repeat(spent), tone },
    { text: glyphs.barReserved.repeat(free), tone: 'dim' },
    { text: glyphs.barFree.repeat(width - spent - free), tone: 'dim' },
    { text: ` ${Math.round((capUsd > 0 ? spentUsd / capUsd : 1) * 100)}%`, tone },
  ];
}

interface Held {
  readonly text: string;
  readonly advice?: Advice;
  readonly tone: Tone;
}

/** What stops the group or needs the user; null = nothing. */
function heldBy({ state, nowMs, runner }: View): Held | null {
  switch (state.status) {
    case 'created':
      if (runner !== 'none') return null;
      return { text: 'Not started yet.', advice: groupAdvice(state), tone: 'warn' };
    case 'running':
      if (runner === 'none') {
        return { text: `runner gone: ${commandText(runCommand(state))}`, tone: 'bad' };
      }
      return conditionNow(state, nowMs);
    case 'paused':
    case 'failed': {
      const tone = state.status === 'failed' ? 'bad' : 'warn';
      const text = withLocalTimes(reasoned(state.reason, messageAtRest(state)), nowMs);
      return { text, advice: groupAdvice(state), tone };
    }
    default:
      return null;
  }
}

function conditionNow(state: GroupState, nowMs: number): Held | null {
  if (state.pausing !== undefined) {
    const running = plural(state.counts.running, 'session');
    const text = state.draining
      ? `pausing: ${running} may finish first`
      : `pausing (${state.pausing}): ${running} left`;
    return { text, tone: 'warn' };
  }
  if (state.frozenUntil !== undefined) {
    return {
      text: `frozen: everything is halted; it becomes a pause in ${momentIn(state.frozenUntil, nowMs)}`,
      tone: 'warn',
    };
  }
  const wave = openWaveItem(state);
  if (wave !== undefined) return { text: `${wave.text} Press w to decide.`, tone: 'warn' };
  const limit = limitNow(state, nowMs);
  return limit === null ? null : { text: isThrottled(state) ? limit : `usage ${limit}`, tone: 'warn' };
}

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

export interface LastRow {
  readonly view: View;
  readonly ui: Ui;
  /** Keys and their effects; the last two are always shown. */
  readonly hints: readonly string[];
  /** If no border shows it. */
  readonly position: ListPosition | null;
}

/** A notice replaces the keys where the terminal has no other row for it. */
export function footerRow({ view, ui, hints, position }: LastRow, terminal: Terminal): Footer {
  const { columns } = terminal;
  const { mode } = ui;
  switch (mode.kind) {
    case 'filter':
      return input(' filter: ', ui.filter, terminal);
    case 'palette':
      return input(' : ', mode.text, terminal);
    case 'say':
    case 'answer':
    case 'note':
      return input(` ${inputLabel(view, mode)}: `, mode.text, terminal);
    case 'browse': {
      const right = position === null ? [] : where(ui, position);
      const left = view.notices?.at(-1);
      const room = columns - widthOf(right) - 1;
      return { row: rowBetween(left === undefined ? hintCells(hints, room) : noticeCells(left, room), right, columns) };
    }
    default:
      return { row: rowOf([{ text: ` ${question(mode.kind, view, columns - 1)}`, tone: 'warn' }], columns) };
  }
}

function inputLabel({ state }: View, mode: Extract<Mode, { kind: 'say' | 'answer' | 'note' }>): string {
  if (mode.kind === 'say') return `message to ${plainWidths(titleOf(state, mode.sessionId))}`;
  if (mode.kind === 'note') return 'sentence for the prompts that follow';
  const items = [...state.sessions.values()].flatMap((record) => openItems(record));
  const item = items.find(({ id }) => id === mode.item);
  if (item === undefined) return 'answer';
  const options = item.options.map((option, index) => (item.kind === 'question' ? `${index + 1} ${option}` : option));
  const choice = options.length === 0 ? '' : ` (${options.join(', ')})`;
  return plainWidths(safeLine(`${item.text}${choice}`, noticeColumnsMax));
}

const fitsBeside = (label: string, columns: number): boolean => Bun.stringWidth(label) <= columns / 2;

/** With the question that is answered as the newest notice, unless it has room beside the answer. */
export function withQuestion(view: View, { mode }: Ui, { columns }: Terminal): View {
  if (mode.kind !== 'answer') return view;
  const text = inputLabel(view, mode);
  if (fitsBeside(` ${text}: `, columns)) return view;
  return { ...view, notices: [...(view.notices ?? []), { text, tone: 'warn' }] };
}

type Question = Extract<Mode['kind'], `ask-${string}`>;

const questions: Readonly<Record<Question, readonly [question: string, otherwise: string]>> = {
  'ask-leave': ['Leave the sessions running (l), or pause them (p)?', 'stay'],
  'ask-open': ['Open the worktree (w), the log (l) or the report (r)?', 'no'],
  'ask-pause': ['Pause all: now (y), when running sessions have finished (d), freeze (f)?', 'no'],
  'ask-start': ['Start the group for real, with a runner of its own (y)?', 'no'],
  'ask-resume': ['The group has no runner. Resume it (y), or pause what still works (p)?', 'no'],
  'ask-wave': ['Continue with the next wave (c), continue with a note (n), or stop (s)?', 'later'],
};

/** Leaving would undo these requests. */
const stays = {
  frozen: 'Everything is frozen. Pause it now and leave (p)?',
  draining: 'It pauses when what runs has finished. Pause it now and leave (p)?',
  pausing: 'Pausing, then exiting. Press Ctrl-C to leave at once.',
} as const;

function question(kind: Question, { state }: View, columns: number): string {
  const [usual, otherwise] = questions[kind];
  const stay = kind === 'ask-leave' ? staysFor(state) : null;
  const asked = stay === null ? usual : stays[stay];
  const whole = `${asked} Any other key: ${otherwise}.`;
  return whole.length <= columns ? whole : asked;
}

function input(label: string, text: string, { columns, glyphs }: Terminal): Footer {
  const start = fitsBeside(label, columns) ? label : ' > ';
  const clean = plainWidths(safeText(text).replaceAll('\n', glyphs.newline).replaceAll('\t', ' '));
  // One column is left for the cursor.
  const shown = fitEnd(clean, Math.max(1, columns - Bun.stringWidth(start) - 1));
  const cursor = Math.min(columns - 1, Bun.stringWidth(start) + Bun.stringWidth(shown));
  return { row: rowOf([{ text: start, tone: 'accent' }, { text: shown }], columns), cursor };
}

/** The list gives up at most this many rows to notices. */
const noticeRowsMax = 4;
const noticeColumnsMax = 1_000;

/** Results of keys and recent events, in full if `rowsMax` allows. The newest have priority. */
export function noticeRows({ notices = [], nowMs }: View, { columns }: Terminal, rowsMax: number): Row[] {
  const most = Math.max(0, Math.min(noticeRowsMax, rowsMax));
  let shown: ScreenCell[][] = [];
  for (const { text, tone } of notices.toReversed()) {
    const said = fitLine(withLocalTimes(text, nowMs), noticeColumnsMax);
    const lines = wrapCells([tone === undefined ? { text: said } : { text: said, tone }], columns - 2);
    if (shown.length > 0 && shown.length + lines.length > most) break;
    shown = [...lines.slice(0, most), ...shown];
  }
  return shown.map((line) => rowOf([{ text: ' ' }, ...line], columns));
}

function noticeCells({ text, tone }: Notice, columns: number): ScreenCell[] {
  const shown = ` ${fitLine(text, columns - 1)}`;
  return [tone === undefined ? { text: shown } : { text: shown, tone }];
}

function hintCells(all: readonly string[], columns: number): ScreenCell[] {
  let left = columns + 1;
  const kept = new Set<string>();
  for (const hint of [...all.slice(-2), ...all.slice(0, -2)]) {
    left -= hint.length + 2;
    if (left >= 0) kept.add(hint);
  }
  return all
    .filter((one) => kept.has(one))
    .flatMap((hint, index): ScreenCell[] => {
      const [key = '', ...words] = hint.split(' ');
      const gap = { text: index === 0 ? ' ' : '  ' };
      return [gap, { text: key, tone: 'accent' }, { text: ` ${words.join(' ')}`, tone: 'dim' }];
    });
}

export function where(ui: Ui, position: ListPosition): ScreenCell[] {
  const { marked } = ui;
  const marks: ScreenCell[] = marked.length === 0 ? [] : [{ text: `${marked.length} marked `, tone: 'accent' }];
  return [...marks, ...listed(ui, position)];
}

function listed(ui: Ui, { first, last, listed: count, all }: ListPosition): ScreenCell[] {
  const filtered = count < all || ui.filter !== '' || ui.onlyProblems;
  const of = filtered ? `${count} of ${all} shown` : '';
  // The list is hidden by the pane.
  if (last < first && count > 0) return [];
  if (last - first + 1 >= count) return of === '' ? [] : [{ text: `${of} `, tone: 'warn' }];
  return [{ text: `${first}-${last} of ${count}${filtered ? ` (${all})` : ''} `, tone: filtered ? 'warn' : 'dim' }];
}
