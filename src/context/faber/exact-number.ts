/**
 * Numbers of JSON that a program would change by reading and writing them: more digits than it computes with, `1.0`,
 * `1e400`. They are carried along as they are written, because the file belongs to others as well.
 */

export class ExactNumber {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  /** For arithmetic and comparison: the nearest number there is. */
  valueOf(): number {
    return Number(this.#source);
  }

  toString(): string {
    return this.#source;
  }

  /** What JSON.stringify puts in its place, digit by digit. */
  toJSON(): unknown {
    return sourceJson.rawJSON(this.#source);
  }
}

/** Known to the runtime, not yet to the types of the language. */
interface SourceJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(source: string): unknown;
}
const sourceJson = JSON as unknown as SourceJson;

/**
 * Whether any number in the text might change; a quick look, because to read with the sources takes far longer. Before
 * a number stands nothing, a name's colon, a bracket or a comma; so the times in texts do not count.
 */
const suspicious = /(?:^|"\s*:|[[,])\s*(?:-?\d*(?:\d{16}|\d[.eE])|-0)/;

/** As JSON.parse, with an ExactNumber for every number that would be written differently. Throws as that does. */
export function parseExactly(text: string): unknown {
  if (!suspicious.test(text)) return JSON.parse(text);
  return sourceJson.parse(text, (_, value, { source }) =>
    typeof value === 'number' && source !== undefined && JSON.stringify(value) !== source
      ? new ExactNumber(source)
      : value,
  );
}

/** The value to compute with. */
export function plainNumber(value: unknown): unknown {
  return value instanceof ExactNumber ? value.valueOf() : value;
}
