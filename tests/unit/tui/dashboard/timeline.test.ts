/** Promises: spending rate, sparkline and attempt bars are computed from the attempts alone. */
import { expect, test } from 'bun:test';
import { asciiGlyphs, unicodeGlyphs } from '../../../../src/tui/dashboard/cells.ts';
import {
  type AttemptNote,
  type AttemptNotes,
  paceOf,
  spanOf,
  sparkline,
  timelineCells,
} from '../../../../src/tui/dashboard/timeline.ts';
import { fc } from '../../../support/property.ts';
import {
  frame,
  isSelected,
  layoutText,
  rowsOf,
  sceneLive,
  sessionId,
  startMs,
} from '../../../support/tui/dashboard/scene.ts';
import { sampleUsage } from '../../../support/view/sample-run.ts';

const minute = 60_000;
const nowMs = startMs + 60 * minute;

/** From and to in minutes before now; an absent `to` means that the attempt is running. */
function note(from: number, to?: number, usd = 0): AttemptNote {
  const at = (minutes: number) => new Date(nowMs - minutes * minute).toISOString();
  const begun = { number: 1, kind: 'start', startedAt: at(from) } as const;
  return to === undefined
    ? { ...begun, outcome: 'running' }
    : { ...begun, endedAt: at(to), outcome: 'completed', usage: sampleUsage(usd, 0, 0, 0) };
}

const notes = (...all: AttemptNote[][]): AttemptNotes => new Map(all.map((one, index) => [`s${index}`, one]));
const running = (usd: number) => new Map([['s0', { usage: sampleUsage(usd, 0, 0, 0) }]]);

test('the spending rate is that of the last five minutes', () => {
  const rate = (attempts: AttemptNotes, live = new Map()) => paceOf({ attempts, live, nowMs }).perHourUsd;
  expect(rate(new Map())).toBeNull();
  expect(rate(notes([note(10)]), running(1))).toBeCloseTo(6);
  // Two attempts at once, and one that ended long ago.
  expect(rate(notes([note(10)], [note(5, 0, 0.5)], [note(60, 30, 9)]), running(1))).toBeCloseTo(12);
  expect(rate(notes([note(0.3)]), running(1))).toBeNull();
  // A run that has just started.
  expect(rate(notes([note(1)]), running(0.1))).toBeCloseTo(6);
  expect(rate(notes([note(60, 30, 9)]))).toBeNull();
});

test('a sparkline shows spending over time, newest at the right, in the available columns', () => {
  const pace = (attempts: AttemptNotes) => paceOf({ attempts, live: new Map(), nowMs });
  const two = pace(notes([note(30, 20, 1)], [note(10, 0, 3)]));
  expect(sparkline(two, 24, unicodeGlyphs)).toBe(`${'▄'.repeat(8)}${'▁'.repeat(8)}${'█'.repeat(8)}`);
  expect(sparkline(two, 12, unicodeGlyphs)).toBe(`${'▁'.repeat(4)}${'█'.repeat(8)}`);
  expect(sparkline(two, 24, asciiGlyphs)).toMatch(/^[ -~]{24}$/);
  expect(sparkline(pace(notes([note(30, 0, 1)])), 3, unicodeGlyphs)).toBe('▅▅▅');
  expect(sparkline(pace(new Map()), 6, unicodeGlyphs)).toBe('');
});

test('the bar of any attempts has its width and shows each attempt', () => {
  const times = fc.array(fc.integer({ min: 0, max: 59 }), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(times, fc.integer({ min: 10, max: 120 }), (minutes, columns) => {
      const sorted = minutes.toSorted((one, other) => other - one);
      const pairs = Array.from({ length: Math.floor(sorted.length / 2) }, (_, nth) =>
        sorted.slice(nth * 2, nth * 2 + 2),
      );
      const all = pairs.map(([from = 0, to = 0]) => note(from, to, 1));
      const span = { fromMs: startMs, toMs: nowMs };
      const cells = timelineCells(all, span, columns, asciiGlyphs);
      expect(cells.map(({ text }) => text).join('')).toHaveLength(columns);
      expect(cells.some(({ text }) => text.startsWith('#'))).toBe(true);
    }),
  );
  expect(spanOf(notes([note(20), note(10)], [note(30, 25)]), nowMs)).toEqual({
    fromMs: nowMs - 30 * minute,
    toMs: nowMs,
  });
});

test('the spinner of a session moves only while a tool runs', () => {
  const signs = (live: typeof sceneLive, more: object = {}) =>
    [0, 300, 600].map((ms) => {
      const ui = { selected: sessionId(2) };
      const shown = frame({ view: { live, nowMs: startMs + 95_000 + ms, ...more }, ui });
      const [row] = rowsOf(shown).filter(isSelected);
      return `${row?.cells[1]?.text}${shown.isTurning ? ' turns' : ''}`;
    });
  const idle = new Map([[sessionId(2), { usage: sampleUsage(0, 0, 0, 0) }]]);
  expect(new Set(signs(sceneLive)).size).toBe(3);
  expect(signs(sceneLive).every((sign) => sign.endsWith(' turns'))).toBe(true);
  expect(new Set(signs(idle))).toEqual(new Set(['●']));
  expect(new Set(signs(sceneLive, { runner: 'none' }))).toEqual(new Set(['●']));
});

test('the header shows the spending rate and remaining time as far as there is room', () => {
  const attempts = notes([note(10)]);
  const money = (columns: number, more: object = {}) => {
    const pace = paceOf({ attempts, live: running(1), nowMs });
    const view = { attempts, pace, nowMs, remainingMs: 150_000, ...more };
    return layoutText(frame({ columns, view })).split('\n')[1] ?? '';
  };
  expect(money(160)).toMatch(/ {2}▅{24} {2}\$6\.00\/h {2}~2m 30s left/);
  expect(money(80)).toContain('$6.00/h');
  expect(money(40)).not.toContain('/h');
  expect(money(160, { runner: 'none' })).not.toContain('/h');
  expect(money(160, { pace: paceOf({ attempts: new Map(), live: new Map(), nowMs }) })).not.toContain('/h');
});

test('the list can show when each session worked instead of its activity', () => {
  const attempts = new Map([
    [sessionId(1), [note(60, 30, 1)]],
    [sessionId(2), [note(30)]],
  ]);
  const at = (columns: number, pane: 'auto' | 'none') =>
    layoutText(frame({ columns, view: { attempts, nowMs, live: new Map() }, ui: { hasTimeline: true, pane } })).split(
      '\n',
    );
  for (const lines of [at(120, 'none'), at(100, 'auto'), at(60, 'none')]) {
    expect(lines[4]).toContain('TIMELINE');
    const [first, second] = ['001 schema', '002 api'].map((name) =>
      lines.find((line) => line.includes(`  ${name}`) || line.includes(`├ ${name}`)),
    );
    expect(first).toMatch(/█+░+/);
    expect(second).toMatch(/░+█+/);
  }
});
