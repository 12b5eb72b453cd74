/** Pure: which running attempts have run or been silent for too long, and what is to be done about it. */
import type { EventBody } from '../../core/event.ts';
import { defaultStallTimeoutMs } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';

export interface WorkerTimes {
  readonly ageMs: number;
  readonly silentMs: number;
}

/** Between the notice and the interruption another quarter of the time passes. */
const interruptShare = 1.25;

/** The events that are due for a running attempt. `noticed`: attempts whose silence was noticed; kept up to date. */
export function overdueEvents(record: SessionRecord, times: WorkerTimes, noticed: Set<string>): EventBody[] {
  if (record.state.status !== 'running') return [];
  const { attempt } = record.state;
  const { id: sessionId, timeoutMs, stallTimeoutMs = defaultStallTimeoutMs } = record.definition;
  if (attempt.stopping !== undefined) return [];
  if (timeoutMs !== undefined && times.ageMs >= timeoutMs) {
    return [{ type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'timeout' }];
  }
  const { silentMs } = times;
  if (silentMs < stallTimeoutMs) {
    noticed.delete(attempt.id);
    return [];
  }
  if (silentMs >= stallTimeoutMs * interruptShare) {
    return [
      { type: 'session_stalled', sessionId, attemptId: attempt.id, step: 'interrupt', silentMs },
      { type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'stall' },
    ];
  }
  if (noticed.has(attempt.id)) return [];
  noticed.add(attempt.id);
  return [{ type: 'session_stalled', sessionId, attemptId: attempt.id, step: 'notice', silentMs }];
}
