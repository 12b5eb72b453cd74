/** Promises: graph pictures have no overlaps and are fast to draw, and time runs from left to right. */
import { describe, expect, test } from 'bun:test';
import { cutText, el, escapeText } from '../../../src/view/html/markup.ts';
import { type GraphLayout, layoutGraph, timeScale } from '../../../src/view/html/pictures.ts';
import { fc } from '../../support/property.ts';
import { readMarkup } from '../../support/view/markup-checker.ts';

interface Node {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly wave: number;
  readonly width: number;
  readonly height: number;
}

/** Dependencies by index; each is an earlier session. */
function nodesOf(dependencies: readonly (readonly number[])[]): Node[] {
  const nodes: Node[] = [];
  for (const [index, places] of dependencies.entries()) {
    const wave = places.reduce((deepest, place) => Math.max(deepest, (nodes[place]?.wave ?? 0) + 1), 0);
    const dependsOn = [...new Set(places)].map((place) => `n${place}`);
    nodes.push({ id: `n${index}`, dependsOn, wave, width: 90 + (index % 5) * 20, height: 38 });
  }
  return nodes;
}

const graphs = fc
  .array(fc.array(fc.nat(), { maxLength: 3 }), { maxLength: 24 })
  .map((rows) => nodesOf(rows.map((row, index) => (index === 0 ? [] : row.map((number) => number % index)))));

function drawn(nodes: readonly Node[]): GraphLayout {
  const layout = layoutGraph(nodes);
  if (layout === null) throw new Error('not drawn');
  return layout;
}

function expectApart({ nodes, width, height }: GraphLayout): void {
  for (const [index, one] of nodes.entries()) {
    expect(one.x >= 0 && one.y >= 0 && one.x + one.width <= width && one.y + one.height <= height).toBe(true);
    for (const other of nodes.slice(index + 1)) {
      const isApart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      if (!isApart) throw new Error(`${one.id} lies over ${other.id}`);
    }
  }
}

describe('graph pictures', () => {
  test('a graph picture draws each session once, without overlap and right of its dependencies', () => {
    fc.assert(
      fc.property(graphs, (nodes) => {
        const layout = drawn(nodes);
        expect(layout.nodes.map(({ id }) => id).sort()).toEqual(nodes.map(({ id }) => id).sort());
        expectApart(layout);
        for (const { x, y } of layout.edges.flatMap(({ points }) => points)) {
          expect(x >= 0 && y >= 0 && x <= layout.width && y <= layout.height).toBe(true);
        }
        const edges = nodes.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
        expect(layout.edges.length).toBe(edges);
        const x = new Map(layout.nodes.map((node) => [node.id, node.x]));
        for (const { from, to } of layout.edges) expect(x.get(from) ?? 0).toBeLessThan(x.get(to) ?? 0);
      }),
      { numRuns: 60 },
    );
  });

  test('graphs that take seconds to draw are omitted: thousands of sessions, and a complete graph', () => {
    expect(layoutGraph(nodesOf(Array.from({ length: 2_000 }, () => [])))).toBeNull();
    const complete = Array.from({ length: 40 }, (_, index) => Array.from({ length: index }, (_, place) => place));
    expect(layoutGraph(nodesOf(complete))).toBeNull();
  });
});

describe('timeline', () => {
  test('the timeline omits hours in which no session ran', () => {
    const hour = 3_600_000;
    const busy = [
      { from: 11 * hour, to: 12 * hour },
      { from: 0, to: hour },
    ];
    const scale = timeScale({ from: 0, to: 12 * hour }, busy, 0, 1000);
    expect(scale.place(hour)).toBeCloseTo(489, 0);
    expect(scale.place(11 * hour)).toBeCloseTo(511, 0);
    expect(scale.bands).toMatchObject([{ durationMs: 10 * hour }]);
  });

  test('the label at the right edge of the timeline is not cut', () => {
    const span = { from: 0, to: 3 * 3_600_000 };
    expect(timeScale(span, [span], 0, 988).ticks.at(-1)).toMatchObject({ label: '03:00', anchor: 'end' });
  });
});

describe('SVG markup', () => {
  test('text and attributes come back from SVG as they were cleaned', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const reading = readMarkup(el('p', { title: text }, text).text);
        expect(reading.elements[0]?.attributes.get('title')).toBe(reading.text);
      }),
    );
  });

  test('truncated text uses as many bytes as allowed and no more', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(60), (text, max) => {
        const cut = cutText(text, max);
        expect(Buffer.byteLength(escapeText(cut.text))).toBeLessThanOrEqual(max);
        expect(text.startsWith(cut.text)).toBe(true);
        expect(cut.cutFrom).toBe(cut.text === text ? undefined : text.length);
      }),
    );
  });
});
