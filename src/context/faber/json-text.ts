/** JSON written by people, with the positions of problems, and accessors of its content. */
import { isObject, type JsonObject } from '../../store/json.ts';
import { findJsonFault, type JsonPath, offsetOf } from '../../store/json-positions.ts';

export type ReadJson =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** `line:column` of the start of the value at `path`, or of its nearest existing parent. */
      placeOf(path: JsonPath): string;
    }
  /** `trouble` is `line:column: problem`. */
  | { readonly ok: false; readonly trouble: string };

/** Parses, or names the position of the first fault. */
export function readJson(content: string): ReadJson {
  const text = content.replace(/^\ufeff/, '');
  const fault = findJsonFault(text);
  if (fault !== null) return { ok: false, trouble: `${placeAt(text, fault.offset)}: ${fault.message}` };
  return { ok: true, value: JSON.parse(text), placeOf: (path) => placeAt(text, offsetOf(text, path)) };
}

/** The object, or an empty one for any other value. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A field of the object itself, never an inherited one. */
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
