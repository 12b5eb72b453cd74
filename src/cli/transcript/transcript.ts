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
  line(line: Uint8Array): void;
  /** Receives a partial line whose worker is gone, so that the next attempt starts on a new line. */
  torn(line: Uint8Array): void;
  /** If present, receives the bytes unchanged, and `line` is not called. */
  readonly chunk?: (bytes: Uint8Array) => void;
  flush(): void;
  end(): void;
}

export function rawSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  const decoder = new TextDecoder();
  let held: Uint8Array[] = [];
  let isTorn = false;
  const isShown = stdout.isTerminal || stdout.isWorkflowLog;
  const print = (line: Uint8Array, end: string): void => {
    const needsText = grep !== undefined || isShown;
    const text = needsText ? decoder.decode(line) : '';
    if (grep !== undefined && !grep.test(text)) return;
    // JSON escapes most control characters, but a hostile or damaged line may contain them.
    held.push(Buffer.from(isTorn ? '\n' : ''));
    held.push(isShown ? Buffer.from(spelledControls(text)) : line, Buffer.from(end));
    isTorn = end === '';
  };
  return {
    entry: () => {},
    line: (line) => print(line, '\n'),
    torn: (line) => print(line, isShown ? '\n' : ''),
    ...(grep === undefined && !isShown ? { chunk: (bytes: Uint8Array) => held.push(bytes) } : {}),
    flush() {
      const bytes = Buffer.concat(held);
      if (isShown) stdout.write(bytes.toString());
      else stdout.bytes(bytes);
      held = [];
    },
    end: () => {},
  };
}

export function readableSink(stdout: Output, grep: RegExp | undefined): TranscriptSink {
  const decoder = new TextDecoder();
  const renderer = new TranscriptRenderer(stdout.style, true);
  let held: string[] = [];
  const print = (line: Line): void => {
    const whole = wholeLine(line);
    if (grep !== undefined && !grep.test(Bun.stripANSI(whole))) return;
    held.push(...(stdout.isTerminal ? wrapLine(line, stdout.columns) : [whole]));
  };
  const show = (entry: TranscriptEntry): void => {
    for (const line of renderer.show(entry)) print(line);
  };
  const read = (line: Uint8Array): void => {
    for (const entry of renderer.read(decoder.decode(line))) show(entry);
  };
  return {
    entry: show,
    line: read,
    torn: (line) => {
      for (const entry of renderer.read(decoder.decode(line))) show(asTorn(entry));
    },
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
  session: { readonly groupId: string; readonly sessionId: SessionId },
): TranscriptSink {
  const decoder = new TextDecoder();
  const renderer = new TranscriptRenderer(plainStyle, true);
  const { groupId, sessionId } = session;
  let held = `{"groupId":${safeJson(groupId)},"sessionId":${safeJson(sessionId)},"entries":[`;
  let separator = '\n';
  const print = (entry: TranscriptEntry): void => {
    const lines = renderer.show(entry).map(wholeLine);
    if (grep !== undefined && !lines.some((line) => grep.test(line))) return;
    held += `${separator}${safeJson(entry)}`;
    separator = ',\n';
  };
  const read = (line: Uint8Array): void => {
    for (const entry of renderer.read(decoder.decode(line))) print(entry);
  };
  return {
    entry: print,
    line: read,
    torn: (line) => {
      for (const entry of renderer.read(decoder.decode(line))) print(asTorn(entry));
    },
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
      if (sink.chunk !== undefined) sink.chunk(chunk);
      else for (const line of this.#splitter.push(chunk)) sink.line(line);
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
    if (rest !== null) this.#to.sink.torn(rest);
  }
}
