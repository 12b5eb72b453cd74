/**
 * What belongs between the lines of a session's transcript: where attempts begin, how they ended, and what the user
 * said or did meanwhile. From the log of the group; claude prints none of it.
 */
import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { SessionId } from '../../core/group.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';

export interface AttemptMark {
  readonly kind: 'attempt';
  readonly id: string;
  /** Bytes of the transcript before it. */
  readonly offset: number;
  readonly entry: Extract<TranscriptEntry, { kind: 'attempt-began' }>;
  /** Absent while it goes on. */
  ended?: TranscriptEntry;
  readonly after: TranscriptEntry[];
}

export interface WordsMark {
  readonly kind: 'words';
  readonly offset: number;
  readonly entry: UserSaid;
  readonly isBetween: boolean;
}

type UserSaid = Extract<TranscriptEntry, { kind: 'user-said' }>;

export type TranscriptMark = AttemptMark | WordsMark;

export class TranscriptMarks {
  readonly #sessionId: SessionId;
  readonly list: TranscriptMark[] = [];
  #attempt: AttemptMark | undefined;
  /** What the next attempt is to be told, from the command that asked for it. */
  #prompt: UserSaid | undefined;

  constructor(sessionId: SessionId) {
    this.#sessionId = sessionId;
  }

  take(events: readonly GroupEvent[]): void {
    for (const event of events) {
      if ('sessionId' in event && event.sessionId === this.#sessionId) this.#take(event);
    }
  }

  #take(event: GroupEvent): void {
    switch (event.type) {
      case 'session_starting':
        this.#begin(event);
        return;
      case 'session_message':
        // Without a place it was said before, and is only kept for the next attempt.
        if (event.offset !== undefined) this.#say(userSaid(event.at, event.text), event.offset);
        return;
      case 'session_queued':
        if (event.prompt !== undefined) this.#prompt = userSaid(event.at, event.prompt);
        return;
      case 'session_detached':
        if (event.spoken) this.#leave(event);
        return;
      case 'session_completed':
      case 'session_failed':
      case 'session_paused': {
        const mark = this.#attempt;
        if (mark?.id !== event.attemptId || mark.ended !== undefined) return;
        const { usage } = event;
        mark.ended = { kind: 'attempt-ended', number: mark.entry.number, usage, ...outcomeOf(event) };
      }
    }
  }

  #begin({ attempt, at }: Extract<GroupEvent, { type: 'session_starting' }>): void {
    const { id, number, kind, offset } = attempt;
    const prompt = this.#prompt;
    this.#prompt = undefined;
    // An attempt that had cost nothing when the runner died is begun again under its own id.
    if (this.list.some((mark) => mark.kind === 'attempt' && mark.id === id)) return;
    if (prompt !== undefined) this.#say(prompt, offset);
    const after = kind === 'start' ? undefined : endingOf(this.#attempt?.ended);
    const why = defined({ after });
    const entry = { kind: 'attempt-began', number, why: kind, at, ...why } as const;
    this.#attempt = { kind: 'attempt', id, offset, entry, after: [] };
    this.list.push(this.#attempt);
  }

  #leave({ at, usage }: Extract<GroupEvent, { type: 'session_detached' }>): void {
    const entry = { kind: 'taken-over', at, usage } as const;
    const after = this.#attempt?.after;
    if (after?.some((other) => Bun.deepEquals(other, entry)) === false) after.push(entry);
  }

  #say(entry: UserSaid, offset: number): void {
    if (this.list.some((mark) => mark.offset === offset && Bun.deepEquals(mark.entry, entry))) return;
    const isBetween = this.#attempt === undefined || this.#attempt.ended !== undefined;
    this.list.push({ kind: 'words', offset, entry, isBetween });
  }
}

export class GroupMarks {
  readonly #of = new Map<SessionId, TranscriptMarks>();

  take(event: GroupEvent): void {
    if ('sessionId' in event && event.sessionId !== undefined) this.#marksOf(event.sessionId).take([event]);
  }

  listOf(sessionId: SessionId): readonly TranscriptMark[] {
    return this.#marksOf(sessionId).list;
  }

  #marksOf(sessionId: SessionId): TranscriptMarks {
    const known = this.#of.get(sessionId) ?? new TranscriptMarks(sessionId);
    this.#of.set(sessionId, known);
    return known;
  }
}

export class MarkTeller {
  readonly #marks: readonly TranscriptMark[];
  readonly #tell: (entry: TranscriptEntry) => void;
  #told = 0;
  /** The attempt that began last, and how much of its end was told so far. */
  #open: AttemptMark | undefined;
  #endTold = 0;

  constructor(marks: readonly TranscriptMark[], tell: (entry: TranscriptEntry) => void) {
    this.#marks = marks;
    this.#tell = tell;
  }

  get hasToldAny(): boolean {
    return this.#told > 0;
  }

  get nextOffset(): number | undefined {
    return this.#marks[this.#told]?.offset;
  }

  reach(position: number): void {
    for (let mark = this.#marks[this.#told]; mark !== undefined; mark = this.#marks[this.#told]) {
      if (mark.offset > position) return;
      if (mark.kind === 'attempt' || mark.isBetween) this.tellEnd();
      this.#told += 1;
      if (mark.kind === 'attempt') this.#begin(mark);
      this.#tell(mark.entry);
    }
  }

  skip(position: number): void {
    for (let mark = this.#marks[this.#told]; mark !== undefined; mark = this.#marks[this.#told]) {
      if (mark.offset >= position) return;
      this.#told += 1;
      if (mark.kind === 'attempt') this.#begin(mark);
    }
  }

  /** Tells how the attempt ended that began last, and what came after; nothing while it goes on, and nothing twice. */
  tellEnd(): void {
    const { ended, after = [] } = this.#open ?? {};
    if (ended === undefined) return;
    const end = [ended, ...after];
    for (const entry of end.slice(this.#endTold)) this.#tell(entry);
    this.#endTold = end.length;
  }

  #begin(mark: AttemptMark): void {
    this.#open = mark;
    this.#endTold = 0;
  }
}

function userSaid(at: string, text: string): UserSaid {
  return { kind: 'user-said', at, text };
}

type Ending = Extract<GroupEvent, { type: 'session_completed' | 'session_failed' | 'session_paused' }>;

function outcomeOf(
  event: Ending,
): Pick<Extract<TranscriptEntry, { kind: 'attempt-ended' }>, 'outcome' | 'reason' | 'message'> {
  if (event.type === 'session_completed') return { outcome: 'completed' };
  const { reason, message } = event;
  if (event.type === 'session_paused') return { outcome: 'paused', reason, ...(message === '' ? {} : { message }) };
  return { outcome: 'failed', reason, message: `${message} ${event.next}`.trim() };
}

function endingOf(ended: TranscriptEntry | undefined): string | undefined {
  if (ended?.kind !== 'attempt-ended') return undefined;
  return ended.reason === undefined ? ended.outcome : `${ended.outcome} (${ended.reason})`;
}
