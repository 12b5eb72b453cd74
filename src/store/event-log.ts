/**
 * events.jsonl: the truth about a group. One writer (the holder of runner.lock) appends; anybody may read or follow.
 * Whatever byte a crash or a full disk left the file at, it loads, and appending goes on after the last whole line.
 */

import { basename, dirname } from 'node:path';
import { type Advice, advise } from '../core/advice.ts';
import type { GroupEvent } from '../core/event.ts';
import { assert, errorText, type Failure, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { errorCode } from '../system/system-error.ts';
import type { AppendFile, FileInfo, World } from '../system/world.ts';
import { setAside } from './foreign-bytes.ts';
import {
  eventLines,
  headerLine,
  type LogPosition,
  type LogScan,
  type LogTrouble,
  logStart,
  scanLog,
} from './log-lines.ts';
import { LogLost } from './log-lost.ts';
import { isRegularFile, standInOf } from './regular-file.ts';

/** How often a follower looks by itself, milliseconds: hints of the system may be missing altogether. */
const lookEveryMs = 500;
/** How much of what was told a follower compares with the file before it reads on. */
const tailBytes = 4_096;
/** How much of what was written last a writer compares with the file before it writes on. */
const comparedBytes = 512;
/** So often lines are written again because somebody wrote at the same time. */
const appendTriesMax = 5;
const newline = 0x0a;
export interface EventLog {
  /**
   * Writes all lines with one write and one fsync. Throws the system's error when that fails; the file then ends
   * where it ended before, or (when even that fails) nothing more can be appended until it is opened again. Throws
   * LogLost when the log is lost. What others had appended meanwhile is set aside first.
   */
  append(events: readonly GroupEvent[]): void;
  /** Sets aside what others have appended; the bytes of which that was done since this was last called. */
  takeForeign(): number;
  /** Set when the path no longer leads to what was written: the file was removed, replaced, cut off or overwritten. */
  readonly lost: LogLost | null;
  /** Bytes. */
  readonly size: number;
  /** Sets aside what others have appended; returned like `takeForeign`. */
  close(): number;
}

/** Makes a new log with its header line and, where given, its first events, safe against a power cut. */
export function createLog(world: World, path: string, groupId: GroupId, first: readonly GroupEvent[] = []): EventLog {
  world.files.writeAtomic(path, headerLine(groupId) + eventLines(first), { durable: true });
  return new AppendingLog(world, path, world.files.openAppend(path));
}

export interface ReadLog {
  readonly events: GroupEvent[];
  /** A writer has it open, whose runner.lock was removed: what it writes comes behind these events. */
  readonly isHeld: boolean;
  /**
   * Opens it for its one writer and cuts off a half line at the end, which a crash leaves. Whole lines behind the last
   * event count as written by others. May take the end away from under a writer, so the caller holds runner.lock and
   * has looked at `isHeld`. Throws the system's error.
   */
  open(): EventLog;
  /** For who does not open it. */
  close(): void;
}

/**
 * Reads a log that is to be written to, and keeps other writers out before that: nothing of theirs can come behind what
 * was read. Changes nothing. Fails with `corrupt-file` or `newer-version` when a line before the end is damaged. Throws
 * the system's error.
 */
export function readForWriting(world: World, path: string): Result<ReadLog> {
  const absent = notThere(world, path) ?? unread(world, path);
  if (absent !== null) return absent;
  const file = world.files.openAppend(path);
  try {
    const isHeld = !file.own();
    const scan = scanWhole(world, path);
    if (!scan.ok) {
      file.close();
      return scan;
    }
    const { events, position } = scan.value;
    const open = (): EventLog => {
      const rest = world.files.readBytes(path, position.offset, Number.MAX_SAFE_INTEGER);
      const wholeLines = rest.lastIndexOf(newline) + 1;
      if (rest.length > wholeLines) world.files.truncate(path, position.offset + wholeLines);
      return new AppendingLog(world, path, file, position.offset);
    };
    return ok({ events, isHeld, open, close: () => file.close() });
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Reads a log without changing it; a torn end is ignored. Fails like `readForWriting`. */
export function readLog(world: World, path: string): Result<GroupEvent[]> {
  const scan = scanWhole(world, path);
  return scan.ok ? ok(scan.value.events) : scan;
}

function notThere({ files }: World, path: string): Result<never> | null {
  try {
    if (isRegularFile(files, path)) return null;
    return headless(path, `The event log ${path} is ${standInOf(files, path) ?? 'missing'}.`);
  } catch (error) {
    return unreadable(path, error);
  }
}

/** What may not even be read is told as that. */
function unread({ files }: World, path: string): Result<never> | null {
  try {
    files.openRead(path)?.close();
    return null;
  } catch (error) {
    return unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): Result<never> {
  const next = 'Check the permissions of file and folder.';
  return fail('corrupt-file', `Cannot read ${path}: ${errorText(error)}.`, next);
}

function scanWhole(world: World, path: string): Result<LogScan> {
  const absent = notThere(world, path);
  if (absent !== null) return absent;
  let bytes: Uint8Array;
  try {
    bytes = world.files.readBytes(path, 0, Number.MAX_SAFE_INTEGER);
  } catch (error) {
    return unreadable(path, error);
  }
  const scan = scanLog(bytes, logStart);
  if (scan.trouble !== undefined) return { ok: false, failure: describeTrouble(world, path, scan.trouble) };
  if (scan.position.offset === 0) return headless(path, `The event log ${path} ends before its first line does.`);
  return ok(scan);
}

function headless(path: string, message: string): ReturnType<typeof fail> {
  return fail('corrupt-file', message, restoreOrDelete(path));
}

/** What to do about a log that is of no use any more. The folder it lies in has the group's id. */
export function restoreOrDelete(path: string, first = ''): Advice {
  return advise(`${first}Restore the file from a backup, or`, ['group', 'delete', basename(dirname(path))]);
}

function describeTrouble(world: World, path: string, trouble: LogTrouble): Failure {
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
  const message = `The group ${id} in ${folder} was made by a version before 0.3, which this version cannot read.`;
  return fail('older-version', message, advise('Delete it with', ['group', 'delete', id])).failure;
}

class AppendingLog implements EventLog {
  readonly #world: World;
  readonly #path: string;
  readonly #file: AppendFile;
  readonly #opened: FileInfo | null;
  readonly #folder: FileInfo | null;
  #size: number;
  /** The bytes that were written last. */
  #tail: Uint8Array;
  #broken = false;
  #foreign = 0;

  /** What stands behind `size` bytes is of others; absent = nothing does. */
  constructor(world: World, path: string, file: AppendFile, size?: number) {
    this.#world = world;
    this.#path = path;
    this.#file = file;
    this.#size = size ?? this.#file.size;
    this.#opened = world.files.info(path);
    this.#folder = world.files.info(dirname(path));
    this.#tail = world.files.readBytes(path, Math.max(0, this.#size - comparedBytes), comparedBytes);
  }

  get lost(): LogLost | null {
    return this.#lossIn(seen(this.#world, this.#path));
  }

  #lossIn(now: Seen): LogLost | null {
    if (now === 'unknown') return null;
    return isSame(now, this.#opened) && now.size >= this.#size ? null : this.#lostLog();
  }

  #lostLog(done = 'replaced or cut off'): LogLost {
    return lostLog(this.#world, this.#path, this.#folder, done);
  }

  get size(): number {
    return this.#size;
  }

  takeForeign(): number {
    const now = seen(this.#world, this.#path);
    if (!this.#broken && this.#lossIn(now) === null) this.#isOurs(now);
    const bytes = this.#foreign;
    this.#foreign = 0;
    return bytes;
  }

  append(events: readonly GroupEvent[]): void {
    assert(!this.#broken, `${this.#path} could not be set back after a failed write and takes nothing more`);
    const text = eventLines(events);
    const bytes = Buffer.from(text);
    for (let tries = 1; ; tries += 1) {
      const now = seen(this.#world, this.#path);
      const overwritten = () => (this.#isOverwritten() ? this.#lostLog('overwritten') : null);
      const trouble = this.#lossIn(now) ?? overwritten();
      if (trouble !== null) throw trouble;
      this.#isOurs(now);
      this.#write(text);
      // Somebody may have written between the two, and then not all that stands before our lines is ours.
      if (this.#isOurs(seen(this.#world, this.#path), bytes.length)) break;
      if (tries === appendTriesMax) throw this.#lostLog('written to by others without a pause');
    }
    this.#size += bytes.length;
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-comparedBytes)]).subarray(-comparedBytes);
  }

  close(): number {
    try {
      return this.takeForeign();
    } catch {
      // The next writer finds it.
      return 0;
    } finally {
      this.#file.close();
    }
  }

  /** Lines that were overwritten would be told as damage from now on, whatever is written behind them. */
  #isOverwritten(): boolean {
    try {
      const before = this.#world.files.readBytes(this.#path, this.#size - this.#tail.length, this.#tail.length);
      return !Buffer.from(before).equals(this.#tail);
    } catch {
      return false;
    }
  }

  /** False when others had written behind our lines, of which `own` bytes are not counted yet: all of that is gone. */
  #isOurs(now: Seen, own = 0): boolean {
    const extra = now === 'unknown' || now === null ? 0 : now.size - this.#size - own;
    if (extra <= 0) return true;
    setAside(this.#world, this.#path, this.#size, extra + own);
    this.#foreign += extra;
    return false;
  }

  #write(text: string): void {
    try {
      this.#file.append(text);
      this.#file.sync();
    } catch (error) {
      // Half a line must not stay: the next append would be glued to it. Whole lines of the batch must not either,
      // because the caller takes none of it for recorded.
      this.#broken = !isCutBack(this.#world, this.#path, this.#size);
      throw error;
    }
  }
}

type Seen = FileInfo | null | 'unknown';

/** A system that does not answer is no reason to give up a log that may be well; a link to itself is an answer. */
function seen({ files }: Pick<World, 'files'>, path: string): Seen {
  try {
    return files.info(path);
  } catch (error) {
    return errorCode(error) === 'ELOOP' ? null : 'unknown';
  }
}

/** `opened`: the folder that it lay in; where another one stands now, which sessions may make anew, it was moved. */
function lostLog({ files }: World, path: string, opened: FileInfo | null, done: string): LogLost {
  const folder = dirname(path);
  const isAway = isNothing(files, path);
  const back =
    isAway && !isSame(seen({ files }, folder), opened)
      ? `If its folder was moved, move that back to ${folder} and run the group again. `
      : '';
  const next = isNothing(files, folder) ? `${back}Else create the group again.` : restoreOrDelete(path, back);
  const message = `The event log ${path} was ${isAway ? 'removed' : done} while it was being written.`;
  return new LogLost(fail('gone', message, next).failure);
}

function isNothing(files: World['files'], path: string): boolean {
  try {
    return files.entryKind(path) === null;
  } catch {
    return false;
  }
}

function isSame(now: Seen, opened: FileInfo | null): now is FileInfo {
  return now !== null && now !== 'unknown' && now.inode === opened?.inode && now.device === opened.device;
}

/** False when the system refuses that as well; the next open then finds the torn end. */
function isCutBack(world: World, path: string, size: number): boolean {
  try {
    world.files.truncate(path, size);
    return true;
  } catch {
    return false;
  }
}

/** What is said to who has read it so far; null when a file is there, or nobody can tell. */
function missingWhileRead(world: World, path: string): Failure | null {
  const now = seen(world, path);
  if (now === 'unknown' || now?.kind === 'file') return null;
  const standIn = standInOf(world.files, path);
  if (standIn === null) return fail('gone', `${path} is gone.`, 'The group was deleted.').failure;
  return headless(path, `The event log ${path} is ${standIn}.`).failure;
}

/**
 * Tells `onEvents` about the events after byte `from` (default: all), and then about each new one, in order and in
 * batches; never before it returned. A half last line waits. When events that were told vanished (a writer could not
 * make them durable and took them back), all events of the log are told again with `isFresh`: forget the earlier
 * ones. `onProblem` is told once, and following ends, when the log is damaged (`corrupt-file`, `newer-version`) or
 * gone (`not-found`). The returned function ends it.
 */
export function followLog(
  world: World,
  path: string,
  onEvents: (events: GroupEvent[], isFresh: boolean) => void,
  onProblem: (failure: Failure) => void = () => {},
  from = 0,
): () => void {
  let position: LogPosition = logStart;
  /** The bytes before the position, to notice that they are no longer what was told. */
  let tail: Uint8Array = new Uint8Array(0);
  let ended = false;
  let isFresh = false;
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
  const scanOn = (): LogScan => {
    const bytes = world.files.readBytes(path, position.offset, Number.MAX_SAFE_INTEGER);
    const scan = scanLog(bytes, position);
    const taken = bytes.subarray(0, scan.position.offset - position.offset);
    tail = Buffer.concat([tail, taken.subarray(-tailBytes)]).subarray(-tailBytes);
    position = scan.position;
    return scan;
  };
  const look = (): void => {
    if (ended) return;
    const away = missingWhileRead(world, path);
    if (away !== null) {
      endWith(away);
      return;
    }
    const before = world.files.readBytes(path, position.offset - tail.length, tail.length);
    if (!Buffer.from(before).equals(tail)) restart();
    const { events, trouble } = scanOn();
    if (events.length > 0) {
      const fresh = isFresh;
      isFresh = false;
      onEvents(events, fresh);
    }
    if (trouble !== undefined && !ended) endWith(describeTrouble(world, path, trouble));
  };
  const restart = (): void => {
    position = logStart;
    tail = new Uint8Array(0);
    isFresh = true;
  };
  const lookAgain = (): void => {
    cancel = world.clock.after(lookEveryMs, () => {
      look();
      if (!ended) lookAgain();
    });
  };
  const lastByte = world.files.readBytes(path, Math.max(0, from - 1), 1);
  if (from > 0 && lastByte[0] === newline) {
    position = { offset: from };
    tail = lastByte;
  }
  const unwatch = world.files.watch(dirname(path), look);
  cancel = world.clock.after(0, () => {
    look();
    if (!ended) lookAgain();
  });
  return end;
}
