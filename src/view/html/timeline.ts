/**
 * The timeline of a group: a row for every session with its attempts as bars. Stretches in which nothing ran are
 * squeezed to a narrow band, so that a night between two runs does not push the runs themselves together.
 * Times are ms since 1970, places are pixels.
 */
import { formatDuration, plural } from '../format.ts';
import { safeLine } from '../terminal-text.ts';
import { type Child, el, type Markup, round } from './markup.ts';
import { anchorOf, notableSessions, type ReportAttempt, type ReportModel, type ReportSession } from './model.ts';

interface TimelinePicture {
  readonly picture: Markup;
  readonly caption: string;
  readonly kinds: readonly BarKind[];
}

const barKinds = ['preparing', 'completed', 'running', 'failed', 'paused', 'accepting'] as const;
export type BarKind = (typeof barKinds)[number];

interface Bar {
  readonly from: number;
  readonly to: number;
  readonly kind: BarKind;
  readonly className: string;
  readonly title: string;
}

const width = 1000;
const left = 190;
const right = width - 12;
const axisHeight = 26;
const rowHeight = 22;
const rowsMax = 300;
const attemptsMax = 50;

export function timelinePicture(model: ReportModel): TimelinePicture | null {
  const { timeline, sessions } = model;
  if (timeline === undefined) return null;
  const [from, to] = [Date.parse(timeline.from), Date.parse(timeline.to)];
  const rows = notableSessions(sessions, rowsMax).map((session) => ({ session, bars: barsOf(session, to) }));
  const scale = timeScale({ from, to: Math.max(to, from + 1) }, attemptSpans(sessions, to), left, right);
  const height = axisHeight + Math.max(1, rows.length) * rowHeight + 8;
  const kinds = new Set(rows.flatMap(({ bars }) => bars.map(({ kind }) => kind)));
  const size = { class: 'stretch', width, height, viewBox: `0 0 ${width} ${height}`, role: 'group' };
  const parts = [axis(scale, height), rows.map(({ session, bars }, index) => row(session, bars, index, scale))];
  const some = `${rows.length} of ${sessions.length} sessions: those that did not complete, then the most expensive.`;
  return {
    picture: el('svg', { ...size, 'aria-label': `Timeline of ${plural(rows.length, 'session')}` }, parts),
    caption: rows.length < sessions.length ? some : '',
    kinds: barKinds.filter((kind) => kinds.has(kind)),
  };
}

function attemptSpans(sessions: readonly ReportSession[], end: number): Span[] {
  return sessions.flatMap(({ attempts }) =>
    attempts.map(({ startedAt, endedAt }) => ({
      from: Date.parse(startedAt),
      to: endedAt === undefined ? end : Date.parse(endedAt),
    })),
  );
}

function row({ id, title }: ReportSession, bars: readonly Bar[], index: number, scale: TimeScale): Markup {
  const y = axisHeight + index * rowHeight;
  const line = { class: 'grid', x1: 0, x2: right, y1: y + rowHeight, y2: y + rowHeight };
  const name = el('text', { x: 4, y: y + 15 }, safeLine(title, 27));
  const drawn = bars.map((bar) => {
    const x = scale.place(bar.from);
    const size = { x: round(x), y: y + 4, width: round(Math.max(1, scale.place(bar.to) - x)), height: 14 };
    return el('rect', { class: bar.className, ...size }, el('title', {}, bar.title));
  });
  return el('g', {}, el('line', line), el('a', { href: `#${anchorOf(id)}` }, name), drawn);
}

/** Of each attempt: preparing, working in the colour of its outcome, and being accepted. */
function barsOf({ attempts }: ReportSession, endMs: number): Bar[] {
  return attempts.slice(-attemptsMax).flatMap((attempt: ReportAttempt) => {
    const { number, outcome, reason, startedAt, workingAt, acceptingAt, endedAt } = attempt;
    const start = Date.parse(startedAt);
    const end = endedAt === undefined ? endMs : Date.parse(endedAt);
    const accepting = acceptingAt === undefined ? end : Math.min(end, Date.parse(acceptingAt));
    const working = workingAt === undefined ? accepting : Math.min(accepting, Date.parse(workingAt));
    const ended = reason === undefined ? outcome : `${outcome}, ${reason}`;
    const name = `attempt ${number} (${ended}), ${formatDuration(end - start)}`;
    const bar = (from: number, to: number, kind: BarKind, className: string, what: string): Bar[] =>
      to > from ? [{ from, to, kind, className: `bar ${className}`, title: `${name}: ${what}` }] : [];
    const bars = [
      ...bar(start, working, 'preparing', `s-${outcome} preparing`, 'preparing'),
      ...bar(working, accepting, outcome, `s-${outcome}`, 'working'),
      ...bar(accepting, end, 'accepting', 'accepting', 'accepting'),
    ];
    return bars.length > 0 ? bars : bar(start, start + 1, outcome, `s-${outcome}`, 'no time');
  });
}

