/** Promises: a short break ends by itself, and no clock that is set back makes it a long one. */
import { expect, test } from 'bun:test';
import { freezeMs, isFreezeOver } from '../../../src/runner/freeze.ts';

test('a freeze is over at its end, and when its end is further away than any can be', () => {
  const beganMs = Date.parse('2026-01-02T03:04:05.000Z');
  const until = new Date(beganMs + freezeMs).toISOString();
  const over = (afterMs: number) => isFreezeOver(until, beganMs + afterMs);
  expect([0, freezeMs - 1, freezeMs, freezeMs + 1].map(over)).toEqual([false, false, true, true]);
  // An hour back, as with a change of the time zone done wrong.
  expect(over(-3_600_000)).toBe(true);
});
