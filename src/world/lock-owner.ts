/**
 * Who made a lock file, written into it, so that others need not wait for a process that is gone. Only files are read:
 * hooks live for milliseconds.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostName } from './host-name.ts';
import { parseStat } from './proc-linux.ts';
import { errorCode } from './system-error.ts';

/** `self` is this very process. `unknown`: made elsewhere, or by nobody that can be told; only its age can say more. */
export type OwnerState = 'self' | 'alive' | 'gone' | 'unknown';

export interface LockOwners {
  /** What this process writes into a lock file. */
  note(): string;
  /** What became of the process that wrote `note`. */
  stateOf(note: string): OwnerState;
}

export const lockOwners: LockOwners = { note: ownNote, stateOf };

interface Note {
  readonly pid: number;
  /** Empty where the system does not tell it quickly. */
  readonly startTime: string;
  /** Pids mean something only within one host, one boot and one namespace of pids. */
  readonly realm: string;
}

function ownNote(): string {
  const { pid } = process;
  const note: Note = { pid, startTime: startTimeOf(pid) ?? '', realm: realm() };
  return `${JSON.stringify(note)}\n`;
}

function stateOf(text: string): OwnerState {
  const note = parseNote(text);
  if (note === null || note.realm !== realm()) return 'unknown';
  if (!exists(note.pid)) return 'gone';
  // Somebody else's process, or no /proc: that pid may have been given to another one since.
  const startTime = startTimeOf(note.pid);
  if (startTime === null || note.startTime === '') return note.pid === process.pid ? 'self' : 'unknown';
  if (startTime !== note.startTime) return 'gone';
  return note.pid === process.pid ? 'self' : 'alive';
}

function parseNote(text: string): Note | null {
  try {
    const { pid, startTime, realm } = JSON.parse(text) as Partial<Note>;
    const isWhole = Number.isSafeInteger(pid) && Number(pid) > 0 && typeof startTime === 'string';
    return isWhole && typeof realm === 'string' ? { pid: Number(pid), startTime, realm } : null;
  } catch {
    return null;
  }
}

function realm(): string {
  const parts = [
    () => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    () => readlinkSync('/proc/self/ns/pid'),
  ];
  return [hostName(), ...parts.map((part) => quietly(part) ?? '')].join(' ');
}

/** A process that only waits to be asked for its status holds nothing any more: its time is `ended`. */
function startTimeOf(pid: number): string | null {
  const entry = parseStat(quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? '');
  if (entry === null) return null;
  return entry.zombie ? 'ended' : entry.startTime;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}

function quietly<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
