/** The attempts of sessions as the dashboard shows them, and what the group spends per hour. */
import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { SessionId, Usage } from '../../core/group.ts';
import type { LiveView } from '../../view/reporter.ts';

const hourMs = 3_600_000;
/** The hourly rate covers the last minutes. */
const recentMs = 5 * 60_000;
/** Before that, an hourly rate would be meaningless. */
export const rateAfterMs = 60_000;

/** US dollars per hour over the last minutes; each attempt counts as spending evenly. Null = unknown. */
export function hourlyUsd(attempts: AttemptNotes, live: LiveView, nowMs: number): number | null {
  const begins = [...attempts.values()].flatMap(([first]) => (first === undefined ? [] : Date.parse(first.startedAt)));
  const fromMs = Math.max(nowMs - recentMs, Math.min(...begins));
  let usd = 0;
  for (const [id, notes] of attempts) {
    for (const { startedAt, endedAt, outcome, usage } of notes) {
      const spent = (usage ?? (outcome === 'running' ? live.get(id)?.usage : undefined))?.costUsd ?? 0;
      const [start, end] = [Date.parse(startedAt), endedAt === undefined ? nowMs : Date.parse(endedAt)];
      const recent = Math.max(0, end - Math.max(start, fromMs));
      usd += (spent * recent) / Math.max(1, end - start);
    }
  }
  return usd > 0 && nowMs - fromMs >= rateAfterMs ? (usd / (nowMs - fromMs)) * hourMs : null;
}

export interface AttemptNote {
  readonly number: number;
  readonly kind: 'start' | 'resume' | 'retry';
  readonly startedAt: string;
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

export function noteAttempt(notes: AttemptNotes, event: GroupEvent): void {
  switch (event.type) {
    case 'session_starting': {
      const { number, kind } = event.attempt;
      const of = notes.get(event.sessionId) ?? [];
      notes.set(event.sessionId, of);
      // After a crash without cost the same attempt starts again.
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
