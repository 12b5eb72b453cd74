/** The head of the dashboard: the group, how far it is, its money, and what holds it up. */

import { commandText } from '../../core/advice.ts';
import { addUsage, noUsage, type Usage } from '../../core/group.ts';
import { groupAdvice, runCommand } from '../../core/plan/advice.ts';
import type { FleetStanding } from '../../core/progress.ts';
import { type GroupState, isThrottled } from '../../core/state.ts';
import { formatDuration, formatMoney, formatTokens, plural, type Tone } from '../../view/format.ts';
import { statusTone, withAdvice, withLocalTimes } from '../../view/wording.ts';
import { type Cell, foreign, type Row, rowBetween, rowOf, widthOf, wrapCells } from './cells.ts';
import type { Glyphs } from './glyphs.ts';
import { sparkline } from './timeline.ts';
import { limitNow, momentIn, reasoned, type Terminal, type View } from './view.ts';

const sentenceColumnsMax = 400;
const heldRowsMax = 2;

/** Two rows, one for the machines of a fleet, and one or two more when something holds the group up. */
export function headerRows(view: View, terminal: Terminal): Row[] {
  const machines = view.fleet === undefined ? [] : [fleetRow(view.fleet, terminal)];
  const rows = [titleRow(view, terminal), moneyRow(view, terminal), ...machines];
  const held = heldBy(view);
  if (held === null) return rows;
  const said = { ...held, text: foreign(held.text, sentenceColumnsMax) };
  const lines = wrapCells([said], terminal.columns - 2).slice(0, heldRowsMax);
  return [...rows, ...lines.map((line) => rowOf([{ text: ' ' }, ...line], terminal.columns))];
}

function titleRow({ state, nowMs, runner }: View, { columns, glyphs }: Terminal): Row {
  const isGone = state.status === 'running' && runner === 'none';
  const word = isGone ? 'interrupted' : state.status;
  const elapsedMs = elapsed(state, isGone ? Date.parse(state.updatedAt) : nowMs);
  // Play money is marked at every width: rather the name is shorter.
  const mark = state.run?.rehearsal ? '  rehearsal' : '';
  const nameColumns = Math.max(12, Math.floor(columns / 3) - mark.length);
  const left: Cell[] = [
    { text: ` ${foreign(state.group.name, nameColumns)}`, tone: 'strong' },
    { text: '  ' },
    { text: word, tone: statusTone(word) },
    { text: `  ${formatDuration(elapsedMs)}` },
    { text: mark, tone: 'dim' },
  ];
  const worded = countCells(state, glyphs, true);
  const isRoomy = widthOf(left) + widthOf(worded) < columns;
  return rowBetween(left, isRoomy ? worded : countCells(state, glyphs, false), columns);
}

function elapsed(state: GroupState, atMs: number): number {
  const current = state.runStartedAt === undefined ? 0 : Math.max(0, atMs - Date.parse(state.runStartedAt));
  return state.elapsedBeforeMs + current;
}

