/**
 * JSON that people write, with the place of what is wrong in it. A parser of its own only for the places: hooks must
 * start fast, so nothing heavy may be loaded, and the runtime does not say where an error is.
 */

import { ExactNumber, parseExactly } from './exact-number.ts';

export type JsonObject = Readonly<Record<string, unknown>>;
export type JsonPath = readonly (string | number)[];

/** Line and column count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

export type ReadJson =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** Where the value at `path` begins, or the nearest thing above it when it is missing. */
      placeOf(path: JsonPath): Place;
    }
  | { readonly ok: false; readonly place: Place; readonly message: string };

/** Each level of nesting takes a level of the stack. */
const depthMax = 200;
const depthMessage = `nests more than ${depthMax} levels`;

interface Node {
  readonly offset: number;
  readonly children: Map<string | number, Node>;
}

/** Parses, or says where the text stops being JSON. Never throws. */
export function readJson(text: string): ReadJson {
  return readWith(JSON.parse, text);
}

let lastExact: { readonly text: string; readonly read: ReadJson } | undefined;

/**
 * For what is written back: numbers come as an ExactNumber where another form would be written. A hook reads the state
 * of its run several times, before the lock and under it; as long as it is the same text it is parsed once.
 */
export function readExactJson(text: string): ReadJson {
  if (lastExact?.text !== text) lastExact = { text, read: readWith(parseExactly, text) };
  return lastExact.read;
}

function readWith(parse: (text: string) => unknown, text: string): ReadJson {
  const body = text.startsWith('\ufeff') ? text.slice(1) : text;
  // The runtime reads what it cannot write any more.
  const tooDeep = offsetOfDepth(body, depthMax);
  if (tooDeep !== null) return { ok: false, place: placeAt(body, tooDeep), message: depthMessage };
  let value: unknown;
  try {
    value = parse(body);
  } catch {
    const failed = scan(body);
    const offset = failed.ok ? 0 : failed.offset;
    const message = failed.ok ? 'is not JSON' : failed.message;
    return { ok: false, place: placeAt(body, offset), message };
  }
  let root: Node | null | undefined;
  const placeOf = (path: JsonPath): Place => {
    if (root === undefined) {
      const scanned = scan(body);
      root = scanned.ok ? scanned.root : null;
    }
    let node = root;
    for (const part of path) {
      const child = node?.children.get(part);
      if (child === undefined) break;
      node = child;
    }
    return placeAt(body, node?.offset ?? 0);
  };
  return { ok: true, value, placeOf };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** The object, or an empty one in place of anything else. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A field of an object itself, never what objects inherit. */
export function fieldOf(value: unknown, name: string | number): unknown {
  if (Array.isArray(value)) return typeof name === 'number' ? value[name] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[String(name)] : undefined;
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Where more than `max` brackets are open at once; null where they never are. Quotes are told apart, no more. */
function offsetOfDepth(text: string, max: number): number | null {
  // Most texts hold fewer brackets than that, and to count them is much faster than to tell them apart.
  if ((text.match(/[[{]/g)?.length ?? 0) <= max) return null;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = quoteEnd(text, at);
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth > max) return at;
  }
  return null;
}

function quoteEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at;
  }
  return text.length;
}

function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}

type Scanned =
  | { readonly ok: true; readonly root: Node }
  | { readonly ok: false; readonly offset: number; readonly message: string };

class JsonTrouble extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

function scan(text: string): Scanned {
  const scanner = new Scanner(text);
  try {
    return { ok: true, root: scanner.whole() };
  } catch (error) {
    if (error instanceof JsonTrouble) return { ok: false, offset: error.offset, message: error.message };
    throw error;
  }
}

const blank = /[ \t\r\n]*/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Node {
    const root = this.#value(0);
    this.#skip();
    if (this.#at < this.#text.length) this.#fail('expected the end of the file');
    return root;
  }

  #value(depth: number): Node {
    if (depth > depthMax) this.#fail(depthMessage);
    this.#skip();
    const node: Node = { offset: this.#at, children: new Map() };
    const next = this.#text[this.#at];
    if (next === '{') this.#members(node, depth);
    else if (next === '[') this.#elements(node, depth);
    else if (next === '"') this.#string();
    else if (this.#match(scalar) === null) {
      this.#fail(next === undefined ? 'the file ends too early' : 'expected a value');
    }
    return node;
  }

  #members(node: Node, depth: number): void {
    this.#at += 1;
    if (this.#take('}')) return;
    do {
      this.#skip();
      if (this.#text[this.#at] !== '"') this.#fail('expected a name in double quotes');
      const key = JSON.parse(this.#string()) as string;
      if (!this.#take(':')) this.#fail('expected ":"');
      node.children.set(key, this.#value(depth + 1));
    } while (this.#take(','));
    if (!this.#take('}')) this.#fail('expected "," or "}"');
  }

  #elements(node: Node, depth: number): void {
    this.#at += 1;
    if (this.#take(']')) return;
    do node.children.set(node.children.size, this.#value(depth + 1));
    while (this.#take(','));
    if (!this.#take(']')) this.#fail('expected "," or "]"');
  }

  /** The text with its quotes. A long one would need a deep stack if a pattern looked for its end. */
  #string(): string {
    const start = this.#at;
    for (this.#at += 1; ; this.#at += 1) {
      const character = this.#text[this.#at];
      if (character === undefined) this.#fail('is a text without its end', start);
      if (character < ' ') this.#fail('a text may not hold this character as it is');
      if (character === '\\') this.#at += 1;
      if (character === '"') break;
    }
    this.#at += 1;
    const quoted = this.#text.slice(start, this.#at);
    try {
      JSON.parse(quoted);
      return quoted;
    } catch {
      return this.#fail('is a text with an escape that JSON does not know', start);
    }
  }

  #take(character: string): boolean {
    this.#skip();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #skip(): void {
    this.#match(blank);
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return null;
    this.#at += found.length;
    return found;
  }

  #fail(message: string, offset = this.#at): never {
    throw new JsonTrouble(offset, message);
  }
}
