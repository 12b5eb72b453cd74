/**
 * Promises: a log cut at any byte loads as a prefix of its events and accepts new ones. Damage before the end is
 * refused with its line and changes nothing, and a failed append leaves no partial line.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { copyFileSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import { ok } from '../../../src/core/failure.ts';
import { createLog, eventLines, headerLine, readForWriting, readLog } from '../../../src/store/event-log.ts';
import type { World } from '../../../src/system/world.ts';
import { CoreLog, groupId } from '../../support/core-events.ts';
import { isLongRun } from '../../support/long.ts';
import { faultyFiles, steppedWorld } from '../../support/store-world.ts';
import { storyBodies } from '../../support/stored-group.ts';
import { expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const events: readonly GroupEvent[] = new CoreLog().add(...storyBodies).events;
const whole = Buffer.from(headerLine(groupId) + eventLines(events));
const headerBytes = Buffer.byteLength(headerLine(groupId));
const extra = new CoreLog().add(...storyBodies).next({ type: 'group_archived' });

const folder = withTempFolder();
let path: string;
const world = steppedWorld();

beforeEach(() => {
  path = join(folder.path, 'events.jsonl');
});

/** The number of complete events in the first `size` bytes. */
function wholeEvents(size: number): number {
  return [...whole.subarray(0, size)].filter((byte) => byte === 0x0a).length - 1;
}

/** Opens the log as a writer does. */
function openLog(world: World, path: string) {
  const read = readForWriting(world, path);
  return read.ok ? ok({ log: read.value.open(), events: read.value.events }) : read;
}

