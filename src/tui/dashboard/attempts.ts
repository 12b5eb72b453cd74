/** The attempts of each session, gathered from the events: the state keeps only sums of those that ended. */
import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { SessionId, Usage } from '../../core/group.ts';

export interface AttemptNote {
  readonly number: number;
  readonly kind: 'start' | 'resume' | 'retry';
  /** ISO 8601. */
  readonly startedAt: string;
  /** Absent while it runs. */
  readonly endedAt?: string;
  readonly outcome: 'running' | 'completed' | 'failed' | 'paused';
  readonly reason?: string;
  readonly usage?: Usage;
  readonly pid?: number;
  readonly model?: string;
}

export type AttemptNotes = Map<SessionId, AttemptNote[]>;

/** Older attempts of one session are forgotten. */
const attemptsMax = 50;

/** Takes note of what the event says about an attempt; to be told every event once, in order. */
export function noteAttempt(notes: AttemptNotes, event: GroupEvent): void {
  switch (event.type) {
    case 'session_starting': {
      const { number, kind } = event.attempt;
      const of = notes.get(event.sessionId) ?? [];
      notes.set(event.sessionId, of);
      // The same attempt is begun again after a crash that cost nothing.
      if (of.at(-1)?.number === number) of.pop();
      of.push({ number, kind, startedAt: event.at, outcome: 'running' });
      if (of.length > attemptsMax) of.shift();
      return;
    }
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      amend(notes, event.sessionId, { pid: event.process.pid });
      return;
    case 'session_identified':
      amend(notes, event.sessionId, defined({ model: event.model }));
      return;
    case 'session_completed':
      amend(notes, event.sessionId, { outcome: 'completed', endedAt: event.at, usage: event.usage });
      return;
    case 'session_failed':
    case 'session_paused': {
      const outcome = event.type === 'session_failed' ? 'failed' : 'paused';
      amend(notes, event.sessionId, { outcome, endedAt: event.at, usage: event.usage, reason: event.reason });
      return;
    }
    case 'session_removed':
      notes.delete(event.sessionId);
      return;
  }
}

function amend(notes: AttemptNotes, sessionId: SessionId, news: Partial<AttemptNote>): void {
  const of = notes.get(sessionId);
  const last = of?.at(-1);
  if (of !== undefined && last !== undefined) of[of.length - 1] = { ...last, ...news };
}
