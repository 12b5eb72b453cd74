/**
 * view/picture/: pictures as SVG. This file: the dependency graph of a group, a box for every session, coloured by
 * its status.
 */
import { allBlockers, planOf } from '../../core/plan/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { plural } from '../format.ts';
import { graphNodes } from '../graph.ts';
import { safeLine } from '../terminal-text.ts';
import { type GraphLayout, layoutGraph, type PlacedEdge, type PlacedNode } from './graph-layout.ts';
import { type Child, el, type Markup, round, styleElement } from './markup.ts';
import { pictureStyle, themeStyle } from './style.ts';

export interface GraphPicture {
  readonly picture: Markup;
  /** What the picture leaves out; empty when it shows everything. */
  readonly caption: string;
  /** The statuses that occur in it, `blocked` among them. */
  readonly statuses: readonly string[];
}

export interface PictureOptions {
  /** Where a session's box leads to; absent = nowhere. */
  readonly href?: (id: string) => string;
  /** It is a file of its own: it says what it is and brings its style. */
  readonly isFile?: true;
}

interface Shown {
  readonly title: string;
  readonly project: string;
  /** With `blocked` for pending sessions that cannot start. */
  readonly status: string;
}

const nodeHeight = 38;
const titleColumns = 24;

/** Titles of cells make a large picture much larger; beyond this they have none. */
const titledCellsMax = 2000;

/** The picture of a group. Takes about a second at the most, whatever the graph. */
export function graphPicture(state: GroupState, options: PictureOptions = {}): GraphPicture {
  const blocked = allBlockers(state, planOf(state));
  const isBlocked = (id: string): boolean =>
    state.group.config.respectDependencies && blocked.has(id) && state.sessions.get(id)?.state.status === 'pending';
  const nodes = graphNodes(state);
  const shown = new Map<string, Shown>();
  const sized = nodes.map((node) => {
    const title = safeLine(node.title, titleColumns);
    const project = safeLine(node.project, titleColumns);
    const columns = Math.max(Bun.stringWidth(title), Bun.stringWidth(project) * 0.9);
    const status = isBlocked(node.id) ? 'blocked' : node.status;
    shown.set(node.id, { title, project, status });
    const { id, dependsOn, wave } = node;
    return { id, dependsOn, wave, width: Math.max(90, Math.ceil(columns * 8.1) + 22), height: nodeHeight };
  });
  const layout = layoutGraph(sized);
  const parts = layout.isDense ? cells(layout, shown) : boxes(layout, shown, options);
  const statuses = [...new Set([...shown.values()].map(({ status }) => status))].sort();
  const label = `Dependency graph of ${plural(nodes.length, 'session')}`;
  return { picture: frame(layout, label, parts, options), caption: captionOf(layout, nodes.length), statuses };
}

function captionOf({ isDense, impliedEdges }: GraphLayout, count: number): string {
  if (isDense) {
    const each = count > titledCellsMax ? 'a cell' : 'a cell with its name in its tooltip';
    const what = `${plural(count, 'session')}, too many or too entangled to draw one by one: each is ${each}`;
    return `${what}, layer after layer, without its dependencies. The graph in the form of DOT has them all.`;
  }
  if (impliedEdges === 0) return '';
  return `Dependencies that follow from others are not drawn; there are ${impliedEdges} of them.`;
}

function frame({ width, height }: GraphLayout, label: string, parts: Child, { isFile }: PictureOptions): Markup {
  const size = {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: isFile ? 'img' : 'group',
    'aria-label': label,
  };
  if (!isFile) return el('svg', size, parts);
  const own = el('rect', { width: '100%', height: '100%', fill: 'var(--bg)' });
  return el(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', ...size },
    el('title', {}, label),
    styleElement(`${themeStyle}\n${pictureStyle}`),
    own,
    parts,
  );
}

function boxes(layout: GraphLayout, shown: ReadonlyMap<string, Shown>, { href }: PictureOptions): Child[] {
  const edges = layout.edges.flatMap(edgeParts);
  const nodes = layout.nodes.map((node) => {
    const box = boxOf(node, shown.get(node.id));
    return href === undefined ? box : el('a', { href: href(node.id) }, box);
  });
  return [...edges, ...nodes];
}

function boxOf({ x, y, width, height }: PlacedNode, shown: Shown | undefined): Markup {
  const { title = '', project = '', status = 'pending' } = shown ?? {};
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
function edgeParts({ points }: PlacedEdge): Markup[] {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (first === undefined || last === undefined) return [];
  let path = `M${round(first.x)} ${round(first.y)}`;
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1];
    if (next === undefined) path += `L${round(point.x)} ${round(point.y)}`;
    else {
      const [x, y] = index === rest.length - 2 ? [next.x, next.y] : [(point.x + next.x) / 2, (point.y + next.y) / 2];
      path += `Q${round(point.x)} ${round(point.y)} ${round(x)} ${round(y)}`;
      if (index === rest.length - 2) break;
    }
  }
  const before = rest.at(-2) ?? first;
  const angle = Math.atan2(last.y - before.y, last.x - before.x);
  const corner = (turn: number): string =>
    `${round(last.x - 7 * Math.cos(angle + turn))},${round(last.y - 7 * Math.sin(angle + turn))}`;
  const tip = `${round(last.x)},${round(last.y)}`;
  return [
    el('path', { class: 'edge', d: path }),
    el('polygon', { class: 'head', points: `${tip} ${corner(0.45)} ${corner(-0.45)}` }),
  ];
}

/** One path for all cells of a status; with few of them a rectangle each, so that each can say its name. */
function cells(layout: GraphLayout, shown: ReadonlyMap<string, Shown>): Child[] {
  if (layout.nodes.length <= titledCellsMax) {
    return layout.nodes.map(({ id, x, y, width, height }) => {
      const { title = '', status = 'pending' } = shown.get(id) ?? {};
      const size = { class: `cell s-${status}`, x, y, width, height };
      return el('rect', size, el('title', {}, `${title}: ${status}`));
    });
  }
  const paths = new Map<string, string>();
  for (const { id, x, y, width, height } of layout.nodes) {
    const status = shown.get(id)?.status ?? 'pending';
    paths.set(status, `${paths.get(status) ?? ''}M${x} ${y}h${width}v${height}h-${width}z`);
  }
  return [...paths].map(([status, d]) => el('path', { class: `cell s-${status}`, d }));
}
