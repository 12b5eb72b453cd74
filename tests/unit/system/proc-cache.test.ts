/** Promises: nothing is read twice in a row but what may have changed, and nothing is believed for long. */
import { expect, spyOn, test } from 'bun:test';
import { ProcCache } from '../../../src/system/processes/proc-cache.ts';

/** A process table of which every read is noted. */
function table(parents: Record<number, number>) {
  const read: number[] = [];
  const environments: Record<number, Buffer> = {};
  let present: number[] = [];
  const cache = new ProcCache(
    () => present,
    (pid) => {
      read.push(pid);
      const parent = parents[pid];
      if (parent === undefined) return null;
      const entry = { pid, parent, session: 1, startTime: '1', zombie: false };
      return { entry, environment: environments[pid] ?? Buffer.from('MARK=x') };
    },
  );
  const again = () => {
    read.length = 0;
    const found = cache.look().map(({ entry }) => `${entry.pid} of ${entry.parent}`);
    return { found, read: [...read] };
  };
  const look = (...pids: number[]) => {
    present = pids;
    cache.forget();
    return again();
  };
  return { parents, environments, look, again };
}

test('a process is read once, one that lost its parent again, one that ended is gone', () => {
  const { parents, look } = table({ 1: 0, 5: 1, 6: 5 });
  const all = ['1 of 0', '5 of 1', '6 of 5'];
  expect(look(1, 5, 6)).toEqual({ found: all, read: [1, 5, 6] });
  expect(look(1, 5, 6)).toEqual({ found: all, read: [] });
  parents[6] = 1;
  expect(look(1, 6)).toEqual({ found: ['1 of 0', '6 of 1'], read: [6] });
  expect(look(1, 6, 7)).toEqual({ found: ['1 of 0', '6 of 1'], read: [7] });
});

test('a process in the middle of an exec, without an environment, is read again until it has one', () => {
  const { environments, look, again } = table({ 1: 0, 5: 1 });
  environments[5] = Buffer.alloc(0);
  expect(look(1, 5).read).toEqual([1, 5]);
  expect(again().read).toEqual([5]);
  delete environments[5];
  expect(again().read).toEqual([5]);
  expect(again().read).toEqual([]);
});

test('after a second everything is read again: a process may have begun a session of its own', () => {
  const now = spyOn(performance, 'now');
  try {
    const { look } = table({ 1: 0, 5: 1 });
    now.mockReturnValue(5_000);
    expect(look(1, 5).read).toEqual([1, 5]);
    now.mockReturnValue(5_999);
    expect(look(1, 5).read).toEqual([]);
    now.mockReturnValue(6_000);
    expect(look(1, 5).read).toEqual([1, 5]);
  } finally {
    now.mockRestore();
  }
});
