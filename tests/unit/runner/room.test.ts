/**
 * Promises: no worker starts that memory or disk has no room for, those counted that have not grown yet, and none
 * runs on into a full disk.
 */
import { expect, test } from 'bun:test';
import { defaultGroupConfig } from '../../../src/core/group.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { watchRoom } from '../../../src/worker/attempt/worker-options.ts';

const worker = 120 * 1024 ** 2;
const config = { ...defaultGroupConfig, minFreeMemoryBytes: 1_000 };

/** What the room is on a host with so much free; `nowMs` is moved by the test. */
function machine(memory: number, disk: number) {
  const real = createRealWorld();
  const free = { memory, disk, nowMs: 0 };
  const room = watchRoom(
    {
      ...real,
      clock: { ...real.clock, now: () => free.nowMs },
      machine: { ...real.machine, freeMemoryBytes: () => free.memory },
      files: { ...real.files, freeBytes: () => free.disk },
    },
    '/data',
  );
  return { free, room, starts: (starting: number) => room.forStarts(config, starting) };
}

test('memory is kept free, and what is just starting has its share already', () => {
  const { starts } = machine(3 * worker + 1_000, 10 ** 12);
  expect([0, 1, 3, 4].map((starting) => starts(starting)?.starts)).toEqual([3, 2, 0, 0]);
  expect(machine(3 * worker + 999, 10 ** 12).starts(0)).toMatchObject({ starts: 2, reason: 'memory' });
});

test('nothing starts below half a gigabyte of disk', () => {
  expect(machine(10 ** 12, 500 * 1000 ** 2 - 1).starts(0)).toMatchObject({ starts: 0, reason: 'disk' });
  expect(machine(10 ** 12, 500 * 1000 ** 2).starts(0)?.starts).toBeGreaterThan(0);
});

test('what runs is stopped below a quarter of a gigabyte, long before the last byte', () => {
  expect(machine(0, 250 * 1000 ** 2).room.isDiskLow()).toBe(false);
  const { free, room } = machine(0, 250 * 1000 ** 2 - 1);
  expect(room.isDiskLow()).toBe(true);
  Object.assign(free, { disk: 10 ** 12, nowMs: 1_000 });
  expect(room.isDiskLow()).toBe(false);
  // Too late: what is interrupted now could not even be logged.
  const full = machine(0, 16 * 1000 ** 2 - 1).room;
  expect([full.isDiskLow(), full.isDiskFull()]).toEqual([false, true]);
});
