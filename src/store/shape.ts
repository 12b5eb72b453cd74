/**
 * Checks of values that were read from files. They ask only for what our code relies on: unknown fields pass, so
 * that a file written by a newer version of the same format stays readable.
 */

export type Check = (value: unknown) => boolean;

export const isText: Check = (value) => typeof value === 'string';
export const isNumber: Check = (value) => Number.isFinite(value);
export const isFlag: Check = (value) => typeof value === 'boolean';
/** An instant that `Date.parse` understands. */
export const isInstant: Check = (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value));

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

export function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

export function oneOf(words: readonly string[]): Check {
  return (value) => words.includes(value as string);
}

/** An object whose every value passes. */
export function valuesOf(check: Check): Check {
  return (value) => isObject(value) && Object.values(value).every(check);
}

/** An object whose named fields pass. */
export function fields(checks: Readonly<Record<string, Check>>): Check {
  const entries = Object.entries(checks);
  return (value) => isObject(value) && entries.every(([name, check]) => check(value[name]));
}

/** The value of a JSON text; undefined (which JSON cannot say) when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
