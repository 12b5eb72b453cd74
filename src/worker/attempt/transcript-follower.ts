/** Follows a transcript. File events are hints; a slow poll of the file is authoritative. */
import { LineSplitter } from '../../core/line-splitter.ts';
import type { ReadFile, World } from '../../system/world.ts';

/** The first polls follow each other closely: a write during the set-up of the watch gives no hint. */
const firstPollMs = 16;
/** The longest time between two polls; the first value as long as every change came with a hint. */
const pollMs = { hinted: 2_000, unhinted: 500 };
const chunkBytes = 256 * 1024;
/** Maximum number of chunks at a time, whatever a session has written, because other sessions wait. */
const chunksAtOnce = 64;
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
  /** Kept open: reopening it and reading its size at each hint would cost more than the read itself. */
  #file: ReadFile | null = null;
  #position: number;
  /** When a read last reached the end of the file, and the same for reads whose lines were delivered. */
  #endAtMs: number;
  #toldEndAtMs: number;
  #isOpen = true;
  #pollMsMax = pollMs.hinted;
  #cancelPoll: () => void;
  #cancelRest = (): void => {};

  constructor(world: World, options: FollowerOptions) {
    this.#world = world;
    this.#options = options;
    this.#position = options.offset;
    this.#endAtMs = world.clock.now();
    this.#toldEndAtMs = this.#endAtMs;
    // Watch the file itself: other files in its folder do not matter here.
    this.#unwatch = world.files.watch(options.path, () => this.#hear());
    this.#cancelPoll = world.clock.after(0, () => this.#poll(firstPollMs));
  }

  /** The line being delivered was written after this time, ms since 1970, or before the file was followed. */
  get writtenAfterMs(): number {
    return this.#toldEndAtMs;
  }

  drain(): void {
    // The line's handler may have closed this follower.
    for (let told = 1; told > 0 && this.#isOpen; ) told = this.#tell(this.#read());
    this.#options.onCaughtUp?.();
  }

  /** Reads to the end, delivers a partial last line too, and stops following. Continues to follow when it throws. */
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
    this.#cancelRest();
    this.#unwatch();
    this.#file?.close();
    this.#file = null;
  }

  /** Empty at the present end, and while there is no file. */
  #read(): Uint8Array {
    const nowMs = this.#world.clock.now();
    this.#file ??= this.#world.files.openRead(this.#options.path);
    const chunk = this.#file?.read(this.#position, chunkBytes) ?? nothing;
    if (chunk.length < chunkBytes) this.#endAtMs = nowMs;
    return chunk;
  }

  /** Delivers the lines that end in the next piece of the file; returns its length in bytes. */
  #tell(chunk: Uint8Array): number {
    this.#position += chunk.length;
    for (const line of this.#splitter.push(chunk)) this.#options.onLine(line);
    this.#toldEndAtMs = this.#endAtMs;
    return chunk.length;
  }

  #poll(nextMs: number): void {
    const before = this.#position;
    this.#hear();
    if (this.#position > before) this.#pollMsMax = pollMs.unhinted;
    // The line's handler may have closed this follower.
    if (!this.#isOpen) return;
    this.#cancelPoll = this.#world.clock.after(nextMs, () => this.#poll(Math.min(2 * nextMs, this.#pollMsMax)));
  }

  /** Continues from its position in a moment; an earlier hint may do so first. */
  #hearOn(): void {
    this.#cancelRest();
    this.#cancelRest = this.#world.clock.after(0, () => {
      if (this.#isOpen) this.#hear(true);
    });
  }

  /** `isBehind`: some of it was delivered before, and not yet to its end. */
  #hear(isBehind = false): void {
    const before = this.#position;
    // A piece below the full size reached the end, or nearly: later writes give hints.
    let told = chunkBytes;
    for (let chunks = 0; told === chunkBytes && this.#isOpen; chunks += 1) {
      if (chunks === chunksAtOnce) {
        this.#hearOn();
        return;
      }
      told = this.#tell(this.#read());
    }
    if (isBehind || this.#position > before) this.#options.onCaughtUp?.();
  }
}
