/**
 * Promises: a log cut at any byte loads as a prefix of its events and can be appended to; damage before the end is
 * refused with its line and nothing is changed; a failed append leaves nothing that a later one is glued to.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import { ok } from '../../../src/core/failure.ts';
import { createLog, readForWriting, readLog } from '../../../src/store/event-log.ts';
import { eventLines, headerLine } from '../../../src/store/log-lines.ts';
import { makeFifo } from '../../../src/system/libc.ts';
import type { World } from '../../../src/system/world.ts';
import { CoreLog, groupId } from '../../support/core-events.ts';
import { isLongRun } from '../../support/long.ts';
import { faultyFiles, steppedWorld, temporaryFolder, unwrap } from '../../support/store-world.ts';
import { storyBodies } from '../../support/stored-group.ts';

const events: readonly GroupEvent[] = new CoreLog().add(...storyBodies).events;
const whole = Buffer.from(headerLine(groupId) + eventLines(events));
const headerBytes = Buffer.byteLength(headerLine(groupId));
const extra = new CoreLog().add(...storyBodies).next({ type: 'group_archived' });

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
const world = steppedWorld();

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'events.jsonl');
});
afterEach(() => folder.remove());

/** How many of the events are whole in the first `size` bytes. */
function wholeEvents(size: number): number {
  return [...whole.subarray(0, size)].filter((byte) => byte === 0x0a).length - 1;
}

/** As a writer opens it. */
function openLog(world: World, path: string) {
  const read = readForWriting(world, path);
  return read.ok ? ok({ log: read.value.open(), events: read.value.events }) : read;
}

describe('a log cut at any byte', () => {
  test('loads as a prefix, ends in a whole line and takes further events', () => {
    for (let size = headerBytes; size <= whole.length; size += isLongRun ? 1 : 3) {
      writeFileSync(path, whole.subarray(0, size));
      const expected = events.slice(0, wholeEvents(size));
      expect(unwrap(readLog(world, path))).toEqual(expected);
      expect(readFileSync(path).length).toBe(size);

      const { log, events: loaded } = unwrap(openLog(world, path));
      expect(loaded).toEqual(expected);
      expect(readFileSync(path)).toEqual(Buffer.from(headerLine(groupId) + eventLines(expected)));

      const next = { ...extra, seq: expected.length + 1 };
      log.append([next]);
      expect(log.size).toBe(readFileSync(path).length);
      log.close();
      expect(unwrap(readLog(world, path))).toEqual([...expected, next]);
    }
  });

  test('is refused when not even the header is whole, and stays as it is', () => {
    for (let size = 0; size < headerBytes; size++) {
      writeFileSync(path, whole.subarray(0, size));
      expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
      expect(readFileSync(path).length).toBe(size);
    }
  });

  test.each([
    ['zeros of a power cut', Buffer.alloc(300)],
    ['a damaged line with its newline', Buffer.from('{"seq":17,"at"\n')],
    ['several damaged lines', Buffer.from('\n\u0000\n{}\n')],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22, 0x0a])],
  ])('loses only %s at its end', (_, garbage) => {
    writeFileSync(path, Buffer.concat([whole, garbage]));
    expect(unwrap(readLog(world, path))).toEqual([...events]);
    unwrap(openLog(world, path)).log.close();
    expect(readFileSync(path)).toEqual(whole);
  });
});

describe('a log that is taken away from its writer', () => {
  test.each([
    ['removed', () => rmSync(path)],
    ['removed', () => rmSync(folder.path, { recursive: true })],
    ['replaced or cut off', () => writeFileSync(path, '')],
    ['replaced or cut off', () => truncateSync(path, whole.length - 1)],
    ['replaced or cut off', () => rmSync(path, { recursive: true }) ?? mkdirSync(path)],
    ['replaced or cut off', () => rmSync(path) ?? symlinkSync('events.jsonl', path)],
    ['replaced or cut off', () => rmSync(path) ?? symlinkSync('nowhere', path)],
    ['replaced or cut off', () => renameSync(path, `${path}.old`) ?? copyFileSync(`${path}.old`, path)],
  ])('is noticed when it is %s, and nothing is written', (what, takeAway) => {
    writeFileSync(path, whole);
    const { log } = unwrap(openLog(world, path));
    expect(log.lost).toBeNull();
    takeAway();
    const message = `The event log ${path} was ${what} while it was being written.`;
    expect(log.lost).toMatchObject({ failure: { reason: 'gone', message } });
    const size = () => lstatSync(path, { throwIfNoEntry: false })?.size;
    const before = size();
    expect(() => log.append([extra])).toThrow(message);
    expect(size()).toBe(before as number);
    log.close();
  });

  test('is not taken for lost when the system does not answer', () => {
    writeFileSync(path, whole);
    const files = { ...world.files };
    const { log } = unwrap(openLog({ ...world, files }, path));
    files.info = () => {
      throw new Error('EIO');
    };
    expect(log.lost).toBeNull();
    log.close();
  });
});

