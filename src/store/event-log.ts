/**
 * events.jsonl: the source of truth about a group. One writer (the holder of runner.lock) appends; any process may read
 * or follow. After a crash or a full disk, appending continues after the last complete line.
 */

import { basename, dirname } from 'node:path';
import { type Advice, advise } from '../core/advice.ts';
import type { GroupEvent } from '../core/event.ts';
import { assert, errorText, type Failure, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { errorCode } from '../system/system-error.ts';
import type { AppendFile, FileInfo, World } from '../system/world.ts';
import { writeFailure } from '../system/write-failure.ts';
import {
  eventLines,
  headerLine,
  type LogPosition,
  type LogProblem,
  type LogScan,
  logStart,
  scanLog,
} from './log-lines.ts';
import { LogLost } from './log-lost.ts';

/** Poll interval of a follower in milliseconds, because file events are not reliable. */
const lookEveryMs = 500;
const newline = 0x0a;

/** Creates a new log with its header line and, if given, its first events, safe against a power cut. */
export function createLog(world: World, path: string, groupId: GroupId, first: readonly GroupEvent[] = []): EventLog {
  world.files.writeAtomic(path, headerLine(groupId) + eventLines(first), { durable: true });
  return new EventLog(world, path, world.files.openAppend(path));
}

export interface ReadLog {
  readonly events: GroupEvent[];
  /** Opens it for its one writer, who holds runner.lock, and cuts off a partial line. Throws the system's error. */
  open(): EventLog;
}

/** Reads a log for writing. Fails with `corrupt-file`, `newer-version` or `older-version`. */
export function readForWriting(world: World, path: string): Result<ReadLog> {
  const scan = scanWhole(world, path);
  if (!scan.ok) return scan;
  const { events, position } = scan.value;
  const open = (): EventLog => {
    const file = world.files.openAppend(path);
    if (file.size === position.offset) return new EventLog(world, path, file);
    file.close();
    world.files.truncate(path, position.offset);
    return new EventLog(world, path, world.files.openAppend(path));
  };
  return ok({ events, open });
}

/** Reads a log without changing it; a partial last line is ignored. Fails like `readForWriting`. */
export function readLog(world: World, path: string): Result<GroupEvent[]> {
  const scan = scanWhole(world, path);
  return scan.ok ? ok(scan.value.events) : scan;
}

function scanWhole(world: World, path: string): Result<LogScan> {
  let bytes: Uint8Array;
  try {
    if (world.files.info(path) === null) return headless(path, `The event log ${path} is missing.`);
    bytes = world.files.readBytes(path, 0, Number.MAX_SAFE_INTEGER);
  } catch (error) {
    const next = 'Check the permissions of file and folder.';
    return fail('corrupt-file', `Cannot read ${path}: ${errorText(error)}.`, next);
  }
  const scan = scanLog(bytes, logStart);
  if (scan.trouble !== undefined) return { ok: false, failure: describeTrouble(world, path, scan.trouble) };
  if (scan.position.offset === 0) return headless(path, `The event log ${path} has no complete first line.`);
  return ok(scan);
}

function headless(path: string, message: string): ReturnType<typeof fail> {
  return fail('corrupt-file', message, restoreOrDelete(path));
}

/** Advice for an unusable log. Its folder has the group's id. */
export function restoreOrDelete(path: string, first = ''): Advice {
  return advise(`${first}Restore the file from a backup, or`, ['group', 'delete', basename(dirname(path))]);
}

function describeTrouble(world: World, path: string, trouble: LogProblem): Failure {
  if (trouble.reason === 'older-version') return olderVersion(path);
  const before = world.files.readBytes(path, 0, trouble.offset);
  const line = before.reduce((count, byte) => (byte === newline ? count + 1 : count), 1);
  const next =
    trouble.reason === 'newer-version'
      ? 'Nothing was changed. Use the newer version of claude-code-agent that wrote this group.'
      : restoreOrDelete(path, 'Nothing was changed. Repair that line by hand. ');
  return fail(trouble.reason, `Line ${line} of ${path} ${trouble.what}.`, next).failure;
}

function olderVersion(path: string): Failure {
  const folder = dirname(path);
  const id = basename(folder);
  const message = `Group ${id} in ${folder} was created by a version before 0.3, which this version cannot read.`;
  return fail('older-version', message, advise('Delete it with', ['group', 'delete', id])).failure;
}

/** The log of its one writer. */
export class EventLog {
  readonly #world: World;
  readonly #path: string;
  readonly #file: AppendFile;
  readonly #opened: FileInfo | null;
  #size: number;
  #broken = false;

  constructor(world: World, path: string, file: AppendFile) {
    this.#world = world;
    this.#path = path;
    this.#file = file;
    this.#size = file.size;
    this.#opened = world.files.info(path);
  }

  /** Set when the path no longer leads to the opened file: it was removed or replaced. */
  get lost(): LogLost | null {
    const now = this.#world.files.info(this.#path);
    const isSame = now?.inode === this.#opened?.inode && now?.device === this.#opened?.device;
    return isSame ? null : lostLog(this.#path);
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Writes all lines with one write and one fsync. Throws the system's error when that fails; the file then ends where
   * it ended before, or accepts nothing until it is opened again. Throws LogLost when the log is lost.
   */
  append(events: readonly GroupEvent[]): void {
    assert(!this.#broken, `${this.#path} could not be truncated after a failed write, so nothing more can be written`);
    const text = eventLines(events);
    const { lost } = this;
    if (lost !== null) throw lost;
    try {
      this.#file.append(text);
      this.#file.sync();
    } catch (error) {
      this.#broken = true;
      // A disk that became read-only after an error does not recover by itself.
      if (errorCode(error) === 'EROFS') throw new LogLost(writeFailure(this.#path, error));
      // Remove the whole batch: a partial line would be joined to the next append, and the caller treats none of the
      // lines as recorded.
      this.#world.files.truncate(this.#path, this.#size);
      this.#broken = false;
      throw error;
    }
    this.#size += Buffer.byteLength(text);
  }

  close(): void {
    this.#file.close();
  }
}

function lostLog(path: string): LogLost {
  const message = `The event log ${path} was removed or replaced while it was being written.`;
  const first = 'If its folder was moved, move it back and run the group again. Otherwise: ';
  return new LogLost(fail('gone', message, restoreOrDelete(path, first)).failure);
}

/**
 * Calls `onEvents` with the events after byte `from` (default: all) and with new ones, in batches, never synchronously.
 * If the writer removed events that it could not make durable, all events are delivered again with `isFresh`.
 * `onProblem` is called once, and following ends, when the log is damaged or gone. The returned function stops
 * following.
 */
export function followLog(
  world: World,
  path: string,
  onEvents: (events: GroupEvent[], isFresh: boolean) => void,
  onProblem: (failure: Failure) => void = () => {},
  from = 0,
): () => void {
  let position: LogPosition = logStart;
  let ended = false;
  let cancel = (): void => {};
  const end = (): void => {
    ended = true;
    cancel();
    unwatch();
  };
  const endWith = (failure: Failure): void => {
    end();
    onProblem(failure);
  };
  const look = (): void => {
    if (ended) return;
    const info = world.files.info(path);
    if (info === null) {
      endWith(fail('gone', `${path} is gone.`, 'The group was deleted.').failure);
      return;
    }
    const isFresh = info.size < position.offset;
    if (isFresh) position = logStart;
    const scan = scanLog(world.files.readBytes(path, position.offset, Number.MAX_SAFE_INTEGER), position);
    position = scan.position;
    if (scan.events.length > 0) onEvents(scan.events, isFresh);
    if (scan.trouble !== undefined && !ended) endWith(describeTrouble(world, path, scan.trouble));
  };
  const lookAgain = (): void => {
    cancel = world.clock.after(lookEveryMs, () => {
      look();
      if (!ended) lookAgain();
    });
  };
  if (from > 0 && world.files.readBytes(path, from - 1, 1)[0] === newline) position = { offset: from };
  const unwatch = world.files.watch(dirname(path), look);
  cancel = world.clock.after(0, () => {
    look();
    if (!ended) lookAgain();
  });
  return end;
}
