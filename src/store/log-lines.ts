/**
 * The text of an event log (pure): one header line with the version, then one event a line. A reader takes whole
 * lines only; what is torn at the end is left for the next writer to cut off, what is damaged before that is trouble.
 */
import type { GroupEvent } from '../core/event.ts';
import { assert, type FailureReason } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { judgeEvent } from './event-shape.ts';
import { isObject, parseJson } from './shape.ts';

/** Raised when a program that reads the version before would misunderstand the new lines. */
const logVersion = 3;
/** Nothing before 0.3, which began with this version, was published. */
const oldestReadable = 3;
const newline = 0x0a;
/** Room for twice the longest header line there is. */
export const headerBytesMax = 256;

/** Where a reader stands: after a whole line. What is not known yet is not checked. */
export interface LogPosition {
  /** Bytes of the file before this position. */
  readonly offset: number;
  readonly groupId?: GroupId;
  /** That of its header line. */
  readonly version?: number;
  /** Of the last event taken. */
  readonly seq?: number;
}

export const logStart: LogPosition = { offset: 0 };

/** Damage that may not be cut off, because good lines would go with it. */
export interface LogTrouble {
  readonly reason: Extract<FailureReason, 'corrupt-file' | 'newer-version' | 'older-version'>;
  /** Begin of the line concerned, bytes from the file's start. */
  readonly offset: number;
  /** What is wrong with the line; completes the sentence "Line N …". */
  readonly what: string;
}

export interface LogScan {
  readonly events: GroupEvent[];
  readonly position: LogPosition;
  readonly trouble?: LogTrouble;
}

export function headerLine(groupId: GroupId): string {
  return `${JSON.stringify({ type: 'header', version: logVersion, groupId })}\n`;
}

/** Throws when an event could not be read again (a cost that is NaN, say): one such line would spoil the log. */
export function eventLines(events: readonly GroupEvent[]): string {
  return events.map(eventLine).join('');
}

function eventLine(event: GroupEvent): string {
  const text = JSON.stringify(event);
  assert(judgeEvent(event) === 'good', `this event could not be read again: ${text}`);
  return `${text}\n`;
}

/** Reads the whole lines of `bytes`, which begin at `from`. */
export function scanLog(bytes: Uint8Array, from: LogPosition): LogScan {
  const events: GroupEvent[] = [];
  let position = from;
  let torn: number | null = null;
  const troubled = (reason: LogTrouble['reason'], offset: number, what: string): LogScan => ({
    events,
    position,
    trouble: { reason, offset, what },
  });
  for (let start = 0, end = bytes.indexOf(newline); end >= 0; start = end + 1, end = bytes.indexOf(newline, start)) {
    const offset = from.offset + start;
    const after = from.offset + end + 1;
    const value = parseJson(decodeLine(bytes.subarray(start, end)));
    if (offset === 0) {
      const header = readHeader(value);
      if ('what' in header) return troubled(header.reason, 0, header.what);
      position = { offset: after, groupId: header.groupId, version: header.version, seq: 0 };
      continue;
    }
    const verdict = judgeEvent(value);
    if (verdict === 'bad') {
      torn ??= offset;
      continue;
    }
    if (torn !== null) return troubled('corrupt-file', torn, 'is damaged, and good lines follow it');
    if (verdict === 'unknown')
      return troubled('newer-version', offset, 'holds an event that this version does not know');
    const event = value as GroupEvent;
    const misfit = misfitOf(event, position);
    if (misfit !== null) return troubled('corrupt-file', offset, misfit);
    events.push(event);
    position = { ...position, offset: after, groupId: event.groupId, seq: event.seq };
  }
  return { events, position };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Bytes that are no UTF-8 become a text that is no JSON. */
function decodeLine(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return '';
  }
}

type Header = { readonly groupId: GroupId; readonly version: number } | Pick<LogTrouble, 'reason' | 'what'>;

function readHeader(value: unknown): Header {
  const version = isObject(value) && value.type === 'header' ? value.version : undefined;
  if (!isObject(value) || typeof version !== 'number' || typeof value.groupId !== 'string') {
    return { reason: 'corrupt-file', what: 'is not the header line that every log begins with' };
  }
  if (version < oldestReadable) return { reason: 'older-version', what: `says version ${version}` };
  if (version <= logVersion) return { groupId: value.groupId, version };
  return { reason: 'newer-version', what: `says version ${version}; this program reads up to ${logVersion}` };
}

/** Whether a log that begins with these bytes has a header that can be read, and of this group. */
export function hasHeaderOf(groupId: GroupId, bytes: Uint8Array): boolean {
  const line = bytes.subarray(0, Math.max(0, bytes.indexOf(newline)));
  const header = readHeader(parseJson(decodeLine(line)));
  return 'groupId' in header && header.groupId === groupId;
}

/** What is wrong with a good event in this place; null when it fits. */
function misfitOf(event: GroupEvent, position: LogPosition): string | null {
  if (position.seq !== undefined && event.seq !== position.seq + 1) {
    return `has number ${event.seq} where ${position.seq + 1} was due`;
  }
  if (position.groupId !== undefined && event.groupId !== position.groupId) {
    return `belongs to the group ${event.groupId}`;
  }
  return null;
}
