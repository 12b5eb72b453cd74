/**
 * Why a session that is not running does not run: one answer, made by the rules that start sessions (plan/schedule.ts)
 * and read by everything that tells of it.
 */
import type { Advice } from './advice.ts';
import type { SessionRecord } from './session-state.ts';

export interface Verdict {
  /** A code, such as `waiting`, `limit` or the reason of a failure. */
  readonly reason: string;
  /** Full sentences. */
  readonly message: string;
  /** What helps, where something does. */
  readonly advice?: Advice;
  /** ms since 1970: it goes on by itself, but not before. */
  readonly until?: number;
  /** Whom it waits for: ids of sessions, or of another group. */
  readonly on?: readonly string[];
}

/** Null for a session that runs or is completed. */
export type Verdicts = (record: SessionRecord) => Verdict | null;

/** What became of a session, by its log; absent where nothing did. */
export function endingText({ state }: SessionRecord): string | undefined {
  if (state.status === 'paused') return state.message;
  return state.status === 'failed' ? `${state.failure.message} ${state.failure.next}`.trim() : undefined;
}