function axis(scale: TimeScale, height: number): Child[] {
  const ticks = scale.ticks.map(({ label, place, anchor }) => [
    el('line', { class: 'grid', x1: round(place), x2: round(place), y1: axisHeight - 4, y2: height - 8 }),
    el('text', { class: `dim ${anchor}`, x: round(place), y: 15 }, label),
  ]);
  const bands = scale.bands.map(({ from, to, durationMs }) => {
    const size = { x: round(from), y: axisHeight, width: round(to - from), height: height - axisHeight - 8 };
    return el('rect', { class: 'idle', ...size }, el('title', {}, `nothing ran for ${formatDuration(durationMs)}`));
  });
  return [bands, ticks];
}

interface Span {
  readonly from: number;
  readonly to: number;
}

interface TimeScale {
  place(atMs: number): number;
  readonly ticks: readonly Tick[];
  readonly bands: readonly (Span & { readonly durationMs: number })[];
}

interface Tick {
  readonly at: number;
  readonly place: number;
  readonly label: string;
  /** Which part of the label stands at the place: a label in the middle would be cut at the right edge. */
  readonly anchor: 'middle' | 'end';
}

interface Stretch extends Span {
  readonly left: number;
  readonly right: number;
  readonly isIdle: boolean;
}

const bandWidth = 22;
const tickGap = 74;
/** No letter of an axis is wider, pixels. */
const letterWidth = 8;
const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const steps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 28].map((count) => count * day),
];

/** The picture of `span` goes from `begin` to `end`. Gaps between `busy` stretches are squeezed when they are long. */
export function timeScale(span: Span, busy: readonly Span[], begin: number, end: number): TimeScale {
  const stretches = stretchesOf(span, longGaps(span, busy), begin, end);
  const place = (atMs: number): number => {
    const stretch = stretches.find(({ to }) => atMs <= to) ?? stretches.at(-1);
    if (stretch === undefined || atMs <= span.from) return begin;
    const share = Math.min(1, (atMs - stretch.from) / Math.max(1, stretch.to - stretch.from));
    return stretch.left + share * (stretch.right - stretch.left);
  };
  const bands = stretches
    .filter(({ isIdle }) => isIdle)
    .map((band) => ({ from: band.left, to: band.right, durationMs: band.to - band.from }));
  return { place, ticks: ticksOf(stretches, begin, end), bands };
}

/** Where nothing ran for a minute or longer, and for at least a tenth of the whole: at most nine. */
function longGaps(span: Span, busy: readonly Span[]): Span[] {
  const gapMin = Math.max(minute, (span.to - span.from) / 10);
  const gaps: Span[] = [];
  let at = span.from;
  for (const { from, to } of [...busy, { from: span.to, to: span.to }].sort((a, b) => a.from - b.from)) {
    if (from - at > gapMin && from <= span.to) gaps.push({ from: at, to: from });
    at = Math.max(at, to);
  }
  return gaps;
}

function stretchesOf(span: Span, gaps: readonly Span[], begin: number, end: number): Stretch[] {
  const idleMs = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const perMs = (end - begin - bandWidth * gaps.length) / Math.max(1, span.to - span.from - idleMs);
  const stretches: Stretch[] = [];
  let x = begin;
  let at = span.from;
  const add = (to: number, isIdle: boolean): void => {
    const pixels = isIdle ? bandWidth : (to - at) * perMs;
    if (to > at) stretches.push({ from: at, to, left: x, right: x + pixels, isIdle });
    if (to > at) x += pixels;
    at = to;
  };
  for (const gap of gaps) {
    add(gap.from, false);
    add(gap.to, true);
  }
  add(span.to, false);
  return stretches;
}

function ticksOf(stretches: readonly Stretch[], begin: number, end: number): Tick[] {
  const busy = stretches.filter(({ isIdle }) => !isIdle);
  const busyMs = busy.reduce((sum, { from, to }) => sum + to - from, 0);
  const step = stepFor(busyMs / Math.max(1, Math.floor((end - begin) / tickGap)));
  const ticks: Tick[] = [];
  for (const { from, to, left: first, right: last } of busy) {
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const place = first + ((at - from) / (to - from)) * (last - first);
      const before = ticks.at(-1);
      if (before !== undefined && place - before.place < tickGap * 0.95) continue;
      const label = tickLabel(at, before?.at ?? stretches[0]?.from ?? at);
      const anchor = place + (label.length * letterWidth) / 2 > end ? 'end' : 'middle';
      ticks.push({ at, place, label, anchor });
    }
  }
  return ticks;
}

function stepFor(atLeastMs: number): number {
  const known = steps.find((step) => step >= atLeastMs);
  return known ?? 2 ** Math.ceil(Math.log2(atLeastMs / day)) * day;
}

function tickLabel(at: number, since: number): string {
  const text = new Date(at).toISOString();
  const clock = at % minute === 0 ? text.slice(11, 16) : text.slice(11, 19);
  return text.slice(0, 10) === new Date(since).toISOString().slice(0, 10) ? clock : `${text.slice(5, 10)} ${clock}`;
}
