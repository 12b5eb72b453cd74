/**
 * Promises: every line is told once and in order whatever the pieces in which it was written and read, also without a
 * single hint; a file that has not grown is not read; what follows a read that failed is told at the next look.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TranscriptFollower } from '../../src/runner/transcript-follower.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder } from '../support/store-world.ts';

const chunkBytes = 1024 * 1024;
let folder: ReturnType<typeof temporaryFolder>;
let world: SteppedWorld;
let path: string;
let lines: string[];
let reads: number;
let isBroken: boolean;
let follower: TranscriptFollower;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'transcript.jsonl');
  writeFileSync(path, '');
  // No hints come: only the clock makes anything happen.
  world = steppedWorld();
  const { readBytes } = world.files;
  reads = 0;
  isBroken = false;
  world.files.readBytes = (...wish) => {
    reads += 1;
    if (isBroken) throw new Error('EIO');
    return readBytes(...wish);
  };
  lines = [];
  follower = new TranscriptFollower(world, { path, offset: 0, onLine: (line) => lines.push(line) });
});
afterEach(() => {
  follower.close();
  folder.remove();
});

test('without hints a line is told at the next look, half of one when the rest is there', () => {
  appendFileSync(path, 'one\ntw');
  world.clock.step(1_000);
  expect(lines).toEqual(['one']);
  appendFileSync(path, 'o\n');
  world.clock.step(500);
  expect(lines).toEqual(['one', 'two']);
  appendFileSync(path, 'rest');
  follower.finish();
  expect(lines).toEqual(['one', 'two', 'rest']);
});

test('as long as hints come, looks are rare; one that finds what no hint told of is followed by others soon', () => {
  const { info } = world.files;
  let looks = 0;
  world.files.info = (...wish) => {
    looks += 1;
    return info(...wish);
  };
  world.clock.step(10_000);
  looks = 0;
  world.clock.step(60_000);
  expect(looks).toBe(30);
  appendFileSync(path, 'one\n');
  world.clock.step(2_000);
  expect(lines).toEqual(['one']);
  looks = 0;
  world.clock.step(60_000);
  expect(looks).toBeGreaterThanOrEqual(118);
});

test('a file that has not grown is not read', () => {
  appendFileSync(path, 'one\n');
  world.clock.step(1_000);
  reads = 0;
  world.clock.step(60_000);
  expect(reads).toBe(0);
  appendFileSync(path, 'two\n');
  world.clock.step(500);
  expect([reads, lines]).toEqual([1, ['one', 'two']]);
});

test.each([chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes])(
  'a file of %d bytes is read to its end',
  (size) => {
    const line = 'x'.repeat(99);
    const whole = `${line}\n`.repeat(Math.floor(size / 100));
    appendFileSync(path, `${whole}${'y'.repeat(size - whole.length)}`);
    follower.finish();
    expect(lines.slice(0, -1).every((told) => told === line)).toBe(true);
    expect(lines.join('\n')).toHaveLength(size);
  },
);

test('what a disk did not give is told when it does', () => {
  isBroken = true;
  appendFileSync(path, 'one\n');
  world.clock.step(2_000);
  expect(lines).toEqual([]);
  expect(() => follower.drain()).toThrow('EIO');
  isBroken = false;
  world.clock.step(500);
  expect(lines).toEqual(['one']);
});

test('after its end nothing is asked for', () => {
  follower.finish();
  appendFileSync(path, 'late\n');
  world.clock.step(5_000);
  expect(lines).toEqual([]);
  expect(world.clock.waiting).toBe(0);
});
