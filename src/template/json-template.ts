/**
 * Variables in JSON files. Inside a text a value is escaped, elsewhere it stands as one JSON value: whatever it holds,
 * it can neither end the text it stands in nor add a key beside it.
 */

import { findObjectFault } from '../store/json-places.ts';
import type { Problem } from '../store/yaml-text.ts';
import { type Lookup, parsePieces, problemIn, type Template } from './render.ts';

export interface RenderedJson {
  readonly text: string;
  /** Faults of the JSON, each at its place in the template; what `lookup` does not know is left to the caller. */
  readonly problems: readonly Problem[];
}

interface Stretch {
  readonly from: number;
  readonly sourceFrom: number;
  readonly isText: boolean;
}

export function renderJson(template: Template, lookup: Lookup): RenderedJson {
  const stretches: Stretch[] = [];
  let text = '';
  let isInside = false;
  let sourceFrom = 0;
  const pieces = parsePieces(template.text);
  for (const [index, piece] of pieces.entries()) {
    stretches.push({ from: text.length, sourceFrom, isText: piece.kind === 'text' });
    if (piece.kind === 'text') {
      text += piece.text;
      isInside = endsInside(piece.text, isInside);
      sourceFrom = nextSource(template.text, sourceFrom, piece.text, pieces[index + 1]);
      continue;
    }
    const value = lookup(piece.name);
    const known = typeof value === 'string' ? value : '';
    text += isInside ? JSON.stringify(known).slice(1, -1) : jsonValue(known);
    sourceFrom = piece.offset + piece.source.length;
  }
  const fault = findObjectFault(text);
  if (fault === null) return { text, problems: [] };
  return { text, problems: [problemIn(template, sourceOffset(stretches, fault.offset), fault.message)] };
}

/** Where the template goes on after a text: `\{{` is one character longer there than in the piece. */
function nextSource(
  source: string,
  from: number,
  text: string,
  next: ReturnType<typeof parsePieces>[number] | undefined,
): number {
  if (next?.kind === 'variable') return next.offset;
  return source.startsWith(text, from) ? from + text.length : from + text.length + 1;
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

/** A value outside of quotes: JSON as it is, such as a number or a list, anything else as a text. */
function jsonValue(value: string): string {
  try {
    JSON.parse(value);
    // Not written anew, because that would round long numbers.
    return value;
  } catch {
    return JSON.stringify(value);
  }
}

function sourceOffset(stretches: readonly Stretch[], offset: number): number {
  const stretch = stretches.findLast(({ from }) => from <= offset);
  if (stretch === undefined) return 0;
  return stretch.isText ? stretch.sourceFrom + offset - stretch.from : stretch.sourceFrom;
}
