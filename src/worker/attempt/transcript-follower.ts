/** Follows a transcript. File events are hints; polling is authoritative. */
import { LineSplitter } from '../../core/line-splitter.ts';
import type { ReadFile, World } from '../../system/world.ts';

/** The first polls are frequent: a write during the set-up of the watch gives no hint. */
const firstPollMs = 16;
const pollMsMax = 1_000;
const chunkBytes = 256 * 1024;
const nothing = new Uint8Array(0);

export interface FollowerOptions {
  readonly path: string;
  readonly offset: number;
  readonly onLine: (line: string) => void;
  readonly onCaughtUp?: () => void;
}

export class TranscriptFollower {
  readonly #world: World;
  readonly #options: FollowerOptions;
  readonly #splitter = new LineSplitter();
  readonly #unwatch: () => void;
  /** Kept open: reopening it at each hint would cost more than the read. */
  #file: ReadFile | null = null;
  #position: number;
  /** When a read last reached the end of the file; and the same for delivered lines. */
  #endAtMs: number;
  #deliveredEndAtMs: number;
  #isOpen = true;
  #cancelPoll: () => void;

  constructor(world: World, options: FollowerOptions) {
    this.#world = world;
    this.#options = options;
    this.#position = options.offset;
    this.#endAtMs = world.clock.now();
    this.#deliveredEndAtMs = this.#endAtMs;
    this.#unwatch = world.files.watch(options.path, () => this.#readNew());
    this.#cancelPoll = world.clock.after(0, () => this.#poll(firstPollMs));
  }

  /** Lower bound for when the current line was written, ms since 1970. */
  get writtenAfterMs(): number {
    return this.#deliveredEndAtMs;
  }

  drain(): void {
    // The line's handler may have closed this follower.
    for (let delivered = 1; delivered > 0 && this.#isOpen; ) delivered = this.#deliver(this.#read());
    this.#options.onCaughtUp?.();
  }

  /** Reads to the end, delivers a partial last line too, and stops following, unless it throws. */
  finish(): void {
    if (!this.#isOpen) return;
    this.drain();
    this.close();
    const rest = this.#splitter.rest();
    if (rest !== null) this.#options.onLine(rest);
  }

  close(): void {
    this.#isOpen = false;
    this.#cancelPoll();
    this.#unwatch();
    this.#file?.close();
    this.#file = null;
  }

  /** Empty at the end, and while there is no file. */
  #read(): Uint8Array {
    const nowMs = this.#world.clock.now();
    this.#file ??= this.#world.files.openRead(this.#options.path);
    const chunk = this.#file?.read(this.#position, chunkBytes) ?? nothing;
    if (chunk.length < chunkBytes) this.#endAtMs = nowMs;
    return chunk;
  }

  /** Delivers the complete lines of a chunk; returns its length. */
  #deliver(chunk: Uint8Array): number {
    this.#position += chunk.length;
    for (const line of this.#splitter.push(chunk)) this.#options.onLine(line);
    this.#deliveredEndAtMs = this.#endAtMs;
    return chunk.length;
  }

  #poll(nextMs: number): void {
    this.#readNew();
    // The line's handler may have closed this follower.
    if (!this.#isOpen) return;
    this.#cancelPoll = this.#world.clock.after(nextMs, () => this.#poll(Math.min(2 * nextMs, pollMsMax)));
  }

  #readNew(): void {
    const before = this.#position;
    // A short chunk means the end; later writes give hints.
    for (let delivered = chunkBytes; delivered === chunkBytes && this.#isOpen; ) {
      delivered = this.#deliver(this.#read());
    }
    if (this.#position > before) this.#options.onCaughtUp?.();
  }
}
