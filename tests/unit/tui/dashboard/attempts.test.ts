/** Promises: the spending rate is computed from the attempts alone; the spinner moves only while a tool runs. */
import { expect, test } from 'bun:test';
import { type AttemptNote, type AttemptNotes, hourlyUsd } from '../../../../src/tui/dashboard/attempts.ts';
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
  const rate = (attempts: AttemptNotes, live = new Map()) => hourlyUsd(attempts, live, nowMs);
  expect(rate(new Map())).toBeNull();
  expect(rate(notes([note(10)]), running(1))).toBeCloseTo(6);
  // Two attempts at once, and one that ended long ago.
  expect(rate(notes([note(10)], [note(5, 0, 0.5)], [note(60, 30, 9)]), running(1))).toBeCloseTo(12);
  expect(rate(notes([note(0.3)]), running(1))).toBeNull();
  // A run that has just started.
  expect(rate(notes([note(1)]), running(0.1))).toBeCloseTo(6);
  expect(rate(notes([note(60, 30, 9)]))).toBeNull();
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
    const perHourUsd = hourlyUsd(attempts, running(1), nowMs);
    const view = { attempts, perHourUsd, nowMs, remainingMs: 150_000, ...more };
    return layoutText(frame({ columns, view })).split('\n')[1] ?? '';
  };
  expect(money(160)).toContain('  $6.00/h  ~2m 30s left');
  expect(money(80)).toContain('$6.00/h');
  expect(money(40)).not.toContain('/h');
  expect(money(160, { runner: 'none' })).not.toContain('/h');
  expect(money(160, { perHourUsd: null })).not.toContain('/h');
});
