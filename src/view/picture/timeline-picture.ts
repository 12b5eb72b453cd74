/** The timeline of a group: a row for every session, with its attempts as bars and its waits as lines by reason. */
import { formatDuration, plural } from '../format.ts';
import type { ReportAttempt, ReportModel, ReportSession, ReportTimeline } from '../html/model.ts';
import { formatUtc, timeMs } from '../html/times.ts';
import { waitReasons } from '../html/waits.ts';
import { safeLine } from '../terminal-text.ts';
import { type Child, el, type Markup, round } from './markup.ts';
import { type TimeScale, timeScale } from './time-scale.ts';

export interface TimelinePicture {
  readonly picture: Markup;
  /** What the picture leaves out; empty when it shows everything. */
  readonly caption: string;
  /** What occurs in it, for the legend. */
  readonly kinds: readonly string[];
}

const width = 1000;
const labelWidth = 190;
const right = width - 12;
const axisHeight = 26;
const rowHeight = 22;
const rowsMax = 300;
/** Bars and lines of all rows together: they are most of the bytes. */
const piecesMax = 2000;

/** Null for a group that was never started. `href`: where the name of a session leads to. */
export function timelinePicture(model: ReportModel, href: (id: string) => string): TimelinePicture | null {
  const { timeline } = model;
  if (timeline === undefined) return null;
  const rows = rowsOf(model);
  const hidden = model.sessions.length - rows.length;
  const span = { from: timeMs(timeline.from), to: Math.max(timeMs(timeline.to), timeMs(timeline.from) + 1) };
  const idle = timeline.idle.map(({ from, to }) => ({ from: timeMs(from), to: timeMs(to) }));
  const scale = timeScale(span, idle, labelWidth, right);
  const height = axisHeight + Math.max(1, rows.length) * rowHeight + 8;
  const drawing = new Drawing(scale, Math.max(6, Math.floor(piecesMax / Math.max(1, rows.length))));
  const parts = [
    axis(scale, height),
    rows.map((session, index) => rowOf(session, index, drawing, { href, model })),
    frozenParts(timeline, scale, height),
    markParts(model, scale, height),
  ];
  const label = `Timeline of ${plural(rows.length, 'session')}`;
  const size = {
    class: 'stretch',
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: 'group',
    'aria-label': label,
  };
  const most = `${rows.length} of ${model.sessions.length} sessions: those that did not complete, then the dearest.`;
  return {
    picture: el('svg', size, parts),
    caption: hidden > 0 ? most : '',
    kinds: [...drawing.kinds].sort((a, b) => placeOf(a) - placeOf(b)),
  };
}

const order: readonly string[] = ['preparing', 'completed', 'running', 'failed', 'paused', 'accepting'];

function placeOf(kind: string): number {
  const place = order.indexOf(kind);
  return place >= 0 ? place : order.length + waitReasons.findIndex((reason) => `wait-${reason}` === kind);
}

/** In the order of their numbers, as everywhere else on the page. */
function rowsOf({ sessions }: ReportModel): readonly ReportSession[] {
  if (sessions.length <= rowsMax) return sessions;
  const weight = ({ status }: ReportSession): number => (status === 'completed' ? 1 : 0);
  const chosen = [...sessions].sort((a, b) => weight(a) - weight(b) || b.costUsd - a.costUsd).slice(0, rowsMax);
  const ids = new Set(chosen.map(({ id }) => id));
  return sessions.filter(({ id }) => ids.has(id));
}

/** Draws stretches, and leaves out what nobody could see when there is very much of it. */
class Drawing {
  readonly scale: TimeScale;
  readonly kinds = new Set<string>();
  private readonly perRow: number;

  constructor(scale: TimeScale, perRow: number) {
    this.scale = scale;
    this.perRow = perRow;
  }

  /** `pieces` in order of time. */
  row(pieces: readonly DrawnPiece[], y: number): Markup[] {
    const step = pieces.length > this.perRow ? (right - labelWidth) / this.perRow : 0;
    let drawnTo = -1;
    return pieces.flatMap(({ from, to, kind, className, height, title }) => {
      const x = this.scale.place(from);
      const end = Math.max(this.scale.place(to), x + 1);
      if (end - drawnTo < step) return [];
      drawnTo = end;
      this.kinds.add(kind);
      const top = y + (rowHeight - height) / 2;
      const size = { x: round(x), y: top, width: round(end - x), height };
      return [el('rect', { class: className, ...size }, el('title', {}, title))];
    });
  }
}

interface DrawnPiece {
  readonly from: number;
  readonly to: number;
  /** For the legend. */
  readonly kind: string;
  readonly className: string;
  readonly height: number;
  readonly title: string;
}

interface RowOptions {
  readonly href: (id: string) => string;
  readonly model: ReportModel;
}

