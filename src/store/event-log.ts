/**
 * events.jsonl: the source of truth about a group. One writer (the holder of runner.lock) appends; any process may read
 * or follow. After a crash or a full disk, appending continues after the last complete line.
 */
import { basename, dirname } from 'node:path';
import { type Advice, advise } from '../core/advice.ts';
import type { GroupEvent } from '../core/event.ts';
import { assert, errorText, type Failure, type FailureReason, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { isSessionId } from '../core/id.ts';
import { isEventType } from '../core/status.ts';
import { errorCode, writeFailure } from '../system/system-error.ts';
import type { AppendFile, World } from '../system/world.ts';
import { isObject, parseJson } from './json.ts';
import { LogLost } from './system-failure.ts';

/** Poll interval of a follower in milliseconds, because file events are not reliable. */
const lookEveryMs = 500;
const newline = 0x0a;

/** Creates a new log with its header line and, if given, its first events, safe against a power cut. */
export function createLog(world: World, path: string, groupId: GroupId, first: readonly GroupEvent[] = []): EventLog {
  world.files.writeAtomic(path, headerLine(groupId) + eventLines(first), { durable: true });
  return writableLog(world, path, world.files.openAppend(path));
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
    if (file.size === position.offset) return writableLog(world, path, file);
    file.close();
    world.files.truncate(path, position.offset);
    return writableLog(world, path, world.files.openAppend(path));
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

export type EventLog = ReturnType<typeof writableLog>;

/** The log of its one writer. */
function writableLog({ files }: World, path: string, file: AppendFile) {
  const opened = files.info(path);
  let { size } = file;
  let isBroken = false;
  const lost = (): LogLost | null => {
    const now = files.info(path);
    return now?.inode === opened?.inode && now?.device === opened?.device ? null : lostLog(path);
  };
  return {
    /** Set when the path no longer leads to the opened file: it was removed or replaced. */
    get lost(): LogLost | null {
      return lost();
    },
    /**
     * Writes all lines with one write and one fsync. Throws the system's error when that fails; the file then ends
     * where it ended before, or accepts nothing until it is opened again. Throws LogLost when the log is lost.
     */
    append(events: readonly GroupEvent[]): void {
      assert(!isBroken, `${path} could not be truncated after a failed write, so nothing more can be written`);
      const text = eventLines(events);
      const loss = lost();
      if (loss !== null) throw loss;
      try {
        file.append(text);
        file.sync();
      } catch (error) {
        isBroken = true;
        // A disk that became read-only after an error does not recover by itself.
        if (errorCode(error) === 'EROFS') throw new LogLost(writeFailure(path, error));
        // Remove the whole batch: a partial line would be joined to the next append, and the caller treats none of the
        // lines as recorded.
        files.truncate(path, size);
        isBroken = false;
        throw error;
      }
      size += Buffer.byteLength(text);
    },
    close: (): void => file.close(),
  };
}

function lostLog(path: string): LogLost {
  const message = `The event log ${path} was removed or replaced while it was being written.`;
  const first = 'If its folder was moved, move it back and run the group again. Otherwise: ';
  return new LogLost(fail('gone', message, restoreOrDelete(path, first)).failure);
}

export interface FollowedLog {
  /** Reads what is new now. */
  look(): void;
  close(): void;
}

/**
 * Calls `onEvents` with the events after byte `from` (default: all) and with new ones, in batches. If the writer
 * removed events that it could not make durable, all events are delivered again with `isFresh`. `onProblem` is called
 * once, and following ends, when the log is damaged or gone.
 */
export function followLog(
  world: World,
  path: string,
  onEvents: (events: GroupEvent[], isFresh: boolean) => void,
  onProblem: (failure: Failure) => void = () => {},
  from = 0,
): FollowedLog {
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
  return { look, close: end };
}

// The text of an event log (pure): one header line with the version, then one event per line. A reader takes
// complete lines only; the next writer cuts off a partial line at the end. A damaged complete line is an error.

/** Raised when an older program would misunderstand the new lines. */
const logVersion = 3;
/** No version before 0.3, which started with this version, was published. */
const oldestReadable = 3;
/** Twice the length of the longest header line. */
export const headerBytesMax = 256;

/** A reader's position after a complete line. Unknown fields are not checked. */
export interface LogPosition {
  /** Bytes of the file before this position. */
  readonly offset: number;
  readonly groupId?: GroupId;
  readonly seq?: number;
}

export const logStart: LogPosition = { offset: 0 };

/** Damage that must not be cut off, because valid lines would be lost. */
export interface LogProblem {
  readonly reason: Extract<FailureReason, 'corrupt-file' | 'newer-version' | 'older-version'>;
  /** Start of the damaged line, bytes from the file's start. */
  readonly offset: number;
  /** The problem with the line; completes the sentence "Line N …". */
  readonly what: string;
}

export interface LogScan {
  readonly events: GroupEvent[];
  readonly position: LogPosition;
  readonly trouble?: LogProblem;
}

export function headerLine(groupId: GroupId): string {
  return `${JSON.stringify({ type: 'header', version: logVersion, groupId })}\n`;
}

export function eventLines(events: readonly GroupEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('');
}

export function scanLog(bytes: Uint8Array, from: LogPosition): LogScan {
  const events: GroupEvent[] = [];
  let position = from;
  for (let start = 0, end = bytes.indexOf(newline); end >= 0; start = end + 1, end = bytes.indexOf(newline, start)) {
    const offset = from.offset + start;
    const after = from.offset + end + 1;
    const value = parseJson(decodeLine(bytes.subarray(start, end)));
    if (offset === 0) {
      const header = readHeader(value);
      if ('what' in header) return { events, position, trouble: { ...header, offset } };
      position = { offset: after, groupId: header.groupId, seq: 0 };
      continue;
    }
    const trouble = troubleOf(value, position);
    if (trouble !== null) return { events, position, trouble: { ...trouble, offset } };
    const event = value as GroupEvent;
    events.push(event);
    position = { offset: after, groupId: event.groupId, seq: event.seq };
  }
  return { events, position };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes that are not UTF-8 become a text that is not JSON. */
function decodeLine(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return '';
  }
}

type Header = { readonly groupId: GroupId } | Pick<LogProblem, 'reason' | 'what'>;

function readHeader(value: unknown): Header {
  const version = isObject(value) && value.type === 'header' ? value.version : undefined;
  if (!isObject(value) || typeof version !== 'number' || typeof value.groupId !== 'string') {
    return { reason: 'corrupt-file', what: 'is not the header line of a log' };
  }
  if (version < oldestReadable) return { reason: 'older-version', what: `has version ${version}` };
  if (version <= logVersion) return { groupId: value.groupId };
  return { reason: 'newer-version', what: `has version ${version}, but this program reads only up to ${logVersion}` };
}

/** Whether a log that begins with these bytes has a readable header of this group. */
export function hasHeaderOf(groupId: GroupId, bytes: Uint8Array): boolean {
  const line = bytes.subarray(0, Math.max(0, bytes.indexOf(newline)));
  const header = readHeader(parseJson(decodeLine(line)));
  return 'groupId' in header && header.groupId === groupId;
}

/** Checks an event's type, its position and the ids that become folder names; the rest is our own. */
function troubleOf(value: unknown, { seq, groupId }: LogPosition): Pick<LogProblem, 'reason' | 'what'> | null {
  const corrupt = (what: string) => ({ reason: 'corrupt-file', what }) as const;
  if (!isObject(value) || typeof value.type !== 'string') return corrupt('is damaged');
  if (!isEventType(value.type)) {
    return { reason: 'newer-version', what: 'has an event that this version does not know' };
  }
  if (seq !== undefined && value.seq !== seq + 1) return corrupt(`has number ${value.seq} instead of ${seq + 1}`);
  if (groupId !== undefined && value.groupId !== groupId) return corrupt(`belongs to the group ${value.groupId}`);
  const definedId = isObject(value.session) ? value.session.id : undefined;
  const isNamed = [value.sessionId, definedId].every((id) => id === undefined || isSessionId(String(id)));
  return isNamed ? null : corrupt('has an invalid session id');
}
