/** Draws the graph of a group, laid out by dagre, and its timeline as SVG. Times are ms since 1970. */
import { Graph, layout } from '@dagrejs/dagre';

import { allBlockers, planOf } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { formatDuration, plural } from '../format.ts';
import { type GraphNode, graphNodes } from '../markdown.ts';
import { safeLine } from '../terminal-text.ts';
import { type Child, el, type Markup, pictureStyle, round, styleElement } from './markup.ts';
import { anchorOf, notableSessions, type ReportAttempt, type ReportModel, type ReportSession } from './model.ts';

interface GraphPicture {
  readonly picture: Markup;
  readonly statuses: readonly string[];
}

export interface PictureOptions {
  readonly href?: (id: string) => string;
  readonly isFile?: true;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface LayoutNode {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly wave: number;
  readonly width: number;
  readonly height: number;
}

interface PlacedNode extends Point {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly { readonly from: string; readonly to: string; readonly points: readonly Point[] }[];
}

const nodeHeight = 38;
const titleColumns = 24;
const nodesMax = 600;
/** Limit of nodes plus the points at which edges cross layers. */
const crossingsMax = 2000;
const margin = 12;
const gap = 14;

/** Null if the layout of the graph would take longer than a second. */
export function graphPicture(state: GroupState, { href, isFile }: PictureOptions = {}): GraphPicture | null {
  const blocked = allBlockers(state, planOf(state));
  const statusOf = ({ id, status }: GraphNode): string =>
    state.group.config.respectDependencies && blocked.has(id) && status === 'pending' ? 'blocked' : status;
  const boxes = graphNodes(state).map((node) => {
    const title = safeLine(node.title, titleColumns);
    const project = safeLine(node.project, titleColumns);
    const columns = Math.max(Bun.stringWidth(title), Bun.stringWidth(project) * 0.9);
    const size = { width: Math.max(90, Math.ceil(columns * 8.1) + 22), height: nodeHeight };
    return { ...node, ...size, title, project, status: statusOf(node) };
  });
  const placed = layoutGraph(boxes);
  if (placed === null) return null;
  const places = new Map(placed.nodes.map((node) => [node.id, node]));
  const drawn = boxes.map((box) => {
    const markup = boxOf(box, places.get(box.id) ?? { x: 0, y: 0 });
    return href === undefined ? markup : el('a', { href: href(box.id) }, markup);
  });
  const parts = [...placed.edges.flatMap(({ points }) => edgeParts(points)), ...drawn];
  const label = `Dependency graph of ${plural(boxes.length, 'session')}`;
  const statuses = [...new Set(boxes.map(({ status }) => status))].sort();
  return { picture: frame(placed, label, parts, isFile === true), statuses };
}

function frame({ width, height }: GraphLayout, label: string, parts: Child, isFile: boolean): Markup {
  const size = {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: isFile ? 'img' : 'group',
    'aria-label': label,
  };
  if (!isFile) return el('svg', size, parts);
  const own = el('rect', { width: '100%', height: '100%', fill: 'var(--bg)' });
  const head = [el('title', {}, label), styleElement(pictureStyle), own];
  return el('svg', { xmlns: 'http://www.w3.org/2000/svg', ...size }, head, parts);
}

interface Box extends LayoutNode {
  readonly title: string;
  readonly project: string;
  readonly status: string;
}

function boxOf({ title, project, status, width, height }: Box, { x, y }: Point): Markup {
  return el(
    'g',
    {},
    el('title', {}, `${title}: ${status}`),
    el('rect', { class: `node s-${status}`, x: round(x), y: round(y), width, height, rx: 6 }),
    el('text', { class: 'strong', x: round(x + 11), y: round(y + 16) }, title),
    el('text', { class: 'dim', x: round(x + 11), y: round(y + 30) }, project),
  );
}

/** A curve through dagre's points, with a triangle as arrow head. */
function edgeParts([first, ...rest]: readonly Point[]): Markup[] {
  const last = rest.at(-1);
  if (first === undefined || last === undefined) return [];
  let path = `M${round(first.x)} ${round(first.y)}`;
  for (const [index, point] of rest.slice(0, -1).entries()) {
    const next = rest[index + 1] ?? last;
    const isEnd = index === rest.length - 2;
    const [x, y] = isEnd ? [next.x, next.y] : [(point.x + next.x) / 2, (point.y + next.y) / 2];
    path += `Q${round(point.x)} ${round(point.y)} ${round(x)} ${round(y)}`;
  }
  if (rest.length === 1) path += `L${round(last.x)} ${round(last.y)}`;
  const before = rest.at(-2) ?? first;
  const angle = Math.atan2(last.y - before.y, last.x - before.x);
  const corner = (turn: number): string =>
    `${round(last.x - 7 * Math.cos(angle + turn))},${round(last.y - 7 * Math.sin(angle + turn))}`;
  const points = `${round(last.x)},${round(last.y)} ${corner(0.45)} ${corner(-0.45)}`;
  return [el('path', { class: 'edge', d: path }), el('polygon', { class: 'head', points })];
}

/** Layers from left to right; null if the layout would take long. `nodes` are in dependency order. */
export function layoutGraph(nodes: readonly LayoutNode[]): GraphLayout | null {
  const waves = new Map(nodes.map(({ id, wave }) => [id, wave]));
  const edges = nodes.flatMap(({ id, dependsOn }) =>
    dependsOn.filter((other) => waves.has(other)).map((other) => [other, id] as const),
  );
  const lengthOf = ([from, to]: readonly [string, string]): number => (waves.get(to) ?? 0) - (waves.get(from) ?? 0);
  const crossings = edges.reduce((sum, edge) => sum + lengthOf(edge), nodes.length);
  if (nodes.length > nodesMax || crossings > crossingsMax) return null;
  const linkedIds = new Set(edges.flat());
  const linked = nodes.filter(({ id }) => linkedIds.has(id));
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: gap, ranksep: 52, ranker: 'tight-tree', marginx: margin, marginy: margin });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of linked) graph.setNode(id, { width, height });
  for (const [from, to] of edges) graph.setEdge(from, to);
  if (linked.length > 0) layout(graph);
  const placed = linked.map(({ id, width, height }): PlacedNode => {
    const { x = 0, y = 0 } = graph.node(id) as Partial<Point>;
    return { id, x: x - width / 2, y: y - height / 2, width, height };
  });
  const lines = graph.edges().map(({ v, w }) => {
    const { points = [] } = graph.edge(v, w) as { readonly points?: readonly Point[] };
    return { from: v, to: w, points };
  });
  const drawn = insideMargins(placed, lines);
  const size = extent(drawn.nodes, drawn.edges);
  const alone = nodes.filter(({ id }) => !linkedIds.has(id));
  const rest = gridOf(alone, linked.length === 0 ? margin : size.height, Math.max(size.width, 720));
  const all = [...drawn.nodes, ...rest];
  return { ...extent(all, drawn.edges), nodes: all, edges: drawn.edges };
}

