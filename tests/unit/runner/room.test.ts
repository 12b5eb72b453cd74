/**
 * Promises: workers start only while there is memory and disk for them, including recently started workers that have
 * not grown yet, and running workers stop before the disk is full.
 */
import { expect, test } from 'bun:test';
import { defaultGroupConfig } from '../../../src/core/group.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { watchRoom } from '../../../src/worker/attempt/worker-options.ts';

const worker = 120 * 1024 ** 2;
const config = { ...defaultGroupConfig, minFreeMemoryBytes: 1_000 };

/** The room on a host with this much free; the test moves `nowMs`. */
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

test('some memory is kept free, and starting workers count with their expected share', () => {
  const { starts } = machine(3 * worker + 1_000, 10 ** 12);
  expect([0, 1, 3, 4].map((starting) => starts(starting)?.starts)).toEqual([3, 2, 0, 0]);
  expect(machine(3 * worker + 999, 10 ** 12).starts(0)).toMatchObject({ starts: 2, reason: 'memory' });
});

test('no worker starts below half a gigabyte of free disk', () => {
  expect(machine(10 ** 12, 500 * 1000 ** 2 - 1).starts(0)).toMatchObject({ starts: 0, reason: 'disk' });
  expect(machine(10 ** 12, 500 * 1000 ** 2).starts(0)?.starts).toBeGreaterThan(0);
});

test('running workers are stopped below a quarter of a gigabyte of free disk', () => {
  expect(machine(0, 250 * 1000 ** 2).room.isDiskLow()).toBe(false);
  const { free, room } = machine(0, 250 * 1000 ** 2 - 1);
  expect(room.isDiskLow()).toBe(true);
  Object.assign(free, { disk: 10 ** 12, nowMs: 1_000 });
  expect(room.isDiskLow()).toBe(false);
  // Too late: an interruption could no longer be logged.
  const full = machine(0, 16 * 1000 ** 2 - 1).room;
  expect([full.isDiskLow(), full.isDiskFull()]).toEqual([false, true]);
});
