/**
 * The text of an event log (pure): one header line with the version, then one event per line. A reader takes complete
 * lines only; the next writer cuts off a partial line at the end. A damaged complete line is an error.
 */
import type { GroupEvent } from '../core/event.ts';
import type { FailureReason } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { isSessionId } from '../core/id.ts';
import { isEventType } from '../core/status.ts';
import { isObject, parseJson } from './json.ts';

/** Raised when an older program would misunderstand the new lines. */
const logVersion = 3;
/** No version before 0.3, which started with this version, was published. */
const oldestReadable = 3;
const newline = 0x0a;
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
