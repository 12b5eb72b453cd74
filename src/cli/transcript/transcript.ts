/**
 * cli/transcript/: a transcript as a person reads it. This file: from the lines that claude printed to lines for a
 * terminal.
 */
import { TranscriptReader } from '../../claude/transcript-entries.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import type { Style } from '../../view/format.ts';
import { EntryLines } from '../../view/transcript/entry-lines.ts';
import type { Line } from '../../view/transcript/line.ts';

/** Turns stream-json lines into lines for people; to be given all lines of a transcript in order. */
export class TranscriptRenderer {
  readonly #reader = new TranscriptReader();
  readonly #lines: EntryLines;

  /** `tellsAttempts`: the entries of attempts are given as well, see `show`. */
  constructor(style: Style, tellsAttempts = false) {
    this.#lines = new EntryLines({ style, tellsAttempts });
  }

  /** What this line of the transcript has for a reader. */
  read(line: string): TranscriptEntry[] {
    return this.#reader.read(line);
  }

  /** The lines for an entry, in order with all others. */
  show(entry: TranscriptEntry): Line[] {
    if (entry.kind === 'attempt-began') this.#reader.restart();
    return this.#lines.linesOf(entry);
  }
}
