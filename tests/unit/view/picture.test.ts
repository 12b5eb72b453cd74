/** Promises: pictures of graphs never draw one thing over another and stay quick; time in them never runs backwards. */
import { describe, expect, test } from 'bun:test';
import { type GraphLayout, layoutGraph } from '../../../src/view/picture/graph-layout.ts';
import { cutText, el, escapeText } from '../../../src/view/picture/markup.ts';
import { stepChart } from '../../../src/view/picture/step-chart.ts';
import { timeScale } from '../../../src/view/picture/time-scale.ts';
import { fc } from '../../support/property.ts';
import { readMarkup } from '../../support/view/markup-checker.ts';

interface Node {
  readonly id: string;
  readonly dependsOn: readonly string[];
  readonly wave: number;
  readonly width: number;
  readonly height: number;
}

/** By places; each depends only on earlier ones. */
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

describe('graphs', () => {
  test('every session is drawn once, over no other, to the right of what it depends on', () => {
    fc.assert(
      fc.property(graphs, (nodes) => {
        const layout = layoutGraph(nodes);
        expect(layout.nodes.map(({ id }) => id).sort()).toEqual(nodes.map(({ id }) => id).sort());
        expectApart(layout);
        const edges = nodes.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
        expect(layout.edges.length + layout.impliedEdges).toBe(edges);
        const x = new Map(layout.nodes.map((node) => [node.id, node.x]));
        for (const { from, to } of layout.edges) expect(x.get(from) ?? 0).toBeLessThan(x.get(to) ?? 0);
      }),
      { numRuns: 60 },
    );
  });

  test('the same graph is drawn the same way', () => {
    const nodes = nodesOf([[], [], [0], [0, 1], [2, 3], [1, 4]]);
    expect(layoutGraph(nodes)).toEqual(layoutGraph(structuredClone(nodes)));
  });

  test('dependencies that follow from others are left out when there are very many', () => {
    const complete = nodesOf(
      Array.from({ length: 40 }, (_, index) => Array.from({ length: index }, (_, place) => place)),
    );
    const layout = layoutGraph(complete);
    expect(layout).toMatchObject({ isDense: false, impliedEdges: 780 - 39 });
    expect(layout.edges.map(({ from, to }) => `${from} ${to}`)).toContain('n38 n39');
  });

  test.each([
    ['a chain', (index: number) => [index - 1]],
    ['a fan', () => [0]],
    ['no dependencies', () => []],
    ['layers', (index: number) => (index > 90 ? [index - 90, index - 89] : [])],
  ])('10,000 sessions in %s are cells, layer after layer', (_, dependencies) => {
    const rows = Array.from({ length: 10_000 }, (_, index) => (index === 0 ? [] : dependencies(index)));
    const layout = layoutGraph(nodesOf(rows));
    expect(layout).toMatchObject({ isDense: true, edges: [] });
    expect(new Set(layout.nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(10_000);
    expect(layout.width).toBeLessThan(1100);
  });

  test('a graph too entangled for lines is cells as well', () => {
    const rows = Array.from({ length: 120 }, (_, index) =>
      index < 60 ? [] : Array.from({ length: 60 }, (_, at) => at),
    );
    expect(layoutGraph(nodesOf(rows)).isDense).toBe(true);
  });
});

describe('time', () => {
  const scales = fc
    .tuple(fc.nat(1e9), fc.nat(1e9), fc.array(fc.tuple(fc.nat(1e9), fc.nat(1e8)), { maxLength: 5 }))
    .map(([from, length, pauses]) => {
      const idle: { from: number; to: number }[] = [];
      let at = from;
      for (const [gap, pause] of pauses) {
        if (at + gap + pause > from + length) break;
        idle.push({ from: at + gap, to: at + gap + pause });
        at += gap + pause;
      }
      return { span: { from, to: from + length + 1 }, idle };
    });

  test('never runs backwards and never leaves the picture; ticks lie where their moment lies', () => {
    fc.assert(
      fc.property(scales, fc.array(fc.integer({ min: -1000, max: 2_000_001_000 })), ({ span, idle }, moments) => {
        const scale = timeScale(span, idle, 100, 900);
        const places = moments.sort((a, b) => a - b).map((at) => scale.place(at));
        for (const [index, place] of places.entries()) {
          expect(place >= (places[index - 1] ?? 100) - 1e-6 && place <= 900 + 1e-6).toBe(true);
        }
        for (const { at, place } of scale.ticks) expect(scale.place(at)).toBeCloseTo(place, 3);
        for (const [index, { place }] of scale.ticks.entries()) {
          if (index > 0) expect(place - (scale.ticks[index - 1]?.place ?? 0)).toBeGreaterThan(50);
        }
      }),
    );
  });

  test('a night in which nothing ran takes no room', () => {
    const hour = 3_600_000;
    const scale = timeScale({ from: 0, to: 12 * hour }, [{ from: hour, to: 11 * hour }], 0, 1000);
    expect(scale.place(hour)).toBeCloseTo(489, 0);
    expect(scale.place(11 * hour)).toBeCloseTo(511, 0);
    expect(scale.bands).toMatchObject([{ durationMs: 10 * hour }]);
  });
});

describe('charts', () => {
  test('rise by what was added, the second on top of the first', () => {
    const chart = stepChart(
      ['a', 'b'],
      [
        { from: 0, at: 0, added: [1, 1] },
        { from: 0, at: 50, added: [2, 0] },
      ],
      {
        span: { from: 0, to: 100 },
        idle: [],
        label: 'x',
        format: String,
      },
    );
    const paths = readMarkup(chart.text).elements.filter(({ name }) => name === 'path');
    expect(paths.map(({ attributes }) => attributes.get('d'))).toEqual([
      'M76 204L76 204L76 109L520 14H988V204z',
      'M76 204L76 204L76 156.5L520 61.5H988V204z',
    ]);
  });

  test('U14: what ends at the right edge is seen in full, and the last label is not cut', () => {
    const hour = 3_600_000;
    const to = 3 * hour;
    const added = { from: hour, at: to, added: [0.54] };
    const options = { span: { from: 0, to }, idle: [], label: 'x', format: String };
    const { elements } = readMarkup(stepChart(['a'], [{ from: 0, at: to, added: [0.46] }, added], options).text);
    const path = elements.find(({ name }) => name === 'path')?.attributes.get('d') ?? '';
    // A ramp to the top, which is 1, and a level there.
    expect(path).toEndWith('L964 14H988V204z');
    const labels = elements.filter(({ name, attributes }) => name === 'text' && attributes.get('y') === '222');
    expect(labels.at(-1)?.attributes.get('class')).toBe('dim end');
    expect(timeScale({ from: 0, to }, [], 0, 988).ticks.at(-1)).toMatchObject({ label: '03:00', anchor: 'end' });
  });
});

describe('markup', () => {
  test('any text and any attribute comes back as it was cleaned', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const reading = readMarkup(el('p', { title: text }, text).text);
        expect(reading.elements[0]?.attributes.get('title')).toBe(reading.text);
      }),
    );
  });

  test('a cut text takes no more bytes than it may, and no fewer than it could', () => {
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
