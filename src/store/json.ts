/** JSON of our own files: its syntax is checked, the fields are not. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a JSON text; undefined (impossible in JSON) when it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value of a file that we write atomically as an object; null when it is missing or damaged. */
export function parseOwn<T extends object>(text: string | null): T | null {
  const value = parseJson(text ?? '');
  return isObject(value) ? (value as T) : null;
}
