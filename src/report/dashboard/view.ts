/** What the dashboard shows, and the facts about single sessions that more than one part of it needs. */
import type { SessionId } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { type GroupState, isThrottled } from '../../core/state.ts';
import type { Verdicts } from '../../core/verdict.ts';
import { formatDuration, formatMoment, type Tone } from '../format.ts';
import type { LiveView } from '../reporter.ts';
import type { Line } from '../transcript/line.ts';
import { projectName, titleOf } from '../wording.ts';
import type { AttemptNote } from './attempts.ts';
import type { Glyphs } from './glyphs.ts';
import { placeSessions } from './order.ts';
import type { Ui } from './ui.ts';

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
  /** The log of the set-up command that runs for a session; null when none does. */
  readonly setupLog?: (record: SessionRecord) => string | null;
  /** What a key came to; absent = nothing to say. */
  readonly notice?: Notice;
  /** Of the selected session; absent while no pane is open. */
  readonly material?: Material;
}

/** What the details pane shows besides the state. */
export interface Material {
  readonly sessionId: SessionId;
  /** Harmless lines, styled by `colourStyle`. */
  readonly log: readonly Line[];
  readonly attempts: readonly AttemptNote[];
}

export interface Terminal {
  readonly columns: number;
  readonly rows: number;
  readonly glyphs: Glyphs;
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

/** Failed, stopped on its way, kept from starting by a failure, or with something a person should know. */
export function isProblem(verdicts: Verdicts, record: SessionRecord): boolean {
  const { status } = record.state;
  if (status === 'failed' || status === 'paused' || record.warnings.length > 0) return true;
  return status === 'pending' && verdicts(record)?.reason === 'blocked';
}

/**
 * The visible sessions in their order. What is selected stays among them also when it changes so that a filter does not
 * hold for it any more: the next key is meant for it, and not for whoever would take its place.
 */
export function listedSessions(
  { state, verdicts }: Pick<View, 'state' | 'verdicts'>,
  { filter, onlyProblems, selected }: Pick<Ui, 'filter' | 'onlyProblems' | 'selected'>,
): SessionId[] {
  const wanted = filter.trim().toLowerCase();
  const placed = placeSessions(state);
  if (wanted === '' && !onlyProblems) return placed.map(({ id }) => id);
  return placed.flatMap(({ id }) => {
    const record = state.sessions.get(id);
    if (id === selected) return [id];
    if (record === undefined || (onlyProblems && !isProblem(verdicts, record))) return [];
    return wanted === '' || searchable(state, record, verdicts(record)?.reason).includes(wanted) ? [id] : [];
  });
}

function searchable(state: GroupState, record: SessionRecord, reason = ''): string {
  const { id, projectPath } = record.definition;
  return `${titleOf(state, id)} ${projectName(projectPath)} ${record.state.status} ${reason}`.toLowerCase();
}
