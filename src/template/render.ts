/**
 * `{{name}}` in texts, replaced in one pass: what is filled in is never looked at again. Anything else between braces,
 * such as `${{ github.x }}`, `{{#if}}` or `{% %}`, is text. `\{{name}}` stays as `{{name}}`.
 */

import { basename } from 'node:path';
import { nearest } from '../core/nearest.ts';
import type { Problem } from '../store/yaml-text.ts';

/** A part of a template's text: words, or the place of a variable. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'variable';
      /** What stands between the braces, without blanks. */
      readonly name: string;
      /** The place as it was written, braces included. */
      readonly source: string;
      /** UTF-16 units from the begin of the text. */
      readonly offset: number;
    };

// The value in brackets may hold a path or a version, but nothing that could end the place early.
const place = /(\\|\$)?\{\{[ \t]*([A-Za-z_][\w.-]*(?:\[[^\][{}\n]*\][\w.-]*)*)[ \t]*\}\}/g;

export function parsePieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  const addText = (words: string) => {
    if (words !== '') pieces.push({ kind: 'text', text: words });
  };
  for (const match of text.matchAll(place)) {
    const [whole, mark, name = ''] = match;
    if (mark === '$') continue;
    addText(text.slice(end, match.index));
    end = match.index + whole.length;
    if (mark === '\\') addText(whole.slice(1));
    else pieces.push({ kind: 'variable', name, source: whole, offset: match.index });
  }
  addText(text.slice(end));
  return pieces;
}

/** What a name stands for: a text, `later` when it is known only at run time, or nothing. */
export type Lookup = (name: string) => string | { readonly later: true } | undefined;

export interface Template {
  readonly text: string;
  /** Only used in problems. */
  readonly file: string;
  /** Where the text begins in the file: line and column, counted from 1; the file's begin unless given. */
  readonly startsAt?: { readonly line: number; readonly column: number };
}

/** A place that is filled at run time, in the rendered text. */
export interface LaterPlace {
  readonly name: string;
  /** UTF-16 units in the rendered text; `length` is that of the place as it was written. */
  readonly at: number;
  readonly length: number;
}

export interface Rendered {
  /** Places that are filled later stand in it as they were written. */
  readonly text: string;
  readonly later: readonly LaterPlace[];
  /** Unknown names, each at its place. */
  readonly problems: readonly Problem[];
}

/** Fills in what `lookup` knows. `known` are the names to suggest for one that is unknown. */
export function render(template: Template, lookup: Lookup, known: readonly string[]): Rendered {
  const later: LaterPlace[] = [];
  const problems: Problem[] = [];
  const parts: string[] = [];
  let length = 0;
  const add = (part: string) => {
    parts.push(part);
    length += part.length;
  };
  for (const piece of parsePieces(template.text)) {
    if (piece.kind === 'text') {
      add(piece.text);
      continue;
    }
    const value = lookup(piece.name);
    if (typeof value === 'string') {
      add(value);
      continue;
    }
    if (value === undefined) problems.push(problemIn(template, piece.offset, unknown(piece.name, known)));
    else later.push({ name: piece.name, at: length, length: piece.source.length });
    add(piece.source);
  }
  return { text: parts.join(''), later, problems };
}

/** Fills the places that were left for later; the texts stand in the order of `places`. */
export function fillLater(text: string, places: readonly LaterPlace[], texts: readonly string[]): string {
  let filled = '';
  let end = 0;
  for (const [index, { at, length }] of places.entries()) {
    filled += text.slice(end, at) + (texts[index] ?? '');
    end = at + length;
  }
  return filled + text.slice(end);
}

/** A text with places that are filled later. */
export interface FilledText<Place extends LaterPlace> {
  readonly text: string;
  readonly later: readonly Place[];
}

/** Puts another text into every place called `name`; both keep their other places. */
export function insertText<Place extends LaterPlace>(
  outer: FilledText<Place>,
  name: string,
  inner: FilledText<Place>,
): FilledText<Place> {
  const later: Place[] = [];
  let text = '';
  let end = 0;
  for (const place of outer.later) {
    text += outer.text.slice(end, place.at);
    end = place.at + place.length;
    if (place.name === name) {
      later.push(...inner.later.map((one) => ({ ...one, at: one.at + text.length })));
      text += inner.text;
    } else {
      later.push({ ...place, at: text.length });
      text += outer.text.slice(place.at, end);
    }
  }
  return { text: text + outer.text.slice(end), later };
}

/** A problem at an offset of a template's text. */
export function problemIn({ text, file, startsAt }: Template, offset: number, message: string): Problem {
  const before = text.slice(0, offset).split('\n');
  const start = startsAt ?? { line: 1, column: 1 };
  const column = (before.at(-1) ?? '').length + 1;
  return {
    file,
    line: start.line + before.length - 1,
    column: before.length === 1 ? start.column + column - 1 : column,
    message,
  };
}

function unknown(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return `there is no variable "${name}"${near === undefined ? '' : `; did you mean "${near}"?`}`;
}

export interface Surroundings {
  readonly projectPath: string;
  readonly session: string;
  readonly group: { readonly name: string; readonly slug: string };
}

export const surroundingNames = ['project.path', 'project.name', 'session.name', 'group.name', 'group.slug'] as const;

/** Answers the names of `surroundingNames`. */
export function lookupSurroundings({ projectPath, session, group }: Surroundings): Lookup {
  const values: Readonly<Record<(typeof surroundingNames)[number], string>> = {
    'project.path': projectPath,
    'project.name': basename(projectPath),
    'session.name': session,
    'group.name': group.name,
    'group.slug': group.slug,
  };
  return (name) => (Object.hasOwn(values, name) ? values[name as keyof typeof values] : undefined);
}
