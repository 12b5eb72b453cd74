/** Promises: timers fire once and in the order of their delays, can be cancelled, and do not overflow. */
import { expect, test } from 'bun:test';
import { createClock } from '../../../src/system/clock.ts';

const clock = createClock();

test('a timer fires once, and the shorter delay first', async () => {
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

test('a cancelled timer never fires, and a delay of a month does not fire at once', async () => {
  const seen: string[] = [];
  const done = Promise.withResolvers<void>();
  clock.after(10, () => seen.push('cancelled'))();
  const cancelMonth = clock.after(2 ** 31 + 5, () => seen.push('month'));
  clock.after(40, done.resolve);
  await done.promise;
  cancelMonth();
  expect(seen).toEqual([]);
});

test('the wall clock is in milliseconds', () => {
  expect(clock.now()).toBeGreaterThan(Date.parse('2025-01-01'));
});
