/** Promises: times in sentences are in local time and relative to now. */
import { expect, test } from 'bun:test';
import { formatClock, formatDate, formatMoment } from '../../../src/view/format.ts';
import { conditionOf, withLocalTimes } from '../../../src/view/wording.ts';
import { fold, sceneEvents } from '../../support/tui/dashboard/scene.ts';

const nowMs = new Date(2026, 0, 4, 14, 30, 0).getTime();
const after = (ms: number): string => new Date(nowMs + ms).toISOString();
const dayMs = 24 * 3_600_000;

test('a time on another day has its date', () => {
  expect(formatMoment(after(60_000), nowMs)).toBe(formatClock(after(60_000)));
  expect(formatMoment(after(dayMs), nowMs)).toBe(formatDate(after(dayMs)));
});

test('a future time has its remaining duration', () => {
  const soon = after(21_000);
  expect(withLocalTimes(`It resets at ${soon}, then it goes on.`, nowMs)).toBe(
    `It resets at ${formatClock(soon)} (in 21s), then it goes on.`,
  );
  const past = after(-21_000).replace('.000Z', 'Z');
  expect(withLocalTimes(`Lifted at ${past}.`, nowMs)).toBe(`Lifted at ${formatClock(past)}.`);
  expect(withLocalTimes('It waits for 001.', nowMs)).toBe('It waits for 001.');
});

test('a limit that ends today is shown as a clock time, and one of another day with its date', () => {
  const { state } = fold(sceneEvents);
  const resetsAt = state.limitResetsAt ?? '';
  const atMs = Date.parse(resetsAt);
  expect(conditionOf(state, atMs)).toBe(`usage limit until ${formatClock(resetsAt)}`);
  expect(conditionOf(state, atMs - dayMs)).toBe(`usage limit until ${formatDate(resetsAt)}`);
});
