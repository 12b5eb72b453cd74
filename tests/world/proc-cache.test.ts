/** Promises: nothing is read twice in a row, and whoever lost its parent is read again. Not covered: time passing. */
import { expect, test } from 'bun:test';
import { ProcCache } from '../../src/world/proc-cache.ts';

/** A process table of which every read is noted. */
function table(parents: Record<number, number>) {
  const read: number[] = [];
  const environments: Record<number, Buffer> = {};
  const entry = (pid: number) => {
    const parent = parents[pid];
    read.push(pid);
    return parent === undefined ? null : { pid, parent, session: 1, startTime: '1', zombie: false };
  };
  let present: number[] = [];
  const cache = new ProcCache(
    () => present,
    entry,
    (pid) => environments[pid] ?? Buffer.from('MARK=x'),
  );
  const look = (...pids: number[]) => {
    read.length = 0;
    present = pids;
    cache.forget();
    const found = cache.look().map((known) => `${known.entry.pid} of ${known.entry.parent}`);
    return { found, read: [...read] };
  };
  return { parents, environments, look };
}

test('a process is read once, one that lost its parent again, one that ended is gone', () => {
  const { parents, look } = table({ 1: 0, 5: 1, 6: 5 });
  const all = ['1 of 0', '5 of 1', '6 of 5'];
  expect(look(1, 5, 6)).toEqual({ found: all, read: [1, 5, 6] });
  expect(look(1, 5, 6)).toEqual({ found: all, read: [] });
  parents[6] = 1;
  expect(look(1, 6)).toEqual({ found: ['1 of 0', '6 of 1'], read: [6] });
  delete parents[7];
  expect(look(1, 6, 7)).toEqual({ found: ['1 of 0', '6 of 1'], read: [7] });
});

test('an environment that was empty once is read again, one that was empty twice is believed', () => {
  const { environments, look } = table({ 1: 0, 5: 1 });
  environments[5] = Buffer.alloc(0);
  look(1, 5);
  expect(look(1, 5).read).toEqual([5]);
  expect(look(1, 5).read).toEqual([]);
});
