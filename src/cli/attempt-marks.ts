/** Where the attempts of a session begin in its transcript, and how they ended: from the log of the group. */
import type { GroupEvent } from '../core/event.ts';
import { describeFailure } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import type { TranscriptEntry } from '../core/transcript.ts';

export interface AttemptMark {
  readonly id: string;
  /** Bytes of the transcript before it. */
  readonly offset: number;
  readonly began: TranscriptEntry;
  /** Absent while it goes on. */
  ended?: TranscriptEntry;
}

export class AttemptMarks {
  readonly #sessionId: SessionId;
  /** In the order of the attempts. */
  readonly list: AttemptMark[] = [];

  constructor(sessionId: SessionId) {
    this.#sessionId = sessionId;
  }

  /** Takes the events of the group in order; those it had before change nothing. */
  take(events: readonly GroupEvent[]): void {
    for (const event of events) {
      if ('sessionId' in event && event.sessionId === this.#sessionId) this.#take(event);
    }
  }

  #take(event: GroupEvent): void {
    switch (event.type) {
      case 'session_starting': {
        // An attempt that had cost nothing when the runner died is begun again under its own id.
        if (this.list.some(({ id }) => id === event.attempt.id)) return;
        const { id, number, kind, offset } = event.attempt;
        const after = kind === 'start' ? undefined : endingOf(this.list.at(-1)?.ended);
        const why = after === undefined ? {} : { after };
        this.list.push({ id, offset, began: { kind: 'attempt-began', number, why: kind, at: event.at, ...why } });
        return;
      }
      case 'session_completed':
      case 'session_failed':
      case 'session_paused': {
        const mark = this.list.find(({ id }) => id === event.attemptId);
        if (mark?.began.kind !== 'attempt-began' || mark.ended !== undefined) return;
        const { usage } = event;
        mark.ended = { kind: 'attempt-ended', number: mark.began.number, usage, ...outcomeOf(event) };
      }
    }
  }
}

type Ending = Extract<GroupEvent, { type: 'session_completed' | 'session_failed' | 'session_paused' }>;

function outcomeOf(event: Ending): Pick<Extract<TranscriptEntry, { kind: 'attempt-ended' }>, 'outcome' | 'reason'> {
  if (event.type === 'session_completed') return { outcome: 'completed' };
  const { reason, message } = event;
  if (event.type === 'session_paused') return { outcome: 'paused', reason, ...(message === '' ? {} : { message }) };
  return { outcome: 'failed', reason, ...{ message: describeFailure(event) } };
}

/** `failed (no-result)`. */
function endingOf(ended: TranscriptEntry | undefined): string | undefined {
  if (ended?.kind !== 'attempt-ended') return undefined;
  return ended.reason === undefined ? ended.outcome : `${ended.outcome} (${ended.reason})`;
}
