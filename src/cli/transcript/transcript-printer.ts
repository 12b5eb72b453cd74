/**
 * Prints the transcript of a session, from its beginning and as it grows, in parts: however large the file is, no more
 * than a part of it and its longest line are in memory.
 */

import { type GroupPaths, sessionPaths } from '../../app/groups.ts';
import type { SessionId } from '../../core/group.ts';
import { ByteLineSplitter } from '../../core/line-splitter.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import type { World } from '../../system/world.ts';
import { MarkTeller, type TranscriptMark } from '../../view/transcript/transcript-marks.ts';
import type { Output } from '../output.ts';
import type { TranscriptSink } from './transcript-sinks.ts';

const chunkBytes = 1024 * 1024;

export interface PrinterTarget {
  readonly stdout: Output;
  readonly sink: TranscriptSink;
  /** In the order in which they were logged; it may grow. */
  readonly marks: readonly TranscriptMark[];
}

export class TranscriptPrinter {
  readonly #world: World;
  readonly #path: string;
  readonly #to: PrinterTarget;
  readonly #splitter = new ByteLineSplitter();
  #position = 0;
  readonly #teller: MarkTeller;

  constructor(world: World, session: { readonly paths: GroupPaths; readonly sessionId: SessionId }, to: PrinterTarget) {
    this.#world = world;
    this.#path = sessionPaths(session.paths, session.sessionId).transcript;
    this.#to = to;
    this.#teller = new MarkTeller(to.marks, (entry) => this.#tell(entry));
  }

  /** Nothing was printed, not even that it was started. */
  get isEmpty(): boolean {
    return this.#position === 0 && !this.#teller.hasToldAny;
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
      // A reader that is slower than the disk must not make us keep the whole transcript.
      await stdout.flush();
    }
    // What an attempt printed last may have come since; its end is told behind it.
    if (this.#position >= this.size) this.#teller.tellEnd();
    sink.flush();
  }

  /** Ends the output. `isGrowing`: the worker is in the middle of a line, which is then left out. */
  finish(isGrowing: boolean): void {
    if (!isGrowing) this.#tellTorn();
    this.#teller.tellEnd();
    this.#to.sink.end();
    this.#to.sink.flush();
  }

  #tell(entry: TranscriptEntry): void {
    // Nobody is left who could finish the line.
    if (entry.kind === 'attempt-ended') this.#tellTorn();
    this.#to.sink.entry(entry);
  }

  #tellTorn(): void {
    const rest = this.#splitter.rest();
    if (rest !== null) this.#to.sink.torn(rest);
  }
}
