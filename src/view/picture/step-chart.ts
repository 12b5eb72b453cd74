/** A chart of sums that grow with time: areas on top of each other that rise while something is added. */

import type { Span } from '../html/spans.ts';
import { type Child, el, type Markup, round } from './markup.ts';
import { type TimeScale, timeScale } from './time-scale.ts';

/** What was added to each series (by place), evenly between two moments, ms since 1970. */
export interface Step {
  /** Not after `at`. */
  readonly from: number;
  readonly at: number;
  readonly added: readonly number[];
}

export interface ChartOptions {
  readonly span: Span;
  readonly idle: readonly Span[];
  readonly label: string;
  /** Drawn as a line across. */
  readonly cap?: number;
  /** Says a value at the axis. */
  readonly format: (value: number) => string;
}

const width = 1000;
const height = 230;
const left = 76;
const right = width - 12;
const top = 14;
const bottom = height - 26;
/** What was reached in the end is seen as a level of this width, pixels. */
const tail = 24;

/** One area for each name in `series`, at most six, the first at the bottom. */
export function stepChart(series: readonly string[], steps: readonly Step[], options: ChartOptions): Markup {
  const { span, idle, label, cap, format } = options;
  const scale = timeScale(span, idle, left, right - tail);
  const total = steps.reduce((sum, { added }) => sum + added.reduce((inner, value) => inner + value, 0), 0);
  const highest = niceTop(Math.max(total, cap !== undefined && cap <= total * 3 ? cap : 0));
  const y = (value: number): number => bottom - (Math.min(value, highest) / highest) * (bottom - top);
  const points = pointsOf(series.length, steps, scale);
  const areas = series.map((_, index) => area(points, index, y)).reverse();
  const capLine =
    cap === undefined || cap > highest
      ? null
      : el(
          'line',
          { class: 'cap', x1: left, x2: right, y1: round(y(cap)), y2: round(y(cap)) },
          el('title', {}, `cap ${format(cap)}`),
        );
  const size = { class: 'stretch', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label };
  return el('svg', size, grid(highest, y, format), areas, capLine, timeAxis(scale));
}

interface ChartPoint {
  readonly x: number;
  /** Sums up to and with each series. */
  readonly heights: readonly number[];
}

/** The sums wherever their growth changes: of several at one place of the picture the last, and where it jumps. */
function pointsOf(count: number, steps: readonly Step[], scale: TimeScale): ChartPoint[] {
  const moments = [...new Set(steps.flatMap(({ from, at }) => [from, at]))].sort((a, b) => a - b);
  const begins = [...steps].sort((a, b) => a.from - b.from);
  const sums = new Array<number>(count).fill(0);
  const points: ChartPoint[] = [];
  let growing: Step[] = [];
  let next = 0;
  const add = (moment: number, isJump = false): void => {
    const x = Math.round(scale.place(moment));
    if (points.at(-1)?.x === x && (!isJump || points.at(-2)?.x === x)) points.pop();
    let sum = 0;
    const heights = sums.map((done, index) => {
      const parts = growing.map((step) => shareOf(step, moment) * addedTo(step, index));
      sum += done + parts.reduce((total, part) => total + part, 0);
      return sum;
    });
    points.push({ x, heights });
  };
  for (const moment of moments) {
    add(moment);
    for (let step = begins[next]; step !== undefined && step.from <= moment; step = begins[next]) {
      growing.push(step);
      next += 1;
    }
    const ended = growing.filter(({ at }) => at <= moment);
    for (const step of ended)
      for (let index = 0; index < count; index += 1) sums[index] = (sums[index] ?? 0) + addedTo(step, index);
    if (ended.length > 0) growing = growing.filter(({ at }) => at > moment);
    // What took no time is added at once.
    if (ended.some(({ from, at }) => from === at)) add(moment, true);
  }
  return points;
}

function addedTo({ added }: Step, index: number): number {
  return Math.max(0, added[index] ?? 0);
}

/** How much of it had been added by then, 0 to 1. */
function shareOf({ from, at }: Step, moment: number): number {
  return at > from ? Math.min(1, Math.max(0, (moment - from) / (at - from))) : 0;
}

function area(points: readonly ChartPoint[], index: number, y: (value: number) => number): Markup {
  const level = ({ heights }: ChartPoint, at: number): number => round(y(at < 0 ? 0 : (heights[at] ?? 0)));
  let upper = `M${points[0]?.x ?? left} ${bottom}`;
  for (const point of points) upper += `L${point.x} ${level(point, index)}`;
  return el('path', { class: `f-${index + 1}`, d: `${upper}H${right}V${bottom}z` });
}

function grid(highest: number, y: (value: number) => number, format: (value: number) => string): Child[] {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const at = round(y(highest * share));
    return [
      el('line', { class: share === 0 ? 'axis' : 'grid', x1: left, x2: right, y1: at, y2: at }),
      el('text', { class: 'dim end', x: left - 8, y: at + 4 }, format(highest * share)),
    ];
  });
}

function timeAxis(scale: TimeScale): Child[] {
  return scale.ticks.map(({ label, place, anchor }) =>
    el('text', { class: `dim ${anchor}`, x: round(place), y: height - 8 }, label),
  );
}

/** The next of 1, 2, 4, 6, 8 and 10 times a power of ten, so that quarters of it are short numbers. */
function niceTop(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10;
  return factor * power;
}
