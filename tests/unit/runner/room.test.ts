/**
 * Promises: no worker starts that memory or disk has no room for, those counted that have not grown yet, and none
 * runs on into a full disk.
 */
import { expect, test } from 'bun:test';
import { defaultGroupConfig } from '../../../src/core/group.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { systemError } from '../../../src/system/system-error.ts';
import { watchRoom } from '../../../src/worker/attempt/worker-options.ts';

const worker = 120 * 1024 ** 2;
const config = { ...defaultGroupConfig, minFreeMemoryBytes: 1_000 };

/** What the room is on a machine with so much free; `nowMs` is moved by the test. */
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
  expect(machine(0, 16 * 1000 ** 2 - 1).room.isDiskLow()).toBe(false);
});

test('F15: nothing starts while the table of open files is full, nor with less than a start opens', () => {
  const real = createRealWorld();
  let left = 3;
  let nowMs = 0;
  const openRead = () => {
    if (left === 0) throw systemError(24, 'open', '/data');
    left -= 1;
    return { read: () => new Uint8Array(0), close: () => (left += 1) };
  };
  const files = { ...real.files, freeBytes: () => 10 ** 12, openRead };
  const room = watchRoom({ ...real, clock: { ...real.clock, now: () => nowMs }, files }, '/data');
  expect(room.forStarts(config, 0)).toMatchObject({ starts: 0, reason: 'files' });
  expect(left).toBe(3);
  left = 100;
  nowMs = 1_000;
  expect(room.forStarts(config, 0)?.reason).toBe('memory');
  expect(left).toBe(100);
});

test('the machine is asked again after a second', () => {
  const { free, starts } = machine(3 * worker + 1_000, 10 ** 12);
  expect(starts(0)?.starts).toBe(3);
  Object.assign(free, { memory: 0, nowMs: 999 });
  expect(starts(0)?.starts).toBe(3);
  free.nowMs = 1_000;
  expect(starts(0)?.starts).toBe(0);
});
