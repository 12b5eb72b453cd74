/**
 * The end of a session's transcript as people read it, with what the log tells of its attempts and of what the user
 * said; kept up to date by looking at the file.
 */

import { LineSplitter } from '../../core/line-splitter.ts';
import type { TranscriptEntry } from '../../core/transcript.ts';
import type { World } from '../../system/world.ts';
import { colourStyle } from '../../view/format.ts';
import type { Line } from '../../view/transcript/line.ts';
import { MarkTeller, type TranscriptMark } from '../../view/transcript/transcript-marks.ts';
import { TranscriptRenderer } from '../transcript/transcript.ts';

/** How far from its end a transcript is read, bytes. */
const tailBytes = 256 * 1024;
const linesMax = 1_000;
const newline = 0x0a;

export interface LogTail {
  /** Harmless, styled by `colourStyle`. */
  readonly lines: readonly Line[];
  /** Reads what was added. */
  refresh(): void;
}

/** `marks` may grow. */
export function tailLog(world: World, path: string, marks: readonly TranscriptMark[]): LogTail {
  let reading = new Reading(world, path, marks, 0);
  return {
    get lines() {
      return reading.lines;
    },
    refresh() {
      const size = world.files.info(path)?.size ?? 0;
      // A mark may come later than what was printed behind it.
      const isBehind = reading.isPastMark || size < reading.offset || size - reading.offset > tailBytes;
      if (isBehind) reading = new Reading(world, path, marks, Math.max(0, size - tailBytes));
      reading.readTo(size);
    },
  };
}

/** A log that somebody reads at leisure is shown from its beginning, if it is not larger than that, bytes. */
const wholeBytes = 16 * 1024 * 1024;

/** The whole log, as `tailLog` shows the end of it. */
export function wholeLog(world: World, path: string, marks: readonly TranscriptMark[]): readonly Line[] {
  const size = world.files.info(path)?.size ?? 0;
  const reading = new Reading(world, path, marks, Math.max(0, size - wholeBytes), Number.POSITIVE_INFINITY);
  reading.readTo(size);
  return reading.lines;
}

class Reading {
  readonly #world: World;
  readonly #path: string;
  readonly #renderer = new TranscriptRenderer(colourStyle, true);
  readonly #splitter = new LineSplitter();
  readonly #teller: MarkTeller;
  offset: number;
  lines: Line[] = [];
  readonly #linesMax: number;

  constructor(world: World, path: string, marks: readonly TranscriptMark[], from: number, most = linesMax) {
    this.#world = world;
    this.#linesMax = most;
    this.#path = path;
    this.#teller = new MarkTeller(marks, (entry) => this.#show(entry));
    this.offset = from;
    if (from === 0) return;
    // The line in whose middle this may be is left out.
    const bytes = world.files.readBytes(path, from, tailBytes);
    const end = bytes.indexOf(newline);
    this.offset += end === -1 ? bytes.length : end + 1;
    this.#teller.skip(this.offset);
  }

  get isPastMark(): boolean {
    const { nextOffset } = this.#teller;
    return nextOffset !== undefined && nextOffset < this.offset;
  }

  readTo(size: number): void {
    this.#teller.reach(this.offset);
    while (this.offset < size) {
      const end = Math.min(size, this.#teller.nextOffset ?? size);
      const bytes = this.#world.files.readBytes(this.#path, this.offset, end - this.offset);
      if (bytes.length === 0) break;
      this.offset += bytes.length;
      for (const line of this.#splitter.push(bytes)) for (const entry of this.#renderer.read(line)) this.#show(entry);
      this.#teller.reach(this.offset);
    }
    this.#teller.tellEnd();
    if (this.lines.length > this.#linesMax) this.lines = this.lines.slice(-this.#linesMax);
  }

  #show(entry: TranscriptEntry): void {
    this.lines.push(...this.#renderer.show(entry));
  }
}
