/** Pure: what a fact means for the log. */
import type { EventBody } from '../core/event.ts';
import type { Attempt, GroupState, SessionRecord } from '../core/state.ts';
import type { Fact } from './facts.ts';

/** By attempt id: attempts that an earlier runner began, and whether it had begun to stop them. */
export type Adopted = ReadonlyMap<string, { readonly stopBegun: boolean }>;

/** The events a fact about an attempt leads to; none when the attempt is not the running one any more. */
export function eventsOf(state: GroupState, fact: Fact, adopted: Adopted): EventBody[] {
  if (fact.kind === 'signal' || fact.kind === 'wake' || fact.kind === 'activity') return [];
  const record = state.sessions.get(fact.sessionId);
  if (record?.state.status !== 'running' || record.state.attempt.id !== fact.attemptId) return [];
  const { attempt } = record.state;
  switch (fact.kind) {
    case 'spawned':
      return [spawnedEvent(attempt, fact, adopted.has(fact.attemptId))];
    case 'identified':
      return identifiedEvents(record, attempt, fact);
    case 'ended':
      return endedEvents(fact, adopted.get(fact.attemptId)?.stopBegun ?? false);
  }
}

function spawnedEvent(attempt: Attempt, fact: Extract<Fact, { kind: 'spawned' }>, isAdopted: boolean): EventBody {
  const { sessionId, attemptId, process } = fact;
  const named = { start: 'session_started', resume: 'session_resumed', retry: 'session_retrying' } as const;
  const type = isAdopted ? 'session_adopted' : named[attempt.kind];
  return { type, sessionId, attemptId, attempt: attempt.number, process };
}

function identifiedEvents(
  record: SessionRecord,
  attempt: Attempt,
  fact: Extract<Fact, { kind: 'identified' }>,
): EventBody[] {
  const { sessionId, attemptId, claudeSessionId, model, claudeVersion } = fact;
  const known = record.claudeSessionIds.at(-1) === claudeSessionId && record.model === (model ?? record.model);
  // An adopted worker is read again from its beginning; what is on record already is not news.
  if (attempt.identified && known) return [];
  return [
    {
      type: 'session_identified',
      sessionId,
      attemptId,
      claudeSessionId,
      ...(model === undefined ? {} : { model }),
      ...(claudeVersion === undefined ? {} : { claudeVersion }),
    },
  ];
}

function endedEvents(fact: Extract<Fact, { kind: 'ended' }>, stopBegun: boolean): EventBody[] {
  const { sessionId, attemptId, outcome, usage } = fact;
  const events: EventBody[] = outcome.warnings.map((warning) => ({ type: 'session_warning', sessionId, warning }));
  switch (outcome.status) {
    case 'completed':
      return [...events, { type: 'session_completed', sessionId, attemptId, result: outcome.result, usage }];
    case 'failed': {
      const { reason, message, next } = outcome;
      return [...events, { type: 'session_failed', sessionId, attemptId, reason, message, next, usage }];
    }
    case 'paused': {
      const { message } = outcome;
      // A stop that an earlier runner began is over once this run was asked for: the session is to go on.
      const reason = stopBegun ? 'interrupted' : outcome.reason;
      return [...events, { type: 'session_paused', sessionId, attemptId, reason, message, usage }];
    }
  }
}
