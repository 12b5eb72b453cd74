/** Promises: timers fire later, once and by their delay, can be cancelled, and very long ones do not fire at once. */
import { expect, test } from 'bun:test';
import { createClock } from '../../../src/system/clock.ts';

const clock = createClock();

test('an action comes later, once, and the shorter delay first', async () => {
  const seen: string[] = [];
  const done = Promise.withResolvers<void>();
  clock.after(60, () => {
    seen.push('late');
    done.resolve();
  });
  clock.after(-5, () => seen.push('soon'));
  seen.push('now');
  await done.promise;
  expect(seen).toEqual(['now', 'soon', 'late']);
});

test('a cancelled action never comes, and a month is not taken for an instant', async () => {
  const seen: string[] = [];
  const done = Promise.withResolvers<void>();
  clock.after(10, () => seen.push('cancelled'))();
  const cancelMonth = clock.after(2 ** 31 + 5, () => seen.push('month'));
  clock.after(40, done.resolve);
  await done.promise;
  cancelMonth();
  expect(seen).toEqual([]);
});

test('the time of day is in milliseconds', () => {
  expect(clock.now()).toBeGreaterThan(Date.parse('2025-01-01'));
});
