/** What the dashboard shows, and the facts about single sessions that more than one part of it needs. */
import type { SessionId } from '../../core/group.ts';
import type { Verdicts } from '../../core/plan/decision.ts';
import type { FleetStanding } from '../../core/progress.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupState, isThrottled } from '../../core/state.ts';
import { formatDuration, formatMoment, type Tone } from '../../view/format.ts';
import type { LiveView } from '../../view/reporter.ts';
import type { Line } from '../../view/transcript/markdown.ts';
import type { Glyphs } from './glyphs.ts';
import type { AttemptNote, AttemptNotes } from './timeline.ts';
import { type Pace, type Span, spanOf } from './timeline.ts';

/** Who runs the group, as far as it can be seen from here. */
export type Runner =
  /** This process. */
  | 'here'
  /** Another one. */
  | 'elsewhere'
  /** Nobody. */
  | 'none';

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
  /** Absent where the group has nothing to do with a fleet. */
  readonly fleet?: FleetStanding;
  /** The log of the set-up command that runs for a session; null when none does. */
  readonly setupLog?: (record: SessionRecord) => string | null;
  /** Of all sessions; absent where nothing is told of them. */
  readonly attempts?: AttemptNotes;
  /** Absent where nothing is told of it. */
  readonly pace?: Pace;
  /** Until the run is over, by what such sessions took before, milliseconds; absent when there is no telling. */
  readonly remainingMs?: number;
  /** What keys came to and what just happened, the newest last. */
  readonly notices?: readonly Notice[];
  /** Of the selected session; absent while no pane is open. */
  readonly material?: Material;
}

/** What the details pane shows besides the state. */
export interface Material {
  readonly sessionId: SessionId;
  /** Harmless lines, styled by `colourStyle`. */
  readonly log: readonly Line[];
  readonly attempts: readonly AttemptNote[];
  /** What it changed; absent = not known so far. */
  readonly diff?: Diff;
}

export interface Diff {
  /** Coloured by `colourStyle`. */
  readonly lines: readonly string[];
  /** In a sentence: what it comes to, or why there is none. */
  readonly summary: string;
}

export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  readonly glyphs: Glyphs;
}

/** From the first attempt to now, or to when the last thing happened where nothing goes on. */
export function timeOf({ state, attempts, nowMs, runner }: View): Span | null {
  const isOver = state.status !== 'running' || runner === 'none';
  return attempts === undefined ? null : spanOf(attempts, isOver ? Date.parse(state.updatedAt) : nowMs);
}

/** A reason code and its sentence; that a user wanted it needs no code. */
export function reasoned(reason: string | undefined, message = ''): string {
  return reason === undefined || (reason === 'user' && message !== '') ? message : `${reason}: ${message}`;
}

/** `21s (13:45:23)`. */
export function momentIn(at: string, nowMs: number): string {
  return `${formatDuration(Date.parse(at) - nowMs)} (${formatMoment(at, nowMs)})`;
}

/** How long a limit still holds; null = none does. */
export function limitNow(state: GroupState, nowMs: number): string | null {
  const { limitResetsAt } = state;
  if (limitResetsAt === undefined) return null;
  const isOver = Date.parse(limitResetsAt) <= nowMs;
  const what = isOver ? 'over, one session tries first' : `goes on in ${momentIn(limitResetsAt, nowMs)}`;
  return `${isThrottled(state) ? 'throttled' : 'limit'}: ${what}`;
}
