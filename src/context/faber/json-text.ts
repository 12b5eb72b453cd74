/** JSON that people write, with the place of what is wrong in it; and how to take hold of what it says. */

import { findJsonFault, type JsonPath, offsetOf } from '../../store/json-places.ts';
import { ExactNumber, parseExactly } from './exact-number.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

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
  const fault = findJsonFault(body);
  if (fault !== null) return { ok: false, place: placeAt(body, fault.offset), message: fault.message };
  return { ok: true, value: parse(body), placeOf: (path) => placeAt(body, offsetOf(body, path)) };
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

function placeAt(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}
