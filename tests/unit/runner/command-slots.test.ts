/**
 * Promises: a limited number of heavy commands runs at once, those of the longest chains first, and a command that is
 * stopped while it waits leaves the queue at once.
 */
import { expect, test } from 'bun:test';
import { CommandSlots, type SlotRequest } from '../../../src/worker/attempt/command-slots.ts';

/** Slots with commands that run until the test ends them, and the names of those that started. */
function ground(atOnce = 1, chains: Record<string, number> = {}) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const stops = new Map<string, () => void>();
  const slots = new CommandSlots({ atOnce: () => atOnce, chainOf: (id) => chains[id] ?? 1 });
  const take = (sessionId: string, more: Partial<SlotRequest> = {}): Promise<string | null> => {
    const end = Promise.withResolvers<string>();
    ends.set(sessionId, end);
    const onStop = (withdraw: () => void) => void stops.set(sessionId, withdraw);
    return slots.take({ sessionId, command: 'accept', onStop, ...more }, () => {
      begun.push(sessionId);
      return end.promise;
    });
  };
  const end = async (sessionId: string) => {
    ends.get(sessionId)?.resolve(sessionId);
    await settled();
  };
  return { slots, chains, begun, take, end, fail: (id: string) => ends.get(id)?.reject(new Error(id)), stops };
}
/** Waits until all reactions to earlier events have happened. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('heavy commands run up to the limit, and equal ones start in order of arrival', async () => {
  const { begun, take, end } = ground(2);
  const all = ['a', 'b', 'c', 'd'].map((id) => take(id));
  await settled();
  expect(begun).toEqual(['a', 'b']);
  await end('b');
  expect(begun).toEqual(['a', 'b', 'c']);
  await end('a');
  await end('c');
  await end('d');
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
});

test('the command of the longest chain gets the next command slot', async () => {
  const { begun, take, end } = ground(1, { c: 2, d: 3 });
  const all = ['a', 'b', 'c', 'd'].map((id) => take(id));
  await settled();
  for (const id of ['a', 'd', 'c', 'b']) await end(id);
  await Promise.all(all);
  expect(begun).toEqual(['a', 'd', 'c', 'b']);
});

test('a failed command rejects for its caller and frees its slot', async () => {
  const { begun, take, end, fail } = ground();
  const [a, b] = [take('a'), take('b')];
  fail('a');
  await expect(a).rejects.toThrow('a');
  await settled();
  expect(begun).toEqual(['a', 'b']);
  await end('b');
  expect(await b).toBe('b');
});

test('a waiting command that is withdrawn never starts, and a started one keeps its slot until it ends', async () => {
  const { slots, begun, take, end, stops } = ground();
  const [a, b, c] = [take('a'), take('b'), take('c')];
  stops.get('b')?.();
  expect(await b).toBeNull();
  expect(slots.isWaiting('b')).toBe(false);
  stops.get('a')?.();
  await settled();
  expect(begun).toEqual(['a']);
  await end('a');
  expect(await a).toBe('a');
  expect(begun).toEqual(['a', 'c']);
  await end('c');
  await c;
});

test('no command starts during a freeze, and none starts after the slots are closed', async () => {
  const { slots, begun, take, end } = ground();
  slots.halt(true);
  const all = [take('a'), take('b')];
  await settled();
  expect(begun).toEqual([]);
  slots.halt(false);
  await settled();
  expect(begun).toEqual(['a']);
  slots.close();
  await end('a');
  expect(await Promise.all([...all, take('c'), take('d', { turn: 'app' })])).toEqual(['a', null, null, null]);
  expect(begun).toEqual(['a']);
});

test('a waiting command is reported at each change of the queue, with the commands that hold slots', async () => {
  const { slots, take, end } = ground();
  const told: [string, string | undefined][] = [];
  slots.onChange = (id) => told.push([id, slots.waitOf(id)?.heldBy[0]?.sessionId]);
  const all = [take('a'), take('b', { command: 'setup' })];
  expect(slots.waitOf('b')).toEqual({
    command: 'setup',
    atOnce: 1,
    heldBy: [{ sessionId: 'a', command: 'accept' }],
  });
  expect(told.at(-1)).toEqual(['b', 'a']);
  await end('a');
  await end('b');
  await Promise.all(all);
  expect(told.at(-1)).toEqual(['b', undefined]);
});
