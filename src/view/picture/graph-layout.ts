/**
 * Where the sessions of a group stand in a picture: in layers by dagre while that is quick and the result can be
 * read, else as small cells, layer by layer, without the lines between them. Lengths are pixels of the picture.
 */
import { Graph, layout } from '@dagrejs/dagre';

export interface LayoutNode {
  readonly id: string;
  readonly dependsOn: readonly string[];
  /** Length of the longest path that leads to it. */
  readonly wave: number;
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `x` and `y` are those of the upper left corner. */
export interface PlacedNode extends Point {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export interface PlacedEdge {
  readonly from: string;
  readonly to: string;
  readonly points: readonly Point[];
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  /** Nodes are cells without names, and edges are not drawn. */
  readonly isDense: boolean;
  /** Dependencies that follow from others and were left out, because the picture would not be clear with them. */
  readonly impliedEdges: number;
}

/** dagre takes seconds for more; measured with chains, fans, random graphs and complete ones. */
const nodesMax = 600;
/** Nodes and the points at which edges cross layers. */
const crossingsMax = 2000;
const margin = 12;

/** `nodes` in an order in which each comes after those it depends on. Dependencies outside of `nodes` do not count. */
export function layoutGraph(nodes: readonly LayoutNode[]): GraphLayout {
  const waves = new Map(nodes.map(({ id, wave }) => [id, wave]));
  const all = nodes.map((node) => ({ ...node, dependsOn: node.dependsOn.filter((id) => waves.has(id)) }));
  if (nodes.length > nodesMax) return denseLayout(all);
  if (crossings(all, waves) <= crossingsMax) return layeredLayout(all, 0);
  const reduced = withoutImplied(all);
  if (crossings(reduced, waves) > crossingsMax) return denseLayout(all);
  return layeredLayout(reduced, countEdges(all) - countEdges(reduced));
}

function countEdges(nodes: readonly LayoutNode[]): number {
  return nodes.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
}

function crossings(nodes: readonly LayoutNode[], waves: ReadonlyMap<string, number>): number {
  let sum = nodes.length;
  for (const { dependsOn, wave } of nodes) for (const id of dependsOn) sum += wave - (waves.get(id) ?? 0);
  return sum;
}

/** Leaves out every dependency that is also one of another dependency, directly or over others. */
function withoutImplied(nodes: readonly LayoutNode[]): LayoutNode[] {
  const words = Math.ceil(nodes.length / 32);
  const place = new Map(nodes.map(({ id }, index) => [id, index]));
  const reached: Uint32Array[] = [];
  return nodes.map((node) => {
    const own = new Uint32Array(words);
    const places = node.dependsOn.map((id) => place.get(id) ?? 0);
    for (const index of places) {
      const other = reached[index];
      if (other !== undefined) for (let word = 0; word < words; word += 1) own[word] = own[word]! | other[word]!;
    }
    const isImplied = (index: number): boolean => ((own[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0;
    const dependsOn = node.dependsOn.filter((_, at) => !isImplied(places[at] ?? 0));
    for (const index of places) own[index >>> 5] = own[index >>> 5]! | (1 << (index & 31));
    reached.push(own);
    return { ...node, dependsOn };
  });
}

function layeredLayout(nodes: readonly LayoutNode[], impliedEdges: number): GraphLayout {
  const needed = new Set(nodes.flatMap(({ dependsOn }) => dependsOn));
  const linked = nodes.filter(({ id, dependsOn }) => dependsOn.length > 0 || needed.has(id));
  const alone = nodes.filter(({ id, dependsOn }) => dependsOn.length === 0 && !needed.has(id));
  const graph = new Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 52, ranker: 'tight-tree', marginx: margin, marginy: margin });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of linked) graph.setNode(id, { width, height });
  for (const { id, dependsOn } of linked) for (const other of dependsOn) graph.setEdge(other, id);
  if (linked.length > 0) layout(graph);
  const placed = linked.map(({ id, width, height }): PlacedNode => {
    const { x = 0, y = 0 } = graph.node(id) as Partial<Point>;
    return { id, x: x - width / 2, y: y - height / 2, width, height };
  });
  const edges = graph.edges().map(({ v, w }): PlacedEdge => {
    const { points = [] } = graph.edge(v, w) as { readonly points?: readonly Point[] };
    return { from: v, to: w, points };
  });
  const size = extent(placed, edges);
  const rest = gridOf(alone, linked.length === 0 ? margin : size.height, Math.max(size.width, 720));
  const all = [...placed, ...rest];
  return { ...extent(all, edges), nodes: all, edges, isDense: false, impliedEdges };
}

/** Sessions that have to do with no other, in rows. */
function gridOf(nodes: readonly LayoutNode[], top: number, widthMax: number): PlacedNode[] {
  let x = margin;
  let y = top;
  return nodes.map(({ id, width, height }) => {
    if (x > margin && x + width > widthMax) {
      x = margin;
      y += height + 14;
    }
    const node = { id, x, y, width, height };
    x += width + 14;
    return node;
  });
}

function extent(nodes: readonly PlacedNode[], edges: readonly PlacedEdge[]): { width: number; height: number } {
  let width = 0;
  let height = 0;
  for (const node of nodes) {
    width = Math.max(width, node.x + node.width);
    height = Math.max(height, node.y + node.height);
  }
  for (const { x, y } of edges.flatMap(({ points }) => points)) {
    width = Math.max(width, x);
    height = Math.max(height, y);
  }
  return { width: Math.ceil(width + margin), height: Math.ceil(height + margin) };
}

const cell = 10;
const pitch = 12;
const columnsMax = 80;
const blockColumnsMax = 40;

/** Every layer is a block of cells; blocks follow each other like words, so that any shape stays a page wide. */
function denseLayout(nodes: readonly LayoutNode[]): GraphLayout {
  const layers = new Map<number, LayoutNode[]>();
  for (const node of nodes) {
    const layer = layers.get(node.wave);
    if (layer === undefined) layers.set(node.wave, [node]);
    else layer.push(node);
  }
  const placed: PlacedNode[] = [];
  let column = 0;
  let row = 0;
  let rowsHere = 0;
  for (const [, layer] of [...layers].sort(([a], [b]) => a - b)) {
    const columns = Math.min(layer.length, layer.length > 400 ? columnsMax : blockColumnsMax);
    if (column > 0 && column + columns > columnsMax) {
      row += rowsHere + 1;
      column = 0;
      rowsHere = 0;
    }
    for (const [index, { id }] of layer.entries()) {
      const x = margin + (column + (index % columns)) * pitch;
      const y = margin + (row + Math.floor(index / columns)) * pitch;
      placed.push({ id, x, y, width: cell, height: cell });
    }
    rowsHere = Math.max(rowsHere, Math.ceil(layer.length / columns));
    column += columns + 1;
  }
  return { ...extent(placed, []), nodes: placed, edges: [], isDense: true, impliedEdges: 0 };
}