/** Shifts edges that dagre draws outside the margin, above all nodes. */
function insideMargins(nodes: readonly PlacedNode[], edges: GraphLayout['edges']) {
  const all: readonly Point[] = [...nodes, ...edges.flatMap(({ points }) => points)];
  const left = margin - Math.min(margin, ...all.map(({ x }) => x));
  const top = margin - Math.min(margin, ...all.map(({ y }) => y));
  const moved = <T extends Point>(point: T): T => ({ ...point, x: point.x + left, y: point.y + top });
  return { nodes: nodes.map(moved), edges: edges.map((edge) => ({ ...edge, points: edge.points.map(moved) })) };
}

function gridOf(nodes: readonly LayoutNode[], top: number, widthMax: number): PlacedNode[] {
  let x = margin;
  let y = top;
  return nodes.map(({ id, width, height }) => {
    if (x > margin && x + width > widthMax) {
      x = margin;
      y += height + gap;
    }
    const node = { id, x, y, width, height };
    x += width + gap;
    return node;
  });
}

function extent(nodes: readonly PlacedNode[], edges: GraphLayout['edges']): { width: number; height: number } {
  const points = edges.flatMap((edge) => edge.points);
  const right = [...nodes.map(({ x, width }) => x + width), ...points.map(({ x }) => x)];
  const bottom = [...nodes.map(({ y, height }) => y + height), ...points.map(({ y }) => y)];
  return { width: Math.ceil(Math.max(0, ...right) + margin), height: Math.ceil(Math.max(0, ...bottom) + margin) };
}

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

/** Three bars per attempt: preparing, working (in the colour of the outcome) and accepting. */
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
  /** The anchor of the label; `end` at the right edge, where a centred label would be cut. */
  readonly anchor: 'middle' | 'end';
}

const bandWidth = 22;
const tickGap = 74;
/** The widest character of an axis label, pixels. */
const letterWidth = 8;
const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const steps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * second),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 7, 14, 28].map((count) => count * day),
];

/** Maps `span` to `begin`..`end`. Long gaps between `busy` stretches are compressed. */
export function timeScale(span: Span, busy: readonly Span[], begin: number, end: number): TimeScale {
  const gaps = longGaps(span, busy);
  const idleMs = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const busyMs = Math.max(1, span.to - span.from - idleMs);
  const perMs = (end - begin - bandWidth * gaps.length) / busyMs;
  const place = (atMs: number): number => {
    let x = begin + Math.max(0, Math.min(atMs, span.to) - span.from) * perMs;
    for (const { from, to } of gaps) {
      const idle = Math.max(0, Math.min(atMs, to) - from);
      x += (idle / (to - from)) * bandWidth - idle * perMs;
    }
    return x;
  };
  const bands = gaps.map(({ from, to }) => ({ from: place(from), to: place(to), durationMs: to - from }));
  const step = stepFor(busyMs / Math.max(1, Math.floor((end - begin) / tickGap)));
  return { place, ticks: ticksOf(span, gaps, step, place, end), bands };
}

/** Gaps of at least a minute and a tenth of the whole, so there are at most nine. */
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

function ticksOf(
  span: Span,
  gaps: readonly Span[],
  step: number,
  place: (atMs: number) => number,
  end: number,
): Tick[] {
  const ticks: Tick[] = [];
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) {
    const gap = gaps.find(({ from, to }) => from < at && at < to);
    if (gap !== undefined) at = Math.ceil(gap.to / step) * step;
    const before = ticks.at(-1);
    const x = place(at);
    if (at > span.to || (before !== undefined && x - before.place < tickGap * 0.95)) continue;
    const label = tickLabel(at, before?.at ?? span.from);
    ticks.push({ at, place: x, label, anchor: x + (label.length * letterWidth) / 2 > end ? 'end' : 'middle' });
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
