/** The dependency graph of a group as SVG: a box for every session, coloured by its status, laid out by dagre. */
import { Graph, layout } from '@dagrejs/dagre';
import { allBlockers, planOf } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { plural } from '../format.ts';
import { type GraphNode, graphNodes } from '../markdown.ts';
import { safeLine } from '../terminal-text.ts';
import { type Child, el, type Markup, round, styleElement } from './markup.ts';
import { pictureStyle } from './style.ts';

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
/** Nodes and the points at which edges cross layers. */
const crossingsMax = 2000;
const margin = 12;
const gap = 14;

/** Null for a graph that is too large, or too entangled, to be drawn within a second. */
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

/** A line that bends at dagre's points, with its arrow head drawn as a triangle. */
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

/**
 * Places nodes in layers, dependencies to the left; null where that would take long. `nodes` are in an order in which
 * each comes after those it depends on. Dependencies outside of `nodes` do not count.
 */
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
  const size = extent(placed, lines);
  const alone = nodes.filter(({ id }) => !linkedIds.has(id));
  const rest = gridOf(alone, linked.length === 0 ? margin : size.height, Math.max(size.width, 720));
  const all = [...placed, ...rest];
  return { ...extent(all, lines), nodes: all, edges: lines };
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
