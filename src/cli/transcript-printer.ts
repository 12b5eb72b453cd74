/**
 * Prints the transcript of a session, from its beginning and as it grows, in parts: however large the file is, no more
 * than a part of it and its longest line are in memory.
 */
import type { SessionId } from '../core/group.ts';
import { ByteLineSplitter } from '../runner/line-splitter.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';
import type { AttemptMark } from './attempt-marks.ts';
import type { Output } from './output.ts';
import type { TranscriptSink } from './transcript-sinks.ts';

const chunkBytes = 1024 * 1024;

export interface PrinterTarget {
  readonly stdout: Output;
  readonly sink: TranscriptSink;
  /** In the order of the attempts; it may grow. */
  readonly marks: readonly AttemptMark[];
}

export class TranscriptPrinter {
  readonly #world: World;
  readonly #path: string;
  readonly #to: PrinterTarget;
  readonly #splitter = new ByteLineSplitter();
  #position = 0;
  /** Attempts whose beginning was told. */
  #told = 0;
  #endIsTold = true;

  constructor(world: World, session: { readonly paths: GroupPaths; readonly sessionId: SessionId }, to: PrinterTarget) {
    this.#world = world;
    this.#path = sessionPaths(session.paths, session.sessionId).transcript;
    this.#to = to;
  }

  /** Nothing was printed, not even that it was started. */
  get isEmpty(): boolean {
    return this.#position === 0 && this.#told === 0;
  }

  /** Bytes of the transcript now. */
  get size(): number {
    return this.#world.files.info(this.#path)?.size ?? 0;
  }

  /**
   * Prints what was added since, up to byte `limit`. To be given a size that the transcript had before the log was
   * read: then every attempt that it holds has its mark.
   */
  async printTo(limit: number): Promise<void> {
    const { stdout, sink, marks } = this.#to;
    while (!stdout.isClosed) {
      this.#tellAttempts();
      const room = Math.min(limit, marks[this.#told]?.offset ?? limit) - this.#position;
      const chunk = this.#world.files.readBytes(this.#path, this.#position, Math.max(0, Math.min(chunkBytes, room)));
      if (chunk.length === 0) break;
      this.#position += chunk.length;
      if (sink.chunk !== undefined) sink.chunk(chunk);
      else for (const line of this.#splitter.push(chunk)) sink.line(line);
      sink.flush();
      // A reader that is slower than the disk must not make us keep the whole transcript.
      await stdout.flush();
    }
    // What an attempt printed last may have come since; its end is told behind it.
    if (this.#position >= this.size) this.#tellEnd();
    sink.flush();
  }

  /** Ends the output. `isGrowing`: the worker is in the middle of a line, which is then left out. */
  finish(isGrowing: boolean): void {
    if (!isGrowing) this.#tellTorn();
    this.#tellEnd();
    this.#to.sink.end();
    this.#to.sink.flush();
  }

  /** Tells of every attempt that begins where the printer stands. */
  #tellAttempts(): void {
    const { marks, sink } = this.#to;
    for (let mark = marks[this.#told]; mark !== undefined; mark = marks[this.#told]) {
      if (mark.offset > this.#position) return;
      this.#tellEnd();
      this.#told += 1;
      this.#endIsTold = false;
      sink.entry(mark.began);
    }
  }

  #tellEnd(): void {
    const ended = this.#to.marks[this.#told - 1]?.ended;
    if (this.#endIsTold || ended === undefined) return;
    this.#endIsTold = true;
    // Nobody is left who could finish the line.
    this.#tellTorn();
    this.#to.sink.entry(ended);
  }

  #tellTorn(): void {
    const rest = this.#splitter.rest();
    if (rest !== null) this.#to.sink.torn(rest);
  }
}
