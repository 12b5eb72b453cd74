/**
 * Promises: a follower reports every event once and in order, and waits for the end of partial lines. Withdrawn
 * events cause a restart from the beginning, and damage or deletion ends it with a message.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import type { Failure } from '../../../src/core/failure.ts';
import { eventLines, followLog, headerLine } from '../../../src/store/event-log.ts';
import { CoreLog, groupId } from '../../support/core-events.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder } from '../../support/store-world.ts';
import { storyBodies } from '../../support/stored-group.ts';

const events: readonly GroupEvent[] = new CoreLog().add(...storyBodies).events;
const header = headerLine(groupId);

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let world: SteppedWorld;
let told: GroupEvent[];
let starts: number;
let problems: Failure[];
let end: () => void;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'events.jsonl');
  world = steppedWorld();
  told = [];
  starts = 0;
  problems = [];
  end = () => {};
});
afterEach(() => {
  end();
  folder.remove();
});

function follow(from?: number): void {
  const onEvents = (some: GroupEvent[], isFresh: boolean): void => {
    if (isFresh) {
      told = [];
      starts += 1;
    }
    told.push(...some);
  };
  end = followLog(world, path, onEvents, (failure) => problems.push(failure), from).close;
}

test('a follower reports existing events and then every new one in order, however the bytes arrive', () => {
  const bytes = Buffer.from(header + eventLines(events));
  writeFileSync(path, '');
  follow();
  expect(told).toEqual([]);
  const pieceBytes = 37;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    appendFileSync(path, bytes.subarray(at, at + pieceBytes));
    world.clock.step(500);
    const lines = [...bytes.subarray(0, at + pieceBytes)].filter((byte) => byte === 0x0a).length;
    expect(told.length).toBe(Math.max(0, lines - 1));
  }
  expect(told).toEqual([...events]);
  expect({ problems, starts }).toEqual({ problems: [], starts: 0 });
});

test('a follower continues after a new writer cut off a partial line', () => {
  const good = header + eventLines(events.slice(0, 5));
  writeFileSync(path, `${good}{"seq":6,"at":"torn`);
  follow();
  world.clock.step(500);
  expect(told).toEqual(events.slice(0, 5));
  truncateSync(path, Buffer.byteLength(good));
  appendFileSync(path, eventLines(events.slice(5)));
  world.clock.step(500);
  expect(told).toEqual([...events]);
  expect({ problems, starts }).toEqual({ problems: [], starts: 0 });
});

test('a follower starts over when events were withdrawn', () => {
  const withdrawn = { ...events[3], at: '2026-01-02T03:04:05.678Z' } as GroupEvent;
  writeFileSync(path, header + eventLines([...events.slice(0, 3), withdrawn, ...events.slice(4, 6)]));
  follow();
  world.clock.step(0);
  writeFileSync(path, header + eventLines(events.slice(0, 4)));
  world.clock.step(500);
  expect(told).toEqual(events.slice(0, 4));
  expect({ problems, starts }).toEqual({ problems: [], starts: 1 });
});

test('a follower starts at a given byte, or at the beginning when no line ends there', () => {
  const before = header + eventLines(events.slice(0, 5));
  writeFileSync(path, header + eventLines(events));
  follow(Buffer.byteLength(before));
  world.clock.step(0);
  expect(told).toEqual(events.slice(5));
  end();
  told = [];
  follow(Buffer.byteLength(before) - 3);
  world.clock.step(0);
  expect(told).toEqual([...events]);
});

test('a follower waits for the end of a partial line and reports the number of a damaged one', () => {
  writeFileSync(path, `${header + eventLines(events.slice(0, 2))}{"seq":3`);
  follow();
  world.clock.step(500);
  expect({ told, problems }).toEqual({ told: events.slice(0, 2), problems: [] });
  appendFileSync(path, '\n');
  world.clock.step(500);
  expect(problems.map(({ reason }) => reason)).toEqual(['corrupt-file']);
  expect(problems[0]?.message).toStartWith('Line 4 of ');
  expect(world.clock.waiting).toBe(0);
});

test('a follower ends when the group is deleted, and reports nothing after its end', () => {
  writeFileSync(path, header);
  follow();
  world.clock.step(0);
  rmSync(path);
  world.clock.step(500);
  expect(problems.map(({ reason }) => reason)).toEqual(['gone']);
  writeFileSync(path, header + eventLines(events));
  world.clock.step(5_000);
  expect({ told, waiting: world.clock.waiting }).toEqual({ told: [], waiting: 0 });
});
