/**
 * Promises: every line is reported once and in order, however it is split in writing and reading, and even without
 * file events. The file is opened once.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TranscriptFollower } from '../../../src/worker/attempt/transcript-follower.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder } from '../../support/store-world.ts';

const chunkBytes = 256 * 1024;
let folder: ReturnType<typeof temporaryFolder>;
let world: SteppedWorld;
let path: string;
let lines: string[];
let opened: number;
let closed: number;
let follower: TranscriptFollower;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'transcript.jsonl');
  writeFileSync(path, '');
  // No file events arrive, so that only the clock triggers reads.
  world = steppedWorld();
  const { openRead } = world.files;
  opened = 0;
  closed = 0;
  world.files.openRead = (wish) => {
    const file = openRead(wish);
    if (file === null) return null;
    opened += 1;
    const close = () => {
      closed += 1;
      file.close();
    };
    return { read: (...which) => file.read(...which), close };
  };
  lines = [];
  follower = new TranscriptFollower(world, { path, offset: 0, onLine: (line) => lines.push(line) });
});
afterEach(() => {
  follower.close();
  folder.remove();
});

test('without file events a line is read at the next poll, and a partial line when it is complete', () => {
  appendFileSync(path, 'one\ntw');
  world.clock.step(1_000);
  expect(lines).toEqual(['one']);
  appendFileSync(path, 'o\n');
  world.clock.step(1_000);
  expect(lines).toEqual(['one', 'two']);
  appendFileSync(path, 'rest');
  follower.finish();
  expect(lines).toEqual(['one', 'two', 'rest']);
});

test('the transcript file is opened once and closed at the end', () => {
  appendFileSync(path, 'one\n');
  world.clock.step(60_000);
  appendFileSync(path, 'two\n');
  follower.drain();
  expect([opened, closed]).toEqual([1, 0]);
  follower.finish();
  follower.close();
  expect([opened, closed, lines]).toEqual([1, 1, ['one', 'two']]);
});

test('a transcript that is created later is read from then on', () => {
  const later = join(folder.path, 'later.jsonl');
  const following = new TranscriptFollower(world, { path: later, offset: 0, onLine: (line) => lines.push(line) });
  world.clock.step(5_000);
  following.drain();
  appendFileSync(later, 'one\n');
  world.clock.step(2_000);
  expect(lines).toEqual(['one']);
  following.close();
});

test.each([chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes])(
  'a transcript of %d bytes is read to its end',
  (size) => {
    const line = 'x'.repeat(99);
    const whole = `${line}\n`.repeat(Math.floor(size / 100));
    appendFileSync(path, `${whole}${'y'.repeat(size - whole.length)}`);
    follower.finish();
    expect(lines.slice(0, -1).every((told) => told === line)).toBe(true);
    expect(lines.join('\n')).toHaveLength(size);
  },
);