describe('F8: bytes of others in a log that is written', () => {
  const foreign = (): string => readFileSync(`${path}.foreign`, 'utf8');

  test.each([
    ['rubbish', 'rubbish\n'],
    ['half a line', '{"seq":'],
    ['bytes that are no text', Buffer.from([0xff, 0x00, 0x0a])],
    ['the line of a good event', `${JSON.stringify({ ...extra, at: '2026-01-04T14:30:22.000Z' })}\n`],
    ['two megabytes', 'x'.repeat(2 * 1024 * 1024)],
  ])('%s: are moved aside before the next line is written', (_, bytes) => {
    writeFileSync(path, whole);
    const { log } = unwrap(openLog(world, path));
    appendFileSync(path, bytes);
    log.append([extra]);
    expect([log.takeForeign(), log.takeForeign()]).toEqual([Buffer.byteLength(bytes), 0]);
    log.close();
    expect(readFileSync(path).subarray(0, whole.length)).toEqual(whole);
    expect(unwrap(readLog(world, path)).at(-1)).toEqual(extra);
    const kept = Buffer.from(bytes)
      .subarray(0, 1024 * 1024)
      .toString();
    expect(foreign().startsWith(kept)).toBe(true);
  });

  test('are moved aside when they come while the line is written', () => {
    writeFileSync(path, whole);
    const files = { ...world.files };
    files.openAppend = (name) => {
      const file = world.files.openAppend(name);
      const { append } = file;
      let times = 0;
      file.append = (text) => {
        times += 1;
        if (times === 1 && name === path) appendFileSync(path, 'rubbish\n');
        append.call(file, text);
      };
      return file;
    };
    const { log } = unwrap(openLog({ ...world, files }, path));
    log.append([extra]);
    expect(log.takeForeign()).toBe(8);
    log.close();
    expect(unwrap(readLog(world, path)).at(-1)).toEqual(extra);
  });

  test('are moved aside at the end, and a place that is taken by a FIFO is passed over', () => {
    writeFileSync(path, whole);
    const { log } = unwrap(openLog(world, path));
    makeFifo(`${path}.foreign`, 0o600);
    appendFileSync(path, 'rubbish\n');
    log.close();
    expect(readFileSync(path)).toEqual(whole);
  });

  test('a log whose last line was overwritten takes nothing more', () => {
    writeFileSync(path, whole);
    const { log } = unwrap(openLog(world, path));
    log.append([extra]);
    const fd = openSync(path, 'r+');
    writeSync(fd, 'rubbish', whole.length + 3);
    closeSync(fd);
    expect(() => log.append([{ ...extra, seq: extra.seq + 1 }])).toThrow('was overwritten while it was being written');
    log.close();
  });
});

describe('F8: bytes of others in a log that nobody writes', () => {
  const others = '{"seq":99,"type":"foreign"}\nmore\n';

  test.each([
    ['whole lines go aside, and half a line behind them is a torn end', `${others}{"seq":`, others],
    ['a torn end to which whole lines were glued goes aside with them', `{"seq":${others}`, `{"seq":${others}`],
    ['a torn end alone is cut', '{"seq":', null],
  ])('%s', (_, bytes, aside) => {
    writeFileSync(path, Buffer.concat([whole, Buffer.from(bytes)]));
    const { log } = unwrap(openLog(world, path));
    expect(log.takeForeign()).toBe(aside?.length ?? 0);
    log.append([extra]);
    expect(log.close()).toBe(0);
    expect(unwrap(readLog(world, path))).toEqual([...events, extra]);
    expect(existsSync(`${path}.foreign`) ? readFileSync(`${path}.foreign`, 'utf8') : null).toBe(aside && `${aside}\n`);
  });

  test('go aside as well when nothing is written', () => {
    writeFileSync(path, Buffer.concat([whole, Buffer.from(others)]));
    expect(unwrap(openLog(world, path)).log.close()).toBe(others.length);
    expect(readFileSync(path)).toEqual(whole);
    expect(readFileSync(`${path}.foreign`, 'utf8')).toBe(`${others}\n`);
  });
});

test('an event with a field that this version does not know is read', () => {
  const later = { ...extra, colour: 'green' };
  writeFileSync(path, `${whole.toString()}${JSON.stringify(later)}\n`);
  expect(unwrap(readLog(world, path))).toEqual([...events, later]);
});

