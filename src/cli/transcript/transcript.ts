/** Renders the stream-json lines of a transcript for a terminal. */

import { type GroupPaths, sessionPaths } from '../../app/resolve.ts';
import { TranscriptReader } from '../../claude/transcript-entries.ts';
import type { SessionId } from '../../core/group.ts';
import { ByteLineSplitter } from '../../core/line-splitter.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import type { World } from '../../system/world.ts';
import { plainStyle, type Style } from '../../view/format.ts';
import { safeJson, spelledControls } from '../../view/terminal-text.ts';
import { EntryLines, MarkPrinter, type TranscriptMark } from '../../view/transcript/entry-lines.ts';
import { type Line, wholeLine, wrapLine } from '../../view/transcript/markdown.ts';
import type { Output } from '../output.ts';

export class TranscriptRenderer {
  readonly #reader = new TranscriptReader();
  readonly #lines: EntryLines;

  /** `showsAttempts`: the caller also passes the start and end of attempts to `show`. */
  constructor(style: Style, showsAttempts = false) {
    this.#lines = new EntryLines({ style, showsAttempts });
  }

  read(line: string): TranscriptEntry[] {
    return this.#reader.read(line);
  }

  show(entry: TranscriptEntry): Line[] {
    if (entry.kind === 'attempt-began') this.#reader.restart();
    return this.#lines.linesOf(entry);
  }
}

export interface TranscriptSink {
  entry(entry: TranscriptEntry): void;
  /** `isTorn`: a partial line whose worker is gone. */
  line(line: Uint8Array, isTorn: boolean): void;
  flush(): void;
  end(): void;
}

export function rawSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  const decoder = new TextDecoder();
  let held: Uint8Array[] = [];
  let isAfterOpen = false;
  const isShown = stdout.isTerminal || stdout.isWorkflowLog;
  return {
    entry: () => {},
    line(line, isTorn) {
      const text = grep !== undefined || isShown ? decoder.decode(line) : '';
      if (grep !== undefined && !grep.test(text)) return;
      // JSON escapes most control characters, but a hostile or damaged line may contain them.
      const shown = isShown ? Buffer.from(spelledControls(text)) : line;
      const isOpen = isTorn && !isShown;
      held.push(Buffer.from(isAfterOpen ? '\n' : ''), shown, Buffer.from(isOpen ? '' : '\n'));
      isAfterOpen = isOpen;
    },
    flush() {
      const bytes = Buffer.concat(held);
      if (isShown) stdout.write(bytes.toString());
      else stdout.raw(bytes);
      held = [];
    },
    end: () => {},
  };
}

/** The entries of each line, and those between lines, are passed to `show`. */
function entryReader(style: Style, show: (entry: TranscriptEntry, lines: readonly Line[]) => void) {
  const decoder = new TextDecoder();
  const renderer = new TranscriptRenderer(style, true);
  const entry = (entry: TranscriptEntry): void => show(entry, renderer.show(entry));
  const line = (line: Uint8Array, isTorn: boolean): void => {
    for (const read of renderer.read(decoder.decode(line))) entry(isTorn ? asTorn(read) : read);
  };
  return { entry, line };
}

export function readableSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  let held: string[] = [];
  const reader = entryReader(stdout.style, (_, lines) => {
    for (const line of lines) {
      const whole = wholeLine(line);
      if (grep !== undefined && !grep.test(Bun.stripANSI(whole))) continue;
      held.push(...(stdout.isTerminal ? wrapLine(line, stdout.columns) : [whole]));
    }
  });
  return {
    ...reader,
    flush() {
      if (held.length > 0) stdout.write(`${held.join('\n')}\n`);
      held = [];
    },
    end: () => {},
  };
}

export function jsonSink(
  stdout: Output,
  grep: RegExp | undefined,
  { groupId, sessionId }: { readonly groupId: string; readonly sessionId: SessionId },
): TranscriptSink {
  let held = `{"groupId":${safeJson(groupId)},"sessionId":${safeJson(sessionId)},"entries":[`;
  let separator = '\n';
  const reader = entryReader(plainStyle, (entry, lines) => {
    if (grep !== undefined && !lines.map(wholeLine).some((line) => grep.test(line))) return;
    held += `${separator}${safeJson(entry)}`;
    separator = ',\n';
  });
  return {
    ...reader,
    flush() {
      stdout.write(held);
      held = '';
    },
    end() {
      held += '\n]}\n';
    },
  };
}

/** Shows the line of a killed worker as partial instead of invalid. */
function asTorn(entry: TranscriptEntry): TranscriptEntry {
  return entry.kind === 'unreadable' ? { ...entry, torn: true } : entry;
}

/** Size of one read, so that memory holds only a part of the transcript and its longest line. */
const chunkBytes = 1024 * 1024;

export interface PrinterTarget {
  readonly stdout: Output;
  readonly sink: TranscriptSink;
  readonly marks: readonly TranscriptMark[];
}

export class TranscriptPrinter {
  readonly #world: World;
  readonly #path: string;
  readonly #to: PrinterTarget;
  readonly #splitter = new ByteLineSplitter();
  #position = 0;
  readonly #teller: MarkPrinter;

  constructor(world: World, session: { readonly paths: GroupPaths; readonly sessionId: SessionId }, to: PrinterTarget) {
    this.#world = world;
    this.#path = sessionPaths(session.paths, session.sessionId).transcript;
    this.#to = to;
    this.#teller = new MarkPrinter(to.marks, (entry) => this.#tell(entry));
  }

  get isEmpty(): boolean {
    return this.#position === 0 && !this.#teller.hasPrinted;
  }

  get size(): number {
    return this.#world.files.info(this.#path)?.size ?? 0;
  }

  /** Prints what was added, up to byte `limit`: the size of the file before the log was read. */
  async printTo(limit: number): Promise<void> {
    const { stdout, sink } = this.#to;
    while (!stdout.isClosed) {
      this.#teller.reach(this.#position);
      const room = Math.min(limit, this.#teller.nextOffset ?? limit) - this.#position;
      const chunk = this.#world.files.readBytes(this.#path, this.#position, Math.max(0, Math.min(chunkBytes, room)));
      if (chunk.length === 0) break;
      this.#position += chunk.length;
      for (const line of this.#splitter.push(chunk)) sink.line(line, false);
      sink.flush();
      // Wait for a slow reader, so that the transcript does not pile up in memory.
      await stdout.flush();
    }
    // The last output of an attempt may have arrived since. Print it before the end of the attempt.
    if (this.#position >= this.size) this.#teller.printEnd();
    sink.flush();
  }

  finish(isGrowing: boolean): void {
    if (!isGrowing) this.#tellTorn();
    this.#teller.printEnd();
    this.#to.sink.end();
    this.#to.sink.flush();
  }

  #tell(entry: TranscriptEntry): void {
    // The attempt has ended, so its partial line will never be completed.
    if (entry.kind === 'attempt-ended') this.#tellTorn();
    this.#to.sink.entry(entry);
  }

  #tellTorn(): void {
    const rest = this.#splitter.rest();
    if (rest !== null) this.#to.sink.line(rest, true);
  }
}
