/** U17. Promises: a first look at the benchmarks is over within a minute, and says what it left out. */
import { expect, test } from 'bun:test';
import { runThose } from '../../../bench/support/first-look.ts';

async function look(takesMs: Readonly<Record<string, number>>, isFirstLook: boolean) {
  let nowMs = 1_000;
  const ran: string[] = [];
  const run = async (name: string): Promise<void> => {
    ran.push(name);
    nowMs += takesMs[name] ?? 0;
  };
  const left = await runThose(Object.keys(takesMs), isFirstLook, () => nowMs, run);
  return { ran, left, tookMs: nowMs - 1_000 };
}

test('U17: nothing begins when time is up', async () => {
  expect(await look({ a: 1_000, b: 2_000, c: 3_000 }, true)).toMatchObject({ ran: ['a', 'b', 'c'], left: [] });
  const slow = { a: 20_000, b: 20_000, c: 20_000, d: 20_000 };
  expect(await look(slow, true)).toEqual({ ran: ['a', 'b'], left: ['c', 'd'], tookMs: 40_000 });
});

test('U17: what is asked for by name is measured, however long it takes', async () => {
  const slow = { a: 90_000, b: 90_000 };
  expect(await look(slow, false)).toMatchObject({ ran: ['a', 'b'], left: [] });
});
