/**
 * From moments to places: time runs from left to right at one pace, but stretches in which nothing could happen are
 * squeezed to a narrow band, so that a night between two runs does not push the runs themselves together.
 * Times are ms since 1970, places pixels.
 */
import type { Span } from '../html/spans.ts';
import { formatMoment } from '../html/times.ts';

export interface TimeScale {
  /** Never outside of the picture. */
  place(atMs: number): number;
  readonly ticks: readonly Tick[];
  /** Where the squeezed stretches lie. */
  readonly bands: readonly Band[];
}

export interface Tick {
  readonly at: number;
  readonly place: number;
  readonly label: string;
  /** Which part of the label stands at the place: a label in the middle would be cut at the right edge. */
  readonly anchor: 'middle' | 'end';
}

export interface Band {
  readonly from: number;
  readonly to: number;
  readonly durationMs: number;
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
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const steps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 28].map((count) => count * day),
];

/** `idle` lies within `span`, in order and without overlap. The picture goes from `left` to `right`. */
export function timeScale(span: Span, idle: readonly Span[], left: number, right: number): TimeScale {
  const stretches = stretchesOf(span, idle, left, right);
  const place = (atMs: number): number => {
    const stretch = stretches.find(({ to }) => atMs <= to) ?? stretches.at(-1);
    if (stretch === undefined || atMs <= span.from) return left;
    const share = Math.min(1, (atMs - stretch.from) / Math.max(1, stretch.to - stretch.from));
    return stretch.left + share * (stretch.right - stretch.left);
  };
  const bands = stretches
    .filter(({ isIdle }) => isIdle)
    .map((band) => ({ from: band.left, to: band.right, durationMs: band.to - band.from }));
  return { place, ticks: ticksOf(stretches, left, right), bands };
}

function stretchesOf(span: Span, idle: readonly Span[], left: number, right: number): Stretch[] {
  const pauses = idle.filter(({ from, to }) => from >= span.from && to <= span.to && to > from);
  const idleMs = pauses.reduce((sum, { from, to }) => sum + to - from, 0);
  const band = Math.min(bandWidth, (right - left) / (3 * Math.max(1, pauses.length)));
  const busyWidth = right - left - band * pauses.length;
  const perMs = busyWidth / Math.max(1, span.to - span.from - idleMs);
  const stretches: Stretch[] = [];
  let x = left;
  const add = (from: number, to: number, isIdle: boolean): void => {
    if (to <= from) return;
    const width = isIdle ? band : (to - from) * perMs;
    stretches.push({ from, to, left: x, right: x + width, isIdle });
    x += width;
  };
  let at = span.from;
  for (const pause of pauses) {
    add(at, pause.from, false);
    add(pause.from, pause.to, true);
    at = pause.to;
  }
  add(at, span.to, false);
  return stretches;
}

function ticksOf(stretches: readonly Stretch[], left: number, right: number): Tick[] {
  const busy = stretches.filter(({ isIdle }) => !isIdle);
  const busyMs = busy.reduce((sum, { from, to }) => sum + to - from, 0);
  const wanted = Math.max(1, Math.floor((right - left) / tickGap));
  const step = stepFor(busyMs / wanted);
  const ticks: Tick[] = [];
  for (const { from, to, left: begin, right: end } of busy) {
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const place = begin + ((at - from) / (to - from)) * (end - begin);
      const last = ticks.at(-1);
      if (last !== undefined && place - last.place < tickGap * 0.95) continue;
      // The day is said where it is another one than before.
      const label = formatMoment(at, last?.at ?? stretches[0]?.from ?? at);
      const anchor = place + (label.length * letterWidth) / 2 > right ? 'end' : 'middle';
      ticks.push({ at, place, label, anchor });
    }
  }
  return ticks;
}

function stepFor(atLeastMs: number): number {
  const known = steps.find((step) => step >= atLeastMs);
  return known ?? 2 ** Math.ceil(Math.log2(atLeastMs / day)) * day;
}
