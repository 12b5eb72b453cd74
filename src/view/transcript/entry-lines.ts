/**
 * view/transcript/: transcripts for people. This file: the entries of a transcript as lines for people: what was
 * said, each call on one line, what came of it, edits.
 */
import { unreachable } from '../../core/failure.ts';
import type { Usage } from '../../core/group.ts';
import type { FileEdit, TranscriptEntry } from '../../core/transcript.ts';
import { spelledLine } from '../diff-text.ts';
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
import { fitColumns, safeLine, safeText } from '../terminal-text.ts';
import type { Line } from './markdown.ts';
import { expandTabs, markdownLines } from './markdown.ts';

type EntryOf<K extends TranscriptEntry['kind']> = Extract<TranscriptEntry, { kind: K }>;

const lineColumns = 160;
const diffColumns = 400;
const diffLinesMax = 60;
const thoughtLinesMax = 3;
const errorLinesMax = 3;
const sentenceColumns = 1_000;
/** Sub-agents of sub-agents are moved in no further than this. */
const depthMax = 8;

export interface EntryLinesOptions {
  readonly style: Style;
  /** The costs of attempts are told when they end, so that turns need not tell them as well. */
  readonly tellsAttempts: boolean;
}

export class EntryLines {
  readonly #style: Style;
  readonly #tellsAttempts: boolean;
  #claude = '';
  /** The call on the line before, whose outcome needs no name. */
  #openCall = '';
  #last: TranscriptEntry['kind'] | undefined;

  constructor({ style, tellsAttempts }: EntryLinesOptions) {
    this.#style = style;
    this.#tellsAttempts = tellsAttempts;
  }

  linesOf(entry: TranscriptEntry): Line[] {
    const lines = this.#describe(entry);
    if (lines.length === 0) return [];
    const spaced = this.#isSetOff(entry.kind) ? [{ lead: '', text: '' }, ...lines] : lines;
    this.#openCall = entry.kind === 'call' ? entry.id : '';
    this.#last = entry.kind;
    return spaced;
  }

  /** A blank line before each attempt, around what the user said, and before what is said after something was done. */
  #isSetOff(kind: TranscriptEntry['kind']): boolean {
    if (kind === 'attempt-began' || kind === 'taken-over') return this.#last !== undefined;
    if (kind === 'user-said' || this.#last === 'user-said') return this.#last !== undefined && kind !== this.#last;
    return kind === 'said' && (this.#last === 'outcome' || this.#last === 'result' || this.#last === 'compaction');
  }

  #describe(entry: TranscriptEntry): Line[] {
    switch (entry.kind) {
      case 'attempt-began':
        return this.#attemptBegan(entry);
      case 'attempt-ended':
        return this.#attemptEnded(entry);
      case 'taken-over':
        return this.#takenOver(entry);
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
      case 'trouble':
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
    const verb = why === 'start' ? 'started' : why === 'resume' ? 'resumed' : 'tried again';
    const reason = after === undefined ? '' : ` after: ${safeLine(after, lineColumns)}`;
    const title = this.#style('strong', `== attempt ${number} ${verb}${reason}`);
    // Each attempt may have another program, so it says again who it is.
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
    const said = safeLine(message ?? '', sentenceColumns);
    return said === '' ? [head] : [head, { lead: '   ', text: said }];
  }

  #takenOver({ at, usage }: EntryOf<'taken-over'>): Line[] {
    const title = `${this.#style('strong', '== taken over')}: ${usedWords(usage)}`;
    return [
      { lead: '', text: `${title}  ${this.#style('dim', formatClock(at))}` },
      { lead: '   ', text: "You spoke with it in claude's own terminal." },
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
    const said = safeText(entry.text.slice(0, lineColumns * 32))
      .split('\n')
      .filter((line) => line.trim() !== '');
    const shown = said.slice(0, isError ? errorLinesMax : 1).map((line) => safeLine(line, lineColumns));
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
    const money = this.#tellsAttempts ? [] : [formatMoney(costUsd), formatTokens(tokens)];
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

/** What a sub-agent does is set off. */
function indent(depth: number): string {
  return '    '.repeat(Math.min(depth, depthMax));
}
