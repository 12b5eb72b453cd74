/** Renders transcript entries as lines, with the start and end of attempts from the log between them. */

import { defined } from '../../core/defined.ts';
import type { GroupEvent } from '../../core/event.ts';
import { unreachable } from '../../core/failure.ts';
import type { SessionId, Usage } from '../../core/group.ts';
import type { FileEdit, TranscriptEntry } from '../../core/transcript.ts';
import {
  formatClock,
  formatCount,
  formatDuration,
  formatMoney,
  formatTokens,
  plural,
  type Style,
  type Tone,
} from '../format.ts';
import { fitColumns, safeLine, safeText, spelledLine } from '../terminal-text.ts';
import { expandTabs, type Line, markdownLines } from './markdown.ts';

type EntryOf<K extends TranscriptEntry['kind']> = Extract<TranscriptEntry, { kind: K }>;

const lineColumns = 160;
const diffColumns = 400;
const diffLinesMax = 60;
const thoughtLinesMax = 3;
const errorLinesMax = 3;
const sentenceColumns = 1_000;
/** Deepest indentation of nested sub-agents. */
const depthMax = 8;

export interface EntryLinesOptions {
  readonly style: Style;
  /** Costs are shown at the end of attempts, so not for each turn. */
  readonly showsAttempts: boolean;
}

export class EntryLines {
  readonly #style: Style;
  readonly #showsAttempts: boolean;
  #claude = '';
  /** The call on the previous line, so that its result needs no name. */
  #openCall = '';
  #last: TranscriptEntry['kind'] | undefined;

  constructor({ style, showsAttempts }: EntryLinesOptions) {
    this.#style = style;
    this.#showsAttempts = showsAttempts;
  }

  linesOf(entry: TranscriptEntry): Line[] {
    const lines = this.#describe(entry);
    if (lines.length === 0) return [];
    const spaced = this.#isSetOff(entry.kind) ? [{ lead: '', text: '' }, ...lines] : lines;
    this.#openCall = entry.kind === 'call' ? entry.id : '';
    this.#last = entry.kind;
    return spaced;
  }