function rowOf(session: ReportSession, index: number, drawing: Drawing, { href, model }: RowOptions): Markup {
  const y = axisHeight + index * rowHeight;
  const end = timeMs(model.asOf);
  const waits = session.waits.map(({ from, to, reason }): DrawnPiece => {
    const [start, stop] = [timeMs(from), timeMs(to)];
    const title = `${waitWords[reason]}: ${formatDuration(stop - start)}`;
    return { from: start, to: stop, kind: `wait-${reason}`, className: `wait w-${reason}`, height: 5, title };
  });
  const bars = session.attempts.flatMap((attempt) => attemptPieces(attempt, end));
  const pieces = [...waits, ...bars].sort((a, b) => a.from - b.from);
  const line = { class: 'grid', x1: 0, x2: right, y1: y + rowHeight, y2: y + rowHeight };
  const name = el('text', { x: 4, y: y + 15 }, safeLine(session.title, 27));
  return el('g', {}, el('line', line), el('a', { href: href(session.id) }, name), ...drawing.row(pieces, y));
}

/** What a wait is called. */
export const waitWords = {
  slot: 'waited for a free slot',
  cache: 'waited for the prompt cache',
  dependency: 'waited for its dependencies',
  blocked: 'blocked by a failed session',
  limit: 'held by a limit',
  budget: 'out of money',
  backoff: 'waited before another try',
  paused: 'paused',
  errors: 'held back because too much failed',
} as const;

/** Getting ready, working in the colour of how it ended, and being judged. */
function attemptPieces(attempt: ReportAttempt, endMs: number): DrawnPiece[] {
  const start = timeMs(attempt.startedAt);
  const end = attempt.endedAt === undefined ? endMs : timeMs(attempt.endedAt);
  const accepting = attempt.acceptingAt === undefined ? end : Math.min(end, timeMs(attempt.acceptingAt));
  const working = attempt.workingAt === undefined ? accepting : Math.min(accepting, timeMs(attempt.workingAt));
  const { outcome, reason } = attempt;
  const ended = reason === undefined ? outcome : `${outcome}, ${reason}`;
  const name = `attempt ${attempt.number} (${ended}), ${formatDuration(end - start)}`;
  const piece = (from: number, to: number, kind: string, className: string, what: string): DrawnPiece[] =>
    to > from ? [{ from, to, kind, className: `bar ${className}`, height: 14, title: `${name}: ${what}` }] : [];
  const pieces = [
    ...piece(start, working, 'preparing', `s-${outcome} preparing`, 'getting ready'),
    ...piece(working, accepting, outcome, `s-${outcome}`, 'at work'),
    ...piece(accepting, end, 'accepting', 'accepting', 'its work was judged'),
  ];
  if (pieces.length > 0) return pieces;
  return [{ from: start, to: start, kind: outcome, className: `bar s-${outcome}`, height: 14, title: name }];
}

function axis(scale: TimeScale, height: number): Child[] {
  const ticks = scale.ticks.map(({ label, place, anchor }) => [
    el('line', { class: 'grid', x1: round(place), x2: round(place), y1: axisHeight - 4, y2: height - 8 }),
    el('text', { class: `dim ${anchor}`, x: round(place), y: 15 }, label),
  ]);
  const bands = scale.bands.map((band) => {
    const size = {
      x: round(band.from),
      y: axisHeight,
      width: round(band.to - band.from),
      height: height - axisHeight - 8,
    };
    return el(
      'rect',
      { class: 'idle', ...size },
      el('title', {}, `nothing ran for ${formatDuration(band.durationMs)}`),
    );
  });
  return [bands, ticks];
}

function frozenParts({ frozen }: ReportTimeline, scale: TimeScale, height: number): Child[] {
  return frozen.slice(0, notesShownMax).map(({ from, to }) => {
    const x = scale.place(timeMs(from));
    const size = { x: round(x), y: axisHeight, width: round(Math.max(1, scale.place(timeMs(to)) - x)) };
    const title = `halted for ${formatDuration(timeMs(to) - timeMs(from))}`;
    return el('rect', { class: 'frozen', ...size, height: height - axisHeight - 8 }, el('title', {}, title));
  });
}

const notesShownMax = 60;
const marked: ReadonlySet<string> = new Set([
  ...['group_paused', 'group_resumed', 'group_failed', 'limit_reached', 'limit_lifted'],
  ...['budget_warning', 'budget_exceeded'],
]);

function markParts({ notes }: ReportModel, scale: TimeScale, height: number): Child[] {
  return notes
    .filter(({ type }) => marked.has(type))
    .slice(0, notesShownMax)
    .map(({ at, type, text }) => {
      const x = round(scale.place(timeMs(at)));
      const title = el('title', {}, `${formatUtc(at)}: ${text.slice(0, 300)}`);
      return el('line', { class: `mark ${type}`, x1: x, x2: x, y1: axisHeight - 4, y2: height - 8 }, title);
    });
}
