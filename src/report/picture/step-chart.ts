/** A chart of sums that grow with time: areas on top of each other that rise in steps, when an attempt was counted. */

import type { Span } from '../html/spans.ts';
import { type Child, el, type Markup, round } from './markup.ts';
import { type TimeScale, timeScale } from './time-scale.ts';

/** What was added to each series (by place) at a moment, ms since 1970. */
export interface Step {
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

/** One area for each name in `series`, at most six, the first at the bottom. `steps` in order of time. */
export function stepChart(series: readonly string[], steps: readonly Step[], options: ChartOptions): Markup {
  const { span, idle, label, cap, format } = options;
  const scale = timeScale(span, idle, left, right);
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

/** The sums after every step; steps at one place of the picture are one. */
function pointsOf(count: number, steps: readonly Step[], scale: TimeScale): ChartPoint[] {
  const sums = new Array<number>(count).fill(0);
  const points: ChartPoint[] = [];
  const heights = (): number[] => {
    let sum = 0;
    return sums.map((value) => {
      sum += value;
      return sum;
    });
  };
  for (const { at, added } of steps) {
    for (let index = 0; index < count; index += 1) sums[index] = (sums[index] ?? 0) + Math.max(0, added[index] ?? 0);
    const x = Math.round(scale.place(at));
    if (points.at(-1)?.x === x) points.pop();
    points.push({ x, heights: heights() });
  }
  return points;
}

function area(points: readonly ChartPoint[], index: number, y: (value: number) => number): Markup {
  const level = ({ heights }: ChartPoint, at: number): number => round(y(at < 0 ? 0 : (heights[at] ?? 0)));
  let upper = `M${left} ${bottom}`;
  for (const point of points) upper += `H${point.x}V${level(point, index)}`;
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
  return scale.ticks.map(({ label, place }) =>
    el('text', { class: 'dim middle', x: round(place), y: height - 8 }, label),
  );
}

/** The next of 1, 2, 4, 6, 8 and 10 times a power of ten, so that quarters of it are short numbers. */
function niceTop(value: number): number {
  if (!(value > 0) || !Number.isFinite(value)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 6, 8, 10].find((one) => one * power >= value) ?? 10;
  return factor * power;
}