  /** A blank line before each attempt, around messages of the user, and before text that follows tool calls. */
  #isSetOff(kind: TranscriptEntry['kind']): boolean {
    if (kind === 'attempt-began' || kind === 'attached') return this.#last !== undefined;
    if (kind === 'user-said' || this.#last === 'user-said') return this.#last !== undefined && kind !== this.#last;
    return kind === 'said' && (this.#last === 'outcome' || this.#last === 'result' || this.#last === 'compaction');
  }

  #describe(entry: TranscriptEntry): Line[] {
    switch (entry.kind) {
      case 'attempt-began':
        return this.#attemptBegan(entry);
      case 'attempt-ended':
        return this.#attemptEnded(entry);
      case 'attached':
        return this.#attached(entry);
      case 'claude':
        return this.#claudeIs(entry);
      case 'said':
        return indented(entry.depth, markdownLines(entry.text, this.#style));
      case 'user-said':
        return this.#userSaid(entry);
      case 'thought':
        return indented(entry.depth, this.#beginning(entry.text, thoughtLinesMax, 'dim', ''));
      case 'told':
        return indented(entry.depth, this.#beginning(entry.text, thoughtLinesMax, 'dim', '« '));
      case 'call':
        return [this.#line(entry.depth, this.#style('accent', '> '), toolWords(entry))];
      case 'outcome':
        return this.#outcome(entry);
      case 'compaction':
        return [this.#rule(compactionWords(entry))];
      case 'problem':
        return [this.#warning(entry.text)];
      case 'result':
        return this.#result(entry);
      case 'unreadable':
        return [this.#warning(`${entry.torn ? 'the last line was cut off' : 'unreadable line'}: ${entry.text}`)];
      default:
        return unreachable(entry);
    }
  }

  #attemptBegan({ number, why, at, after }: EntryOf<'attempt-began'>): Line[] {
    const verb = why === 'start' ? 'started' : why === 'resume' ? 'resumed' : 'retried';
    const reason = after === undefined ? '' : ` after: ${safeLine(after, lineColumns)}`;
    const title = this.#style('strong', `== attempt ${number} ${verb}${reason}`);
    // Each attempt may use another version of claude, so show it again.
    this.#claude = '';
    return [{ lead: '', text: `${title}  ${this.#style('dim', formatClock(at))}` }];
  }

  #userSaid({ at, text }: EntryOf<'user-said'>): Line[] {
    const lead = this.#style('accent', '« ');
    const lines = expandTabs(safeText(text)).trim().split('\n');
    const head = `${this.#style('strong', 'you')}  ${this.#style('dim', formatClock(at))}`;
    return [{ lead, text: head }, ...lines.map((line): Line => ({ lead, text: line }))];
  }

  #attemptEnded({ number, outcome, reason, message, usage }: EntryOf<'attempt-ended'>): Line[] {
    const tone: Tone = outcome === 'completed' ? 'good' : outcome === 'failed' ? 'bad' : 'warn';
    const words = reason === undefined ? outcome : `${outcome} (${safeLine(reason, 60)})`;
    const head = { lead: '', text: `== attempt ${number} ${this.#style(tone, words)}: ${usedWords(usage)}` };
    const text = safeLine(message ?? '', sentenceColumns);
    return text === '' ? [head] : [head, { lead: '   ', text: text }];
  }

  #attached({ at, usage }: EntryOf<'attached'>): Line[] {
    const title = `${this.#style('strong', '== attached')}: ${usedWords(usage)}`;
    return [
      { lead: '', text: `${title}  ${this.#style('dim', formatClock(at))}` },
      { lead: '   ', text: 'You continued the conversation in claude.' },
    ];
  }

  #claudeIs({ model, version }: EntryOf<'claude'>): Line[] {
    const claude = ['claude', version, model].filter(Boolean).join(' ');
    if (claude === this.#claude) return [];
    this.#claude = claude;
    return [this.#rule(claude)];
  }

  #outcome(entry: EntryOf<'outcome'>): Line[] {
    const { depth, id, isError, edit } = entry;
    const mark = isError ? this.#style('bad', '  x ') : this.#style('dim', '  = ');
    const name = id === this.#openCall || entry.tool === '' ? '' : `${toolWords(entry)}: `;
    if (edit !== undefined) return this.#edit(entry, edit, mark, name);
    const lines = safeText(entry.text.slice(0, lineColumns * 32))
      .split('\n')
      .filter((line) => line.trim() !== '');
    const shown = lines.slice(0, isError ? errorLinesMax : 1).map((line) => safeLine(line, lineColumns));
    const first = shown[0] ?? this.#style('dim', '(no output)');
    const hidden = entry.lines - Math.max(1, shown.length);
    const more = hidden > 0 ? this.#style('dim', `  (+${plural(hidden, 'line')})`) : '';
    const rest = shown.slice(1).map((text) => this.#line(depth, '    ', text));
    const last = rest.pop();
    if (last === undefined) return [this.#line(depth, mark, `${name}${first}${more}`)];
    return [this.#line(depth, mark, `${name}${first}`), ...rest, { ...last, text: `${last.text}${more}` }];
  }

  #edit({ depth }: EntryOf<'outcome'>, edit: FileEdit, mark: string, name: string): Line[] {
    const { isNew, added, removed, hunks } = edit;
    const counts = isNew ? `new file, ${plural(added, 'line')}` : `+${added} -${removed}`;
    const lines: Line[] = [this.#line(depth, mark, `${name}${counts}`)];
    let total = 0;
    for (const { oldStart, newStart, lines: changed } of hunks) {
      if (hunks.length > 1 || (oldStart ?? 1) > 1) {
        const place = oldStart === undefined ? '@@' : `@@ -${oldStart} +${newStart ?? oldStart} @@`;
        if (total < diffLinesMax) lines.push(this.#line(depth, '    ', this.#style('accent', place)));
      }
      for (const line of changed.slice(0, Math.max(0, diffLinesMax - total))) {
        lines.push(this.#line(depth, '    ', this.#diffLine(line)));
      }
      total += changed.length;
    }
    const hidden = total - diffLinesMax;
    if (hidden > 0) lines.push(this.#line(depth, '    ', this.#style('dim', `… ${plural(hidden, 'more line')}`)));
    return lines;
  }

  #diffLine(line: string): string {
    const head = line.slice(0, diffColumns * 2).replace(/\r$/, '');
    const shown = fitColumns(spelledLine(expandTabs(head)), diffColumns);
    if (line.startsWith('+')) return this.#style('good', shown);
    return line.startsWith('-') ? this.#style('bad', shown) : shown;
  }

  #result(entry: EntryOf<'result'>): Line[] {
    const { isError, interrupted, errors, denied, turns, durationMs, costUsd, tokens } = entry;
    const failed = interrupted ? this.#style('warn', 'interrupted') : this.#style('bad', 'failed');
    const ended = isError ? failed : this.#style('good', 'done');
    const money = this.#showsAttempts ? [] : [formatMoney(costUsd), formatTokens(tokens)];
    const parts = [...money, plural(turns, 'turn'), formatDuration(durationMs)];
    const refused = denied.length === 0 ? [] : [this.#warning(`denied: ${[...new Set(denied)].join(', ')}`)];
    return [
      ...(entry.text === undefined ? [] : markdownLines(entry.text, this.#style)),
      ...errors.map((error): Line => ({ lead: this.#style('bad', '! '), text: safeLine(error, lineColumns) })),
      ...refused,
      { lead: this.#style('dim', '-- '), text: `${ended}: ${parts.join(', ')}` },
    ];
  }

  #beginning(text: string, linesMax: number, tone: Tone, mark: string): Line[] {
    const lines = safeText(text.slice(0, lineColumns * 32))
      .split('\n')
      .filter((line) => line.trim() !== '');
    const shown = lines.slice(0, linesMax).map((line): Line => {
      return { lead: this.#style(tone, mark), text: this.#style(tone, safeLine(line, lineColumns)) };
    });
    return lines.length > linesMax
      ? [...shown, { lead: this.#style(tone, mark), text: this.#style(tone, '…') }]
      : shown;
  }

  #line(depth: number, lead: string, text: string): Line {
    return { lead: indent(depth) + lead, text };
  }

  #rule(text: string): Line {
    return { lead: '', text: this.#style('dim', `-- ${safeLine(text, lineColumns)}`) };
  }

  #warning(text: string): Line {
    return { lead: this.#style('warn', '! '), text: this.#style('warn', safeLine(text, lineColumns)) };
  }
}

function usedWords({ costUsd, estimated, tokens, durationMs }: Usage): string {
  return [formatMoney(costUsd, estimated), formatTokens(tokens), formatDuration(durationMs)].join(', ');
}

function toolWords({ tool, target }: { readonly tool: string; readonly target: string }): string {
  return safeLine(`${tool} ${target}`, lineColumns);
}

function compactionWords({ trigger, tokensBefore, tokensAfter }: EntryOf<'compaction'>): string {
  const how = trigger === undefined ? '' : ` (${trigger})`;
  const before = tokensBefore === undefined ? '' : `: ${formatCount(tokensBefore)} tokens before`;
  const after = before === '' || tokensAfter === undefined ? '' : `, ${formatCount(tokensAfter)} after`;
  return `the conversation was compacted${how}${before}${after}`;
}

function indented(depth: number, lines: readonly Line[]): Line[] {
  return lines.map(({ lead, text }) => ({ lead: indent(depth) + lead, text }));
}

/** Sub-agents are indented. */
function indent(depth: number): string {
  return '    '.repeat(Math.min(depth, depthMax));
}

export interface AttemptMark {
  readonly kind: 'attempt';
  readonly id: string;
  /** Offset in the transcript, bytes. */
  readonly offset: number;
  readonly entry: Extract<TranscriptEntry, { kind: 'attempt-began' }>;
  /** Absent while the attempt runs. */
  ended?: TranscriptEntry;
  readonly after: TranscriptEntry[];
}

export interface MessageMark {
  readonly kind: 'message';
  readonly offset: number;
  readonly entry: UserSaid;
  readonly isBetween: boolean;
}

type UserSaid = Extract<TranscriptEntry, { kind: 'user-said' }>;

export type TranscriptMark = AttemptMark | MessageMark;

export class TranscriptMarks {
  readonly #sessionId: SessionId;
  readonly list: TranscriptMark[] = [];
  #attempt: AttemptMark | undefined;
  /** Messages for the next attempt, from `say` and `retry`. */
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
        // Without an offset, the message was sent before and is kept for the next attempt.
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
    // An attempt without cost at the death of the runner starts again under the same id.
    if (this.list.some((mark) => mark.kind === 'attempt' && mark.id === id)) return;
    if (prompt !== undefined) this.#say(prompt, offset);
    const after = kind === 'start' ? undefined : endingOf(this.#attempt?.ended);
    const why = defined({ after });
    const entry = { kind: 'attempt-began', number, why: kind, at, ...why } as const;
    this.#attempt = { kind: 'attempt', id, offset, entry, after: [] };
    this.list.push(this.#attempt);
  }

  #leave({ at, usage }: Extract<GroupEvent, { type: 'session_detached' }>): void {
    const entry = { kind: 'attached', at, usage } as const;
    const after = this.#attempt?.after;
    if (after?.some((other) => Bun.deepEquals(other, entry)) === false) after.push(entry);
  }

  #say(entry: UserSaid, offset: number): void {
    if (this.list.some((mark) => mark.offset === offset && Bun.deepEquals(mark.entry, entry))) return;
    const isBetween = this.#attempt === undefined || this.#attempt.ended !== undefined;
    this.list.push({ kind: 'message', offset, entry, isBetween });
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

export class MarkPrinter {
  readonly #marks: readonly TranscriptMark[];
  readonly #print: (entry: TranscriptEntry) => void;
  #printed = 0;
  /** The last attempt, and how much of its end was printed. */
  #open: AttemptMark | undefined;
  #endPrinted = 0;

  constructor(marks: readonly TranscriptMark[], tell: (entry: TranscriptEntry) => void) {
    this.#marks = marks;
    this.#print = tell;
  }

  get hasPrinted(): boolean {
    return this.#printed > 0;
  }

  get nextOffset(): number | undefined {
    return this.#marks[this.#printed]?.offset;
  }

  reach(position: number): void {
    for (let mark = this.#marks[this.#printed]; mark !== undefined; mark = this.#marks[this.#printed]) {
      if (mark.offset > position) return;
      if (mark.kind === 'attempt' || mark.isBetween) this.printEnd();
      this.#printed += 1;
      if (mark.kind === 'attempt') this.#begin(mark);
      this.#print(mark.entry);
    }
  }

  skip(position: number): void {
    for (let mark = this.#marks[this.#printed]; mark !== undefined; mark = this.#marks[this.#printed]) {
      if (mark.offset >= position) return;
      this.#printed += 1;
      if (mark.kind === 'attempt') this.#begin(mark);
    }
  }

  /** Prints the end of the last attempt, once. */
  printEnd(): void {
    const { ended, after = [] } = this.#open ?? {};
    if (ended === undefined) return;
    const end = [ended, ...after];
    for (const entry of end.slice(this.#endPrinted)) this.#print(entry);
    this.#endPrinted = end.length;
  }

  #begin(mark: AttemptMark): void {
    this.#open = mark;
    this.#endPrinted = 0;
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
