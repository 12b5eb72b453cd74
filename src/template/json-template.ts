/**
 * Variables in JSON files. Inside a string a value is escaped, elsewhere it is one JSON value: it can neither end its
 * string nor add a key.
 */

import { findObjectFault } from '../store/json-positions.ts';
import type { Problem } from '../store/yaml-text.ts';
import { type Lookup, parsePieces, problemIn, type Template } from './render.ts';

export interface RenderedJson {
  readonly text: string;
  /** Faults of the JSON, each at its position in the template; unknown names are left to the caller. */
  readonly problems: readonly Problem[];
}

export function renderJson(template: Template, lookup: Lookup): RenderedJson {
  let text = '';
  let isInside = false;
  for (const piece of parsePieces(template.text)) {
    if (piece.kind === 'text') {
      text += piece.text;
      isInside = endsInside(piece.text, isInside);
      continue;
    }
    const value = lookup(piece.name);
    const known = typeof value === 'string' ? value : '';
    text += isInside ? JSON.stringify(known).slice(1, -1) : jsonValue(known);
  }
  const fault = findObjectFault(text);
  // No value has several lines, so the template's line is right.
  return { text, problems: fault === null ? [] : [problemIn({ ...template, text }, fault.offset, fault.message)] };
}

function endsInside(text: string, before: boolean): boolean {
  let isInside = before;
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    if (char === '\\' && isInside) index += 1;
    else if (char === '"') isInside = !isInside;
  }
  return isInside;
}

/** A value outside quotes: JSON as it is, such as a number or a list, anything else as a string. */
function jsonValue(value: string): string {
  try {
    JSON.parse(value);
    // Not serialised again, because that would round long numbers.
    return value;
  } catch {
    return JSON.stringify(value);
  }
}
