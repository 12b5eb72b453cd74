/** Promises: news are taken in by their numbers, each once, whatever order they come in and however often. */
import { expect, test } from 'bun:test';
import { NewsInOrder } from '../../../src/fleet/late.ts';
import type { AttemptNews } from '../../../src/fleet/wire.ts';
import { fc } from '../../support/core-check.ts';

const printed = (offset: number): AttemptNews => ({ say: 'printed', offset, data: new Uint8Array(0) });
const ran = (id: string): AttemptNews => ({ say: 'ran', id, exitCode: 0, timedOut: false, output: '' });
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

function hearer(first: number | null, isRefused: () => boolean = () => false) {
  const taken: string[] = [];
  const dropped: number[] = [];
  const later: (() => void)[] = [];
  const acknowledged: number[] = [];
  let synced = 0;
  const news = new NewsInOrder(
    {
      takeIn: async (one) => {
        await settled();
        if (isRefused()) return false;
        taken.push(one.say === 'printed' ? `printed ${one.offset}` : one.say === 'ran' ? one.id : one.say);
        return true;
      },
      sync: () => {
        synced = taken.length;
      },
      acknowledge: (through) => {
        // What is told to be here is safe.
        expect(synced).toBe(taken.length);
        acknowledged.push(through);
      },
      later: (action) => later.push(action),
    },
    first,
  );
  return { news, taken, dropped, later, acknowledged };
}

test('in any order, and repeated', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 60 }), async (order) => {
      const { news, taken } = hearer(0);
      const there = order.map((n) => ({ n, isThere: true }));
      for (const entry of there) {
        const { n } = entry;
        news.hear(n, n % 3 === 0 ? ran(String(n)) : printed(n), () => {
          entry.isThere = false;
        });
        if (n % 2 === 0) await settled();
      }
      for (let turns = 0; turns < 60; turns += 1) await settled();
      let last = 0;
      while (order.includes(last + 1)) last += 1;
      const wanted = Array.from({ length: last }, (_, index) => index + 1);
      expect(taken).toEqual(wanted.map((n) => (n % 3 === 0 ? String(n) : `printed ${n}`)));
      // What was not taken in stays where it is, for a later runner; once is enough.
      const left = there.filter(({ isThere }) => isThere).map(({ n }) => n);
      expect(left.toSorted()).toEqual([...new Set(order)].filter((n) => n > last).toSorted());
    }),
  );
});

test('after an earlier runner nothing is taken in before it is known what that had', async () => {
  const { news, taken, acknowledged } = hearer(null);
  news.hear(6, printed(6), () => {});
  news.hear(5, printed(5), () => {});
  await settled();
  expect(taken).toEqual([]);
  news.goOnFrom(4);
  for (let turns = 0; turns < 10; turns += 1) await settled();
  expect(taken).toEqual(['printed 5', 'printed 6']);
  expect(acknowledged.at(-1)).toBe(6);
});

test('what cannot be taken in now is tried again, and nothing goes before it', async () => {
  let isRefused = true;
  const { news, taken, later } = hearer(0, () => isRefused);
  news.hear(1, printed(0), () => {});
  news.hear(2, ran('two'), () => {});
  for (let turns = 0; turns < 10; turns += 1) await settled();
  expect(taken).toEqual([]);
  expect(later).toHaveLength(1);
  isRefused = false;
  later[0]?.();
  for (let turns = 0; turns < 10; turns += 1) await settled();
  expect(taken).toEqual(['printed 0', 'two']);
});

test('once it is stopped it tells what it had not taken in, and takes nothing more', async () => {
  const { news, taken } = hearer(0);
  news.hear(2, printed(2), () => {});
  expect(news.stop().map(([n]) => n)).toEqual([2]);
  news.hear(1, printed(1), () => {});
  await settled();
  expect(taken).toEqual([]);
});

test('what an earlier runner had taken in, and had not removed any more, is removed', async () => {
  const { news, taken, dropped } = hearer(null);
  for (const n of [3, 4, 5]) news.hear(n, printed(n), () => dropped.push(n));
  news.goOnFrom(4);
  for (let turns = 0; turns < 10; turns += 1) await settled();
  expect(taken).toEqual(['printed 5']);
  expect(dropped.toSorted()).toEqual([3, 4, 5]);
});
