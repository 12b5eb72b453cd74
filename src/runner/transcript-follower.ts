/**
 * Follows the file a worker writes its stream to. File events are hints; a slow look at the file is the truth, so a
 * missed event delays a line but never loses one.
 */
import type { World } from '../world/world.ts';
import { LineSplitter } from './line-splitter.ts';

/** Looks at first follow each other closely: what is written while the watch is being set up gives no hint. */
const firstPollMs = 16;
/** The longest time between two looks; the former as long as no look has found what no hint told of. */
const pollMs = { hinted: 2_000, unhinted: 500 };
const chunkBytes = 1024 * 1024;

export interface FollowerOptions {
  readonly path: string;
  /** Byte from which on it is read. */
  readonly offset: number;
  /** Called for each line, in order. */
  readonly onLine: (line: string) => void;
  /** Called when the present end was come to. */
  readonly onCaughtUp?: () => void;
}

export class TranscriptFollower {
  readonly #world: World;
  readonly #options: FollowerOptions;
  readonly #splitter = new LineSplitter();
  readonly #unwatch: () => void;
  #position: number;
  #isOpen = true;
  #pollMsMax = pollMs.hinted;
  #cancelPoll: () => void;

  constructor(world: World, options: FollowerOptions) {
    this.#world = world;
    this.#options = options;
    this.#position = options.offset;
    // The file itself, for what else is written beside it concerns nobody here.
    this.#unwatch = world.files.watch(options.path, () => this.#hear());
    this.#cancelPoll = world.clock.after(0, () => this.#poll(firstPollMs));
  }

  /** Reads to the present end of the file. */
  drain(): void {
    this.#readWith(() => this.#read());
  }

  /** Reads to the end, hands over a last half line too, and stops following. Goes on following when it throws. */
  finish(): void {
    if (!this.#isOpen) return;
    this.drain();
    this.close();
    const rest = this.#splitter.rest();
    if (rest !== null) this.#options.onLine(rest);
  }

  /** Stops following. */
  close(): void {
    this.#isOpen = false;
    this.#cancelPoll();
    this.#unwatch();
  }

  #read(): Uint8Array {
    return this.#world.files.readBytes(this.#options.path, this.#position, chunkBytes);
  }

  #readWith(read: () => Uint8Array): void {
    const { onLine, onCaughtUp } = this.#options;
    for (let isMore = true; isMore; ) {
      const chunk = read();
      this.#position += chunk.length;
      for (const line of this.#splitter.push(chunk)) onLine(line);
      // Fewer bytes than asked for: that was the end. Of what is written from now on there will be a hint.
      isMore = chunk.length === chunkBytes;
    }
    onCaughtUp?.();
  }

  #poll(nextMs: number): void {
    const before = this.#position;
    this.#hear();
    if (this.#position > before) this.#pollMsMax = pollMs.unhinted;
    // Handling a line may have closed us.
    if (!this.#isOpen) return;
    this.#cancelPoll = this.#world.clock.after(nextMs, () => this.#poll(Math.min(2 * nextMs, this.#pollMsMax)));
  }

  #hear(): void {
    if (!this.#isOpen || !this.#hasMore()) return;
    this.#readWith(() => {
      try {
        return this.#read();
      } catch {
        // A disk that does not answer now may do so at the next look; `finish` reports it if it does not.
        return new Uint8Array(0);
      }
    });
  }

  /** Asked at each hint and now and then of every worker, most of which have said nothing since. */
  #hasMore(): boolean {
    try {
      return (this.#world.files.info(this.#options.path)?.size ?? 0) > this.#position;
    } catch {
      return true;
    }
  }
}
