/** Promises: what ended attempts leave in memory is collected once for many of them, and at a calm moment only. */
import { expect, test } from 'bun:test';
import { endsEach, MemoryTidier } from '../../../src/system/machine.ts';

test('once for so many ends, however often the runner is idle meanwhile', () => {
  let collected = 0;
  const tidier = new MemoryTidier(() => {
    collected += 1;
  });
  const seen: number[] = [];
  for (let end = 1; end <= 2 * endsEach; end += 1) {
    tidier.noteEnd();
    if (end === endsEach) seen.push(collected);
    tidier.tidy();
    tidier.tidy();
    if (end === endsEach - 1 || end === endsEach) seen.push(collected);
  }
  expect(seen).toEqual([0, 0, 1]);
  expect(collected).toBe(2);
});

test('many that end at one moment are collected together', () => {
  let collected = 0;
  const tidier = new MemoryTidier(() => {
    collected += 1;
  });
  for (let end = 0; end < 3 * endsEach; end += 1) tidier.noteEnd();
  tidier.tidy();
  tidier.tidy();
  expect(collected).toBe(1);
});