function countCells(state: GroupState, glyphs: Glyphs, hasWords: boolean): Cell[] {
  const { running, pending, paused, failed, completed } = state.counts;
  const one = (glyph: string, count: number, word: string, tone: Tone): Cell[] =>
    count === 0 ? [] : [{ text: `${glyph} ${count}${hasWords ? ` ${word}` : ''}  `, tone }];
  return [
    ...one(glyphs.running, running, 'running', 'accent'),
    ...one(glyphs.pending, pending, 'waiting', 'dim'),
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
  const tokens: Cell[] = [{ text: `${formatTokens(usage.tokens)} `, tone: 'dim' }];
  if (capUsd === undefined) {
    const left: Cell[] = [
      { text: ` ${spent} spent`, tone: 'strong' },
      { text: ', no cap', tone: 'dim' },
    ];
    return paced(view, terminal, { left, reserved: '', right: tokens });
  }
  const width = Math.max(8, Math.min(40, Math.floor(columns / 5)));
  const reserved = reservedUsd > 0 ? `  ${formatMoney(reservedUsd)} reserved` : '';
  const left: Cell[] = [
    { text: ` ${spent}`, tone: 'strong' },
    { text: ` of ${formatMoney(capUsd)}  ` },
    ...bar(state, { spentUsd: usage.costUsd, reservedUsd, capUsd, width }, glyphs),
  ];
  return paced(view, terminal, { left, reserved, right: tokens });
}

interface MoneyParts {
  readonly left: readonly Cell[];
  /** The bar shows it as well. */
  readonly reserved: string;
  readonly right: readonly Cell[];
}

function paced(view: View, terminal: Terminal, { left, reserved, right }: MoneyParts): Row {
  const { columns } = terminal;
  const room = columns - widthOf(left) - widthOf(right) - 2;
  const pace = paceCells(view, terminal, columns >= roomyColumns ? room - reserved.length : room);
  const isTold = widthOf(pace) + reserved.length <= room;
  return rowBetween([...left, ...(isTold ? [{ text: reserved, tone: 'dim' } as const] : []), ...pace], right, columns);
}

/** From here on there is room for everything as a rule. */
const roomyColumns = 100;
/** A shorter line says nothing. */
const sparkColumnsMin = 8;

/** What is lost or takes nothing is told when there is such a machine. */
function fleetRow({ up, drained, refusing, lost, used, slots }: FleetStanding, { columns }: Terminal): Row {
  const one = (count: number, word: string, tone: Tone): Cell[] =>
    count === 0 ? [] : [{ text: `  ${count} ${word}`, tone }];
  const left: Cell[] = [
    { text: ' fleet:' },
    { text: ` ${up} up`, tone: up === 0 ? 'bad' : 'good' },
    ...one(lost, 'lost', 'bad'),
    ...one(refusing, 'refusing', 'bad'),
    ...one(drained, 'drained', 'warn'),
  ];
  return rowBetween(left, [{ text: `${used}/${plural(slots, 'slot')} used `, tone: 'dim' }], columns);
}

function paceCells({ state, runner, pace, remainingMs }: View, { glyphs }: Terminal, room: number): Cell[] {
  if (state.status !== 'running' || runner === 'none') return [];
  const rate = state.running.size === 0 ? null : (pace?.perHourUsd ?? null);
  const burn = rate === null ? '' : `  ${formatMoney(rate)}/h`;
  const left = remainingMs === undefined ? '' : `  ~${formatDuration(remainingMs)} left`;
  const [isBurnShown, isLeftShown] = [burn.length <= room, burn.length + left.length <= room];
  const sparkRoom = room - burn.length - left.length - 2;
  const isSparkShown = rate !== null && pace !== undefined && sparkRoom >= sparkColumnsMin;
  return [
    { text: isSparkShown ? `  ${sparkline(pace, sparkRoom, glyphs)}` : '', tone: 'accent' },
    { text: isBurnShown ? burn : '' },
    { text: isLeftShown ? left : '', tone: 'dim' },
  ];
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

function bar(state: GroupState, { spentUsd, reservedUsd, capUsd, width }: Amounts, glyphs: Glyphs): Cell[] {
  const share = capUsd > 0 ? Math.min(1, spentUsd / capUsd) : 1;
  // Something spent is never shown as nothing.
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

/** The one thing to know before anything else; null = all is as it should be. */
function heldBy({ state, nowMs, runner }: View): { readonly text: string; readonly tone: Tone } | null {
  switch (state.status) {
    case 'created':
      if (runner !== 'none') return null;
      return { text: withAdvice('Not started yet.', groupAdvice(state)), tone: 'warn' };
    case 'running':
      if (runner === 'none') {
        return { text: `runner gone: ${commandText(runCommand(state))}`, tone: 'bad' };
      }
      return conditionNow(state, nowMs);
    case 'paused':
    case 'failed': {
      const tone = state.status === 'failed' ? 'bad' : 'warn';
      return {
        text: foreign(
          withLocalTimes(withAdvice(reasoned(state.reason, state.message), groupAdvice(state)), nowMs),
          sentenceColumnsMax,
        ),
        tone,
      };
    }
    default:
      return null;
  }
}

function conditionNow(state: GroupState, nowMs: number): { readonly text: string; readonly tone: Tone } | null {
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
  const limit = limitNow(state, nowMs);
  return limit === null ? null : { text: isThrottled(state) ? limit : `usage ${limit}`, tone: 'warn' };
}
