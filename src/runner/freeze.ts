/** Freeze and thaw: suspends the processes of running sessions for a short break. */
import type { EventBody } from '../core/event.ts';
import type { GroupState } from '../core/state.ts';
import type { Worker } from '../worker/attempt/worker.ts';

/** Then a freeze becomes a pause, because the API closes idle connections. */
export const freezeMs = 60_000;

export function freezeWorkers(state: GroupState, workers: ReadonlyMap<string, { worker: Worker }>): void {
  for (const [sessionId, { worker }] of workers) {
    const session = state.sessions.get(sessionId)?.state;
    if (session?.status === 'running' && session.attempt.stopping === undefined) worker.halt(true);
  }
}

/** Failed sessions are retried, as when a run resumes the group; otherwise the run would end with them. */
export function thawEvents({ sessions, only }: GroupState): EventBody[] {
  const again = [...sessions].filter(
    ([id, { state, queued, takenOver }]) =>
      state.status === 'failed' && !queued && takenOver === undefined && (only === undefined || only.has(id)),
  );
  return [
    ...again.map(([sessionId]): EventBody => ({ type: 'session_queued', sessionId, queued: true })),
    { type: 'group_thawed' },
  ];
}
