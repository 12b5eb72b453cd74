/**
 * Guards the log against events that could not be folded again. `reduce` would refuse them as well, but only after
 * they were written, and a log with one illegal line would never load again.
 */
import type { EventBody } from '../core/event.ts';
import type { SessionId } from '../core/group.ts';
import { IllegalEvent, type SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { nextGroupStatus, nextSessionStatus, type SessionStatus } from '../core/status.ts';

type SessionBody = Extract<EventBody, { readonly sessionId: SessionId }>;

/** What is known of a session after the bodies checked so far. */
interface Standing {
  readonly status: SessionStatus;
  readonly attempts: number;
  readonly attemptId?: string;
  /** The running attempt has begun to work, so it may not begin again. */
  readonly identified?: boolean;
}

/** Throws IllegalEvent when one of the bodies may not happen after the state and the bodies before it. */
export function checkLegal(state: GroupState, bodies: readonly EventBody[]): void {
  const standings = new Map<SessionId, Standing | null>();
  let status = state.status;
  for (const body of bodies) {
    const next = nextGroupStatus(status, body.type);
    if (next === null) throw new IllegalEvent(`${body.type} in a group that is ${status}`);
    status = next;
    if (!concernsSession(body)) continue;
    const known = standings.get(body.sessionId);
    const standing = known === undefined ? standingOf(state.sessions.get(body.sessionId)) : known;
    standings.set(body.sessionId, nextStanding(standing, body));
  }
}

function concernsSession(body: EventBody): body is SessionBody {
  return 'sessionId' in body && body.type !== 'request_answered';
}

function standingOf(record: SessionRecord | undefined): Standing | null {
  if (record === undefined) return null;
  const { state, attempts } = record;
  if (state.status !== 'running') return { status: state.status, attempts };
  return { status: state.status, attempts, attemptId: state.attempt.id, identified: state.attempt.identified };
}

function nextStanding(standing: Standing | null, body: SessionBody): Standing | null {
  const refuse = (why: string): never => {
    throw new IllegalEvent(`${body.type} for the session ${body.sessionId}, which ${why}`);
  };
  if (body.type === 'session_added') {
    return standing === null ? { status: 'pending', attempts: 0 } : refuse('exists already');
  }
  if (standing === null) return refuse('does not exist');
  if (body.type === 'session_removed') return standing.status === 'running' ? refuse('is running') : null;
  const status = nextSessionStatus(standing.status, body.type) ?? refuse(`is ${standing.status}`);
  if ('attemptId' in body && body.attemptId !== standing.attemptId) {
    refuse(`has no running attempt ${body.attemptId}`);
  }
  if (body.type === 'session_starting') return beginAttempt(standing, body, refuse);
  if (body.type === 'session_identified') return { ...standing, status, identified: true };
  return status === 'running' ? { ...standing, status } : { status, attempts: standing.attempts };
}

function beginAttempt(
  standing: Standing,
  { attempt }: Extract<SessionBody, { type: 'session_starting' }>,
  refuse: (why: string) => never,
): Standing {
  const isAgain = standing.status === 'running';
  if (isAgain && attempt.id !== standing.attemptId) refuse(`runs the attempt ${standing.attemptId}`);
  if (isAgain && standing.identified) refuse('has begun to work in that attempt');
  const due = isAgain ? standing.attempts : standing.attempts + 1;
  if (attempt.number !== due) refuse(`is due for attempt ${due}, not ${attempt.number}`);
  return { status: 'running', attempts: due, attemptId: attempt.id };
}
