/** What a worker is told of its session: the same for a new one, an adopted one and one that is only to be stopped. */

import type { PriceTable, SessionId } from '../core/group.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../store/paths.ts';
import type { Fact } from './facts.ts';

export interface WorkerOptions {
  readonly sessionId: SessionId;
  readonly attemptId: string;
  readonly paths: SessionPaths;
  /** Bytes of the transcript before this attempt. */
  readonly offset: number;
  /** Begin of the attempt, ms since 1970; later by as long as it was silent while nobody watched it. */
  readonly startedAtMs: number;
  /** A successful SessionStart hook must show in the stream, else the session is flagged. */
  readonly expectHook: boolean;
  /** The session's result must come in the form of its output schema. */
  readonly expectStructured: boolean;
  readonly prices: PriceTable;
  /** What earlier runners said to this attempt, besides its prompt. */
  readonly told: readonly string[];
  /** Contract: only enqueues. */
  readonly emit: (fact: Fact) => void;
  /**
   * Takes an attempt of which all that was below its worker is gone, to look for what else bears its mark; absent =
   * that is looked for at once.
   */
  readonly searchLater?: (attemptId: string) => void;
}

export function workerOptions(
  paths: GroupPaths,
  { group }: GroupState,
  { definition, told = [] }: SessionRecord,
  attempt: Attempt,
): Omit<WorkerOptions, 'emit' | 'expectHook' | 'searchLater'> {
  return {
    sessionId: definition.id,
    attemptId: attempt.id,
    paths: sessionPaths(paths, definition.id),
    offset: attempt.offset,
    startedAtMs: Date.parse(attempt.startedAt),
    expectStructured: definition.outputSchema !== undefined,
    told,
    prices: group.config.prices ?? {},
  };
}
