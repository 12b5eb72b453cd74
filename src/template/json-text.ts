/**
 * Where a JSON text is wrong. The runtime's own parser names no place and takes the last of two equal keys without a
 * word, which would lose a deny rule.
 */

export interface JsonFault {
  /** UTF-16 units from the begin of the text. */
  readonly offset: number;
  /** Without a full stop. */
  readonly message: string;
}

const depthMax = 200;
const blanks = /[ \t\r\n]*/y;
const words = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none of them in a string.
const string = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;

class Fault extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/** The first fault of a text that should be one JSON object; null when it is one. */
export function findJsonFault(text: string): JsonFault | null {
  const reader = new Reader(text);
  try {
    reader.document();
    return null;
  } catch (error) {
    if (error instanceof Fault) return { offset: error.offset, message: error.message };
    throw error;
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#skipBlanks();
    if (this.#text[this.#at] !== '{') throw new Fault(this.#at, 'a JSON object was expected, it begins with "{"');
    this.#value(0);
    if (this.#at < this.#text.length) throw new Fault(this.#at, 'the JSON object ended before this');
  }

  #value(depth: number): void {
    if (depth > depthMax) throw new Fault(this.#at, `nests more than ${depthMax} levels`);
    const char = this.#text[this.#at];
    if (char === '{') this.#members(depth);
    else if (char === '[') this.#items(depth);
    else if (char === '"') this.#take(string, 'this text has no end, or holds what JSON wants escaped');
    else this.#take(words, this.#unexpected('a value'));
    this.#skipBlanks();
  }

  #members(depth: number): void {
    const keys = new Set<string>();
    this.#next();
    if (this.#ends('}')) return;
    for (;;) {
      const start = this.#at;
      const key = JSON.parse(this.#take(string, this.#unexpected('a key in double quotes'))) as string;
      if (keys.has(key)) throw new Fault(start, `the key ${JSON.stringify(key)} is there twice`);
      keys.add(key);
      this.#skipBlanks();
      if (this.#text[this.#at] !== ':') throw new Fault(this.#at, this.#unexpected('":"'));
      this.#next();
      this.#value(depth + 1);
      if (this.#ends('}')) return;
      if (this.#text[this.#at] !== ',') throw new Fault(this.#at, this.#unexpected('"," or "}"'));
      this.#next();
    }
  }

  #items(depth: number): void {
    this.#next();
    if (this.#ends(']')) return;
    for (;;) {
      this.#value(depth + 1);
      if (this.#ends(']')) return;
      if (this.#text[this.#at] !== ',') throw new Fault(this.#at, this.#unexpected('"," or "]"'));
      this.#next();
    }
  }

  #ends(bracket: string): boolean {
    if (this.#text[this.#at] !== bracket) return false;
    this.#next();
    return true;
  }

  #next(): void {
    this.#at += 1;
    this.#skipBlanks();
  }

  #skipBlanks(): void {
    blanks.lastIndex = this.#at;
    blanks.exec(this.#text);
    this.#at = blanks.lastIndex;
  }

  #take(pattern: RegExp, trouble: string): string {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) throw new Fault(this.#at, trouble);
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #unexpected(wanted: string): string {
    const char = this.#text.codePointAt(this.#at);
    const found = char === undefined ? 'the end' : JSON.stringify(String.fromCodePoint(char));
    return `${wanted} was expected instead of ${found}`;
  }
}
