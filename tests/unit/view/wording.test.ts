/** Promises: in sentences times are told as a person at this place and moment reads them. */
import { expect, test } from 'bun:test';
import { formatClock, formatDate, formatMoment } from '../../../src/view/format.ts';
import { conditionOf, withLocalTimes } from '../../../src/view/wording.ts';
import { fold, sceneEvents } from '../../support/tui/dashboard/scene.ts';

const nowMs = new Date(2026, 0, 4, 14, 30, 0).getTime();
const after = (ms: number): string => new Date(nowMs + ms).toISOString();
const dayMs = 24 * 3_600_000;

test('another day has its date', () => {
  expect(formatMoment(after(60_000), nowMs)).toBe(formatClock(after(60_000)));
  expect(formatMoment(after(dayMs), nowMs)).toBe(formatDate(after(dayMs)));
});

test('what is to come says how long it takes', () => {
  const soon = after(21_000);
  expect(withLocalTimes(`It is lifted at ${soon}, then it goes on.`, nowMs)).toBe(
    `It is lifted at ${formatClock(soon)} (in 21s), then it goes on.`,
  );
  const past = after(-21_000).replace('.000Z', 'Z');
  expect(withLocalTimes(`Lifted at ${past}.`, nowMs)).toBe(`Lifted at ${formatClock(past)}.`);
  expect(withLocalTimes('It waits for 001.', nowMs)).toBe('It waits for 001.');
});

test('a limit that is lifted today is told by the clock, one of another day with its date', () => {
  const { state } = fold(sceneEvents);
  const resetsAt = state.limitResetsAt ?? '';
  const atMs = Date.parse(resetsAt);
  expect(conditionOf(state, atMs)).toBe(`usage limit until ${formatClock(resetsAt)}`);
  expect(conditionOf(state, atMs - dayMs)).toBe(`usage limit until ${formatDate(resetsAt)}`);
});
