/** JSON that people write, with the place of what is wrong in it; and how to take hold of what it says. */
import { isObject, type JsonObject } from '../../store/json.ts';
import { findJsonFault, type JsonPath, offsetOf } from '../../store/json-positions.ts';

export type ReadJson =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** `line:column` where the value at `path` begins, or the nearest thing above it when it is missing. */
      placeOf(path: JsonPath): string;
    }
  /** `trouble` is `line:column: what is wrong`. */
  | { readonly ok: false; readonly trouble: string };

let last: { readonly text: string; readonly read: ReadJson } | undefined;

/**
 * Parses, or says where the text stops being JSON. A hook reads the state of its run several times, before the lock and
 * under it; as long as it is the same text it is parsed once.
 */
export function readJson(text: string): ReadJson {
  if (last?.text !== text) last = { text, read: parse(text.replace(/^\ufeff/, '')) };
  return last.read;
}

function parse(text: string): ReadJson {
  const fault = findJsonFault(text);
  if (fault !== null) return { ok: false, trouble: `${placeAt(text, fault.offset)}: ${fault.message}` };
  return { ok: true, value: JSON.parse(text), placeOf: (path) => placeAt(text, offsetOf(text, path)) };
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

export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function placeAt(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n');
  return `${lines.length}:${(lines.at(-1) ?? '').length + 1}`;
}
