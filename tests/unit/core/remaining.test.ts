/** Promises: the remaining time of a run is estimated from usual times, slots and the graph, or left out. */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { costHistory, remainingMs, type Sample } from '../../../src/core/plan/preview.ts';
import { fold, sessionId, startMs } from '../../support/tui/dashboard/scene.ts';
import {
  creation,
  sampleAttempt,
  sampleAttemptId,
  sampleUsage,
  session,
  started,
} from '../../support/view/sample-run.ts';

const minute = 60_000;
const usual = (minutes: number, more: Partial<Sample> = {}): Sample => ({
  costUsd: 1,
  durationMs: minutes * minute,
  ...more,
});

interface Shape {
  readonly after?: readonly (readonly number[])[];
  readonly slots?: number;
  readonly events?: readonly EventBody[];
  readonly respects?: boolean;
}

/** Minutes that a group still needs when its sessions have these dependencies and take two minutes each. */
function minutesOf(
  count: number,
  { after = [], slots = 10, events = [], respects = true }: Shape = {},
  samples = [usual(2)],
) {
  const sessions = Array.from({ length: count }, (_, index) =>
    session(sessionId(index + 1), { dependsOn: (after[index] ?? []).map(sessionId) }),
  );
  const config = { maxConcurrentSessions: slots, respectDependencies: respects };
  const { state } = fold([...creation(config, sessions), started, ...events]);
  const ms = remainingMs(state, costHistory(samples), Date.parse(state.updatedAt));
  return ms === null ? null : ms / minute;
}

test('there is no remaining time if a pending session has no history, or if nothing is left', () => {
  expect(minutesOf(3, {}, [])).toBeNull();
  expect(minutesOf(3, {}, [usual(2, { template: 'other' })])).toBeNull();
  expect(minutesOf(0)).toBeNull();
});

test('the remaining time depends on slots, dependencies and elapsed time', () => {
  expect(minutesOf(6)).toBe(2);
  expect(minutesOf(6, { slots: 2 })).toBe(6);
  expect(minutesOf(3, { after: [[], [1], [2]] })).toBe(6);
  expect(minutesOf(3, { after: [[], [1], [2]], respects: false })).toBe(2);
  expect(minutesOf(4, { after: [[], [1], [1], [2, 3]], slots: 1 })).toBe(8);
  // One has been running for a few seconds.
  expect(minutesOf(1, { events: sampleAttempt(sessionId(1)) })).toBeCloseTo(2 - 2 / 60);
  // A session that has taken longer than usual counts as almost done.
  expect(minutesOf(1, { events: sampleAttempt(sessionId(1)) }, [usual(0.01)])).toBeCloseTo(0.001);
  expect(startMs).toBeGreaterThan(0);
});

test('sessions that do not start by themselves do not count in the remaining time', () => {
  const of = { sessionId: sessionId(1), attemptId: sampleAttemptId(sessionId(1)), usage: sampleUsage(0, 0, 0, 0) };
  const failed: EventBody = { type: 'session_failed', ...of, reason: 'no-result', message: 'No.', next: '' };
  const paused: EventBody = { type: 'session_paused', ...of, reason: 'user', message: 'Paused.' };
  const completed: EventBody = { type: 'session_completed', ...of, result: 'Done.' };
  const chain = { after: [[], [1], []] };
  const after = (end: EventBody) => minutesOf(3, { ...chain, events: [...sampleAttempt(sessionId(1)), end] });
  expect(after(failed)).toBe(2);
  expect(after(paused)).toBe(2);
  expect(minutesOf(2, { after: [[], [1]], events: [...sampleAttempt(sessionId(1)), failed] })).toBeNull();
  expect(minutesOf(2, { after: [[], [1]], events: [...sampleAttempt(sessionId(1)), completed] })).toBe(2);
});