describe('a log cut at any byte', () => {
  test('a log cut at any byte loads as a prefix, ends in a whole line and accepts new events', () => {
    for (let size = headerBytes; size <= whole.length; size += isLongRun ? 1 : 3) {
      writeFileSync(path, whole.subarray(0, size));
      const expected = events.slice(0, wholeEvents(size));
      expect(expectOk(readLog(world, path))).toEqual(expected);
      expect(readFileSync(path).length).toBe(size);

      const { log, events: loaded } = expectOk(openLog(world, path));
      expect(loaded).toEqual(expected);
      expect(readFileSync(path)).toEqual(Buffer.from(headerLine(groupId) + eventLines(expected)));

      const next = { ...extra, seq: expected.length + 1 };
      log.append([next]);
      log.close();
      expect(expectOk(readLog(world, path))).toEqual([...expected, next]);
    }
  });

  test('a log without a whole header is refused and stays unchanged', () => {
    for (let size = 0; size < headerBytes; size++) {
      writeFileSync(path, whole.subarray(0, size));
      expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
      expect(readFileSync(path).length).toBe(size);
    }
  });

  test.each([
    ['zeros of a power cut', Buffer.alloc(300)],
    ['a line without its newline', Buffer.from('{"seq":17,"at"')],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('a log with %s at its end loses only these', (_, garbage) => {
    writeFileSync(path, Buffer.concat([whole, garbage]));
    expect(expectOk(readLog(world, path))).toEqual([...events]);
    expectOk(openLog(world, path)).log.close();
    expect(readFileSync(path)).toEqual(whole);
  });
});

describe('a log that disappears under its writer', () => {
  test.each([
    ['removed', () => rmSync(path)],
    ['removed with its folder', () => rmSync(folder.path, { recursive: true })],
    ['replaced', () => renameSync(path, `${path}.old`) ?? copyFileSync(`${path}.old`, path)],
  ])('the writer notices that its log is %s, and writes nothing', (_, takeAway) => {
    writeFileSync(path, whole);
    const { log } = expectOk(openLog(world, path));
    expect(log.lost).toBeNull();
    takeAway();
    const message = `The event log ${path} was removed or replaced while it was being written.`;
    expect(log.lost).toMatchObject({ failure: { reason: 'gone', message } });
    const size = () => lstatSync(path, { throwIfNoEntry: false })?.size;
    const before = size();
    expect(() => log.append([extra])).toThrow(message);
    expect(size()).toBe(before as number);
    log.close();
  });
});

describe('damage before the end of a log', () => {
  const lines = whole.toString().trimEnd().split('\n');
  const replaced = (index: number, line: string): string => `${lines.with(index, line).join('\n')}\n`;
  const renumbered = (index: number, seq: number): string =>
    replaced(index, JSON.stringify({ ...JSON.parse(lines[index] as string), seq }));

  test.each([
    ['a partial line', replaced(4, '{"seq":4,'), 5],
    ['an empty line', replaced(7, ''), 8],
    ['a missing line', `${lines.toSpliced(6, 1).join('\n')}\n`, 7],
    ['a duplicate line', `${lines.toSpliced(6, 0, lines[6] as string).join('\n')}\n`, 8],
    ['a wrong number at the very end', renumbered(16, 99), 17],
    ['a line of another group', replaced(3, (lines[3] as string).replaceAll(groupId, '20260102-030405-other')), 4],
    ['an invalid header', replaced(0, '{}'), 1],
    ['a session id that leaves the folder', replaced(2, (lines[2] as string).replaceAll('001-', '../../001-')), 3],
    ['bytes that are no JSON, even at the very end', `${lines.join('\n')}\n{"seq":17,"at"\n`, lines.length + 1],
    ['a partial line at the end besides', `${replaced(4, '{"seq":4,')}{"seq":`, 5],
  ])('a damaged log is refused with its line: %s', (_, text, line) => {
    writeFileSync(path, text);
    for (const outcome of [openLog(world, path), readLog(world, path)]) {
      expect(outcome).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
      if (!outcome.ok) expect(outcome.failure.message).toStartWith(`Line ${line} of ${path} `);
    }
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test.each([
    ['a newer header', replaced(0, JSON.stringify({ type: 'header', version: 9, groupId }))],
    [
      'an unknown event, even as the last one',
      `${lines.join('\n')}\n${JSON.stringify({ ...extra, type: 'group_sold' })}\n`,
    ],
  ])('a log of a newer version is recognised and kept: %s', (_, text) => {
    writeFileSync(path, text);
    expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'newer-version' } });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('loading a missing log fails', () => {
    expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
    expect(readLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
  });
});

test('a new log is synced to disk before it is announced', () => {
  const durable: unknown[] = [];
  const writeAtomic: typeof world.files.writeAtomic = (to, text, options) => {
    durable.push(options?.durable);
    world.files.writeAtomic(to, text, options);
  };
  createLog({ ...world, files: { ...world.files, writeAtomic } }, path, groupId, events.slice(0, 1)).close();
  expect(durable).toEqual([true]);
});

describe('failed append', () => {
  const batch = events.slice(1, 4);
  for (const [what, call] of [
    ['the write', 3],
    ['the fsync', 4],
  ] as const) {
    test(`an append that fails at ${what} leaves no partial event, and the next append succeeds`, () => {
      const faulty = faultyFiles(world.files);
      const log = createLog({ ...world, files: faulty.files }, path, groupId, events.slice(0, 1));
      const { length: size } = readFileSync(path);
      faulty.fault = { call, how: 'fails', code: 'ENOSPC' };
      expect(() => log.append(batch)).toThrow('ENOSPC');
      expect(readFileSync(path).length).toBe(size);
      log.append(batch);
      log.close();
      expect(expectOk(readLog(world, path))).toEqual(events.slice(0, 4));
    });
  }

  test('a failed append that cannot be undone closes the log, and the next open cuts it', () => {
    const faulty = faultyFiles(world.files);
    const log = createLog({ ...world, files: faulty.files }, path, groupId, events.slice(0, 1));
    faulty.fault = { call: 3, how: 'dies', code: 'ENOSPC' };
    expect(() => log.append(batch)).toThrow();
    faulty.fault = null;
    expect(() => log.append(batch)).toThrow('nothing more can be written');
    log.close();
    const { log: again, events: loaded } = expectOk(openLog(world, path));
    again.append(events.slice(loaded.length, 4));
    again.close();
    expect(expectOk(readLog(world, path))).toEqual(events.slice(0, 4));
  });
});
