/** What the dashboard shows, and the facts about single sessions that more than one part of it needs. */
import { addUsage, type Changes, type SessionId, type Usage } from '../../core/group.ts';
import type { Verdicts } from '../../core/plan/decision.ts';
import type { FleetStanding } from '../../core/progress.ts';
import { type SessionRecord, workedMs } from '../../core/session-state.ts';
import { type GroupState, isThrottled } from '../../core/state.ts';
import { formatDuration, formatMoment, type Tone } from '../../view/format.ts';
import type { LiveView } from '../../view/reporter.ts';
import type { Line } from '../../view/transcript/markdown.ts';
import type { AttemptNote, AttemptNotes } from './attempts.ts';
import type { Glyphs } from './cells.ts';

export type Runner = 'here' | 'elsewhere' | 'none';

export interface Notice {
  readonly text: string;
  readonly tone?: Tone;
}

export interface View {
  readonly state: GroupState;
  readonly live: LiveView;
  /** ms since 1970. */
  readonly nowMs: number;
  readonly runner: Runner;
  readonly verdicts: Verdicts;
  readonly fleet?: FleetStanding;
  readonly setupLog?: (record: SessionRecord) => string | null;
  readonly attempts?: AttemptNotes;
  /** Changed lines of running sessions, as they were counted last. */
  readonly changes?: ReadonlyMap<SessionId, ChangedLines>;
  /** US dollars; null = unknown. */
  readonly perHourUsd?: number | null;
  /** Estimated milliseconds until the run is over, from earlier sessions; absent if there is no estimate. */
  readonly remainingMs?: number;
  readonly notices?: readonly Notice[];
  readonly material?: SessionDetails;
}

export type ChangedLines = Pick<Changes, 'insertions' | 'deletions'>;

export interface SessionDetails {
  readonly sessionId: SessionId;
  readonly log: readonly Line[];
  readonly attempts: readonly AttemptNote[];
  readonly diff?: Diff;
}

export interface Diff {
  readonly lines: readonly string[];
  readonly summary: string;
}

export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  readonly glyphs: Glyphs;
}

export function reasoned(reason: string | undefined, message = ''): string {
  return reason === undefined || (reason === 'user' && message !== '') ? message : `${reason}: ${message}`;
}

export function momentIn(at: string, nowMs: number): string {
  return `${formatDuration(Date.parse(at) - nowMs)} (${formatMoment(at, nowMs)})`;
}

/** Cannot start because another session failed. */
export function isBlocked(verdicts: Verdicts, record: SessionRecord): boolean {
  return record.state.status === 'pending' && verdicts(record)?.reason === 'blocked';
}

/** The time until a limit resets; null = no limit is in force. */
export function limitNow(state: GroupState, nowMs: number): string | null {
  const { limitResetsAt } = state;
  if (limitResetsAt === undefined) return null;
  const isOver = Date.parse(limitResetsAt) <= nowMs;
  const what = isOver ? 'over, one session tries first' : `resumes in ${momentIn(limitResetsAt, nowMs)}`;
  return `${isThrottled(state) ? 'throttled' : 'limit'}: ${what}`;
}

/** All attempts together, the running one included. */
export function usageNow(
  { live, nowMs, runner }: Pick<View, 'live' | 'nowMs' | 'runner'>,
  record: SessionRecord,
): Usage {
  if (record.state.status !== 'running') return { ...record.usage, durationMs: workedMs(record) };
  const { attempt } = record.state;
  // While work is being accepted, its worker has ended and is already counted.
  if (attempt.accepting !== undefined) return record.usage;
  const now = live.get(record.definition.id)?.usage;
  const attemptMs = runner === 'none' ? (now?.durationMs ?? 0) : Math.max(0, nowMs - Date.parse(attempt.startedAt));
  const durationMs = workedMs(record) + attemptMs;
  return { ...(now === undefined ? record.usage : addUsage(record.usage, now)), durationMs };
}
