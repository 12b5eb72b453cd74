/**
 * Promises: the table of a benchmark shows targets and misses, and counts missing peers. Not covered: the figures
 * themselves, which no test asserts.
 */
import { expect, test } from 'bun:test';
import { atMost, type Figure, formatMs, measured, missing } from '../../../bench/support/figures.ts';
import { inTurns } from '../../../bench/support/in-turns.ts';
import { renderTable, verdict } from '../../../bench/support/table.ts';

const figures: Figure[] = [
  { ...measured('ours', [30, 10, 20]), target: atMost(20, 15) },
  { what: 'theirs', value: formatMs(40), ratio: '2.00 × ours', target: atMost(2, 3, String) },
  missing('absent', ['nope']),
  { what: 'disk', value: formatMs(70), ratio: '2.50 × ours', aside: atMost(2.5, 3, String) },
];

test('a table has median, spread, target and verdict, and no empty column', () => {
  expect(renderTable(figures)).toEqual([
    '| what   |        median | spread                    | ratio       | target    | met   | note                   |',
    '|--------|--------------:|---------------------------|-------------|-----------|-------|------------------------|',
    '| ours   |       20.0 ms | 10.0 ms … 30.0 ms, 3 runs |             | ≤ 15.0 ms | NO    |                        |',
    '| theirs |       40.0 ms |                           | 2.00 × ours | ≤ 3       | yes   |                        |',
    '| absent | not installed |                           |             |           |       | nope not found on PATH |',
    '| disk   |       70.0 ms |                           | 2.50 × ours | (≤ 3)     | (yes) |                        |',
  ]);
  expect(renderTable([{ what: 'a', value: '1' }])[0]).toBe('| what | median |');
});

test('missed targets, extra figures and missing peers are repeated below the table', () => {
  expect(verdict(figures)).toEqual([
    '1 of 2 targets met; 1 peers not installed.',
    '- missed: ours: 20.0 ms (target ≤ 15.0 ms)',
    '- beside the targets: disk: 70.0 ms, 2.50 × ours (≤ 3 holds)',
    '- not installed: absent',
  ]);
});

test('contenders take turns, and one whose program is missing is absent', async () => {
  const turns: string[] = [];
  const contender = (name: string, needs: string[] = []) => ({ name, needs, run: () => turns.push(name) });
  const { taken, absent } = await inTurns([contender('a'), contender('b'), contender('c', ['no-such-program'])], 2);
  expect(turns).toEqual(['a', 'b', 'a', 'b']);
  expect([...taken]).toEqual([
    ['a', [1, 3]],
    ['b', [2, 4]],
  ]);
  expect(absent.map(({ what }) => what)).toEqual(['c']);
});