describe('damage before the end', () => {
  const lines = whole.toString().trimEnd().split('\n');
  const replaced = (index: number, line: string): string => `${lines.with(index, line).join('\n')}\n`;
  const renumbered = (index: number, seq: number): string =>
    replaced(index, JSON.stringify({ ...JSON.parse(lines[index] as string), seq }));

  test.each([
    ['a torn line', replaced(4, '{"seq":4,'), 5],
    ['an empty line', replaced(7, ''), 8],
    ['a line too few', `${lines.toSpliced(6, 1).join('\n')}\n`, 7],
    ['a line twice', `${lines.toSpliced(6, 0, lines[6] as string).join('\n')}\n`, 8],
    ['a wrong number at the very end', renumbered(16, 99), 17],
    ['a line of another group', replaced(3, (lines[3] as string).replaceAll(groupId, '20260102-030405-other')), 4],
    ['a header that is none', replaced(0, '{}'), 1],
    ['a torn end besides', `${replaced(4, '{"seq":4,')}{"seq":`, 5],
  ])('is refused with its line: %s', (_, text, line) => {
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
    [
      'an event with a value that is unknown, even as the last one',
      `${lines.join('\n')}\n${JSON.stringify({ ...extra, type: 'group_pausing', reason: 'user', mode: 'softly' })}\n`,
    ],
    ['an event without its fields', `${lines.join('\n')}\n${JSON.stringify({ ...extra, type: 'group_paused' })}\n`],
    ['a session id that leaves the folder', replaced(2, (lines[2] as string).replaceAll('001-', '../../001-'))],
  ])('of a newer version is told apart and kept: %s', (_, text) => {
    writeFileSync(path, text);
    expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'newer-version' } });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('a missing file is a failure', () => {
    expect(openLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
    expect(readLog(world, path)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
  });
});

test('a new log is with the disk before anybody is told of it', () => {
  const durable: unknown[] = [];
  const writeAtomic: typeof world.files.writeAtomic = (to, text, options) => {
    durable.push(options?.durable);
    world.files.writeAtomic(to, text, options);
  };
  createLog({ ...world, files: { ...world.files, writeAtomic } }, path, groupId, events.slice(0, 1)).close();
  expect(durable).toEqual([true]);
});

describe('an append that fails', () => {
  const batch = events.slice(1, 4);
  for (const [what, call] of [
    ['the write', 3],
    ['the fsync', 4],
  ] as const) {
    test(`at ${what} leaves no half event, and the next one goes well`, () => {
      const faulty = faultyFiles(world.files);
      const log = createLog({ ...world, files: faulty.files }, path, groupId, events.slice(0, 1));
      const size = log.size;
      faulty.fault = { call, how: 'fails', code: 'ENOSPC' };
      expect(() => log.append(batch)).toThrow('ENOSPC');
      expect(log.size).toBe(size);
      expect(readFileSync(path).length).toBe(size);
      log.append(batch);
      log.close();
      expect(unwrap(readLog(world, path))).toEqual(events.slice(0, 4));
    });
  }

  test('is taken back to the byte, whatever letters stand before it', () => {
    const faulty = faultyFiles(world.files);
    const log = createLog({ ...world, files: faulty.files }, path, groupId, events.slice(0, 1));
    const answer = { type: 'request_answered', requestId: 'ü', done: false, message: 'Größe: 5 €, 日本' } as const;
    log.append([new CoreLog().next(answer)]);
    const before = readFileSync(path);
    expect(log.size).toBe(before.length);
    faulty.fault = { call: faulty.calls.length + 1, how: 'fails', code: 'ENOSPC' };
    expect(() => log.append(batch)).toThrow('ENOSPC');
    expect(readFileSync(path).equals(before)).toBe(true);
    log.close();
  });

  test('and cannot be taken back closes the log for further events; the next open cuts it', () => {
    const faulty = faultyFiles(world.files);
    const log = createLog({ ...world, files: faulty.files }, path, groupId, events.slice(0, 1));
    faulty.fault = { call: 3, how: 'dies', code: 'ENOSPC' };
    expect(() => log.append(batch)).toThrow('ENOSPC');
    faulty.fault = null;
    expect(() => log.append(batch)).toThrow('takes nothing more');
    log.close();
    const { log: again, events: loaded } = unwrap(openLog(world, path));
    again.append(events.slice(loaded.length, 4));
    again.close();
    expect(unwrap(readLog(world, path))).toEqual(events.slice(0, 4));
  });

  test('is refused before the write when the event could not be read again', () => {
    const log = createLog(world, path, groupId, events.slice(0, 1));
    const size = log.size;
    const spoilt = { ...events[9], usage: Number.NaN } as GroupEvent;
    expect(() => log.append([spoilt])).toThrow('could not be read again');
    expect(readFileSync(path).length).toBe(size);
    log.close();
  });
});
