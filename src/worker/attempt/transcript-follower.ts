/** Follows a transcript. File events are hints; a slow look at the file is the truth. */
import { LineSplitter } from '../../core/line-splitter.ts';
import type { ReadFile, World } from '../../system/world.ts';

/** Looks at first follow each other closely: what is written while the watch is being set up gives no hint. */
const firstPollMs = 16;
/** The longest time between two looks; the former as long as no look has found what no hint told of. */
const pollMs = { hinted: 2_000, unhinted: 500 };
const chunkBytes = 256 * 1024;
/** Of so many chunks at a time, whatever a session has written there, for others wait to be heard meanwhile. */
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
  /** Kept open: to open it again and to ask for its size at each hint would cost more than the reading itself. */
  #file: ReadFile | null = null;
  #position: number;
  /** When a read came to the end of the file last, and the same for those reads whose lines were told already. */
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

  /** The line that is being told was written after this moment, ms since 1970, or before it was followed at all. */
  get writtenAfterMs(): number {
    return this.#toldEndAtMs;
  }

  drain(): void {
    // Handling a line may have closed us.
    for (let told = 1; told > 0 && this.#isOpen; ) told = this.#tell(this.#read());
    this.#options.onCaughtUp?.();
  }

  /** Reads to the end, hands over a last half line too, and stops following. Goes on following when it throws. */
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

  /** Empty at the present end, and as long as there is no file. */
  #read(): Uint8Array {
    const nowMs = this.#world.clock.now();
    this.#file ??= this.#world.files.openRead(this.#options.path);
    const chunk = this.#file?.read(this.#position, chunkBytes) ?? nothing;
    if (chunk.length < chunkBytes) this.#endAtMs = nowMs;
    return chunk;
  }

  /** Tells the lines that end in the next piece of the file; the length of that, in bytes. */
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
    // Handling a line may have closed us.
    if (!this.#isOpen) return;
    this.#cancelPoll = this.#world.clock.after(nextMs, () => this.#poll(Math.min(2 * nextMs, this.#pollMsMax)));
  }

  /** Goes on where it is, in a moment; hints that come meanwhile may do so before. */
  #hearOn(): void {
    this.#cancelRest();
    this.#cancelRest = this.#world.clock.after(0, () => {
      if (this.#isOpen) this.#hear(true);
    });
  }

  /** `isBehind`: some of it was told before, and not yet to its end. */
  #hear(isBehind = false): void {
    const before = this.#position;
    // What was no full piece went to the end, or nearly: of what is written from now on there will be a hint.
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
