/**
 * Splits bytes into lines, on LF only: U+2028 and U+2029 may occur inside a JSON string. A chunk may end in the middle
 * of a character, so bytes are collected first and decoded per line.
 */

/** Longer lines are dropped; claude never prints one near this size. */
const lineBytesMax = 64 * 1024 * 1024;

/** The lines as bytes, without newlines. */
export class ByteLineSplitter {
  #parts: Uint8Array[] = [];
  #held = 0;
  #skipping = false;

  /** The lines that `chunk` completes, without blank ones. They may share its memory. */
  push(chunk: Uint8Array): Uint8Array[] {
    const lines: Uint8Array[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10, start); end !== -1; end = chunk.indexOf(10, start)) {
      this.#take(chunk.subarray(start, end), lines);
      start = end + 1;
    }
    if (start < chunk.length) this.#hold(chunk.slice(start));
    return lines;
  }

  /** The partial line of a killed worker, if any. */
  rest(): Uint8Array | null {
    if (this.#held === 0) return null;
    const lines: Uint8Array[] = [];
    this.#take(new Uint8Array(0), lines);
    return lines[0] ?? null;
  }

  #hold(part: Uint8Array): void {
    this.#parts.push(part);
    this.#held += part.length;
    if (this.#held > lineBytesMax) {
      this.#parts = [];
      this.#skipping = true;
    }
  }

  #take(piece: Uint8Array, lines: Uint8Array[]): void {
    const whole = this.#held === 0 ? piece : Buffer.concat([...this.#parts, piece]);
    const skip = this.#skipping;
    this.#parts = [];
    this.#held = 0;
    this.#skipping = false;
    if (!skip && whole.length > 0) lines.push(whole);
  }
}

export class LineSplitter {
  readonly #decoder = new TextDecoder();
  readonly #bytes = new ByteLineSplitter();

  push(chunk: Uint8Array): string[] {
    return this.#bytes.push(chunk).map((line) => this.#decoder.decode(line));
  }

  /** The partial line of a killed worker, if any. */
  rest(): string | null {
    const rest = this.#bytes.rest();
    return rest === null ? null : this.#decoder.decode(rest);
  }
}
