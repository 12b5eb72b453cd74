/** Bars and sparklines: when sessions worked and what they spent, from their attempts. */
import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import type { SessionId, Usage } from '../../core/group.ts';
import type { LiveView } from '../../view/reporter.ts';
import type { Glyphs, ScreenCell } from './cells.ts';

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

const minuteMs = 60_000;
const hourMs = 3_600_000;
/** The hourly rate covers the last minutes. */
const burnMs = 5 * minuteMs;
/** Before that, an hourly rate would be meaningless. */
export const rateAfterMs = minuteMs;
const sparkMs = 30 * minuteMs;
const sparkParts = 24;
const evenShare = 0.95;

export function spanOf(attempts: AttemptNotes, toMs: number): Span | null {
  let fromMs = Number.POSITIVE_INFINITY;
  for (const [first] of attempts.values())
    if (first !== undefined) fromMs = Math.min(fromMs, Date.parse(first.startedAt));
  return fromMs < toMs ? { fromMs, toMs } : null;
}

function endOf({ endedAt }: AttemptNote, nowMs: number): number {
  return endedAt === undefined ? nowMs : Date.parse(endedAt);
}

const tones = { running: 'accent', completed: 'good', failed: 'bad', paused: 'warn' } as const;

export function timelineCells(
  notes: readonly AttemptNote[],
  span: Span,
  columns: number,
  glyphs: Glyphs,
): ScreenCell[] {
  const perColumn = Math.max(1, span.toMs - span.fromMs) / Math.max(1, columns);
  const columnOf = (ms: number): number => Math.max(0, Math.min(columns, (ms - span.fromMs) / perColumn));
  const cells: ScreenCell[] = [];
  let at = 0;
  for (const note of notes) {
    const from = Math.max(at, Math.min(columns - 1, Math.floor(columnOf(Date.parse(note.startedAt)))));
    // Even the shortest attempt has a column.
    const to = Math.min(columns, Math.max(from + 1, Math.round(columnOf(endOf(note, span.toMs)))));
    if (to <= from) continue;
    cells.push({ text: glyphs.barFree.repeat(from - at), tone: 'dim' });
    cells.push({ text: glyphs.barSpent.repeat(to - from), tone: tones[note.outcome] });
    at = to;
  }
  return [...cells, { text: glyphs.barFree.repeat(Math.max(0, columns - at)), tone: 'dim' }];
}

export interface TimelineInput {
  readonly attempts: AttemptNotes;
  readonly live: LiveView;
  readonly nowMs: number;
}

function spentIn({ attempts, live, nowMs }: TimelineInput, { fromMs, toMs }: Span, parts: number): number[] {
  const spent = Array.from({ length: parts }, () => 0);
  const partMs = (toMs - fromMs) / parts;
  for (const [id, notes] of attempts) {
    for (const note of notes) {
      const usd = (note.usage ?? (note.outcome === 'running' ? live.get(id)?.usage : undefined))?.costUsd ?? 0;
      const [start, end] = [Date.parse(note.startedAt), endOf(note, nowMs)];
      if (usd === 0 || end <= fromMs) continue;
      const rate = usd / Math.max(1, end - start);
      const last = Math.min(parts - 1, Math.floor((end - fromMs) / partMs));
      for (let part = Math.max(0, Math.floor((start - fromMs) / partMs)); part <= last; part += 1) {
        const [begin, until] = [fromMs + part * partMs, fromMs + (part + 1) * partMs];
        const shared = Math.min(end, until) - Math.max(start, begin);
        if (shared > 0) spent[part] = (spent[part] as number) + rate * shared;
      }
    }
  }
  return spent;
}

export interface Pace {
  readonly perHourUsd: number | null;
  readonly spent: readonly number[];
}

export function paceOf(spending: TimelineInput): Pace {
  const span = spanOf(spending.attempts, spending.nowMs);
  if (span === null) return { perHourUsd: null, spent: [] };
  const spent = spentIn(spending, { ...span, fromMs: Math.max(span.fromMs, span.toMs - sparkMs) }, sparkParts);
  const fromMs = Math.max(span.fromMs, span.toMs - burnMs);
  const [usd = 0] = spentIn(spending, { ...span, fromMs }, 1);
  const hasRate = usd > 0 && span.toMs - fromMs >= rateAfterMs;
  return { perHourUsd: hasRate ? (usd / (span.toMs - fromMs)) * hourMs : null, spent };
}

export function sparkline({ spent }: Pace, columns: number, glyphs: Glyphs): string {
  const shown = spent.slice(-columns);
  const most = Math.max(...shown);
  const [none = ' ', ...levels] = glyphs.levels;
  // An even rate is drawn at half height.
  const isEven = Math.min(...shown) > most * evenShare;
  const levelOf = (usd: number): number => (isEven ? 0.5 : usd / most);
  const sign = (level: number): string =>
    levels[Math.min(levels.length - 1, Math.floor(level * levels.length))] ?? none;
  return shown.map((usd) => (usd === 0 ? none : sign(levelOf(usd)))).join('');
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
