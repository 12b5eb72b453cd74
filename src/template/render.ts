/**
 * Replaces `{{name}}` in texts in one pass: inserted text is never expanded again. Anything else between braces, such
 * as `${{ github.x }}`, `{{#if}}` or `{% %}`, is text. `\{{name}}` stays as `{{name}}`.
 */

import { basename } from 'node:path';
import { hint } from '../core/nearest.ts';
import type { Problem } from '../store/yaml-text.ts';

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'variable';
      readonly name: string;
      readonly source: string;
      /** UTF-16 units from the start of the text. */
      readonly offset: number;
    };

// The value in brackets may contain a path or a version, but nothing that could end the reference early.
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

/** The value of a name: a text, `later` when it is known only at run time, or nothing. */
export type Lookup = (name: string) => string | { readonly later: true } | undefined;

export interface Template {
  readonly text: string;
  readonly file: string;
  /** Position of the text in the file: line and column, counted from 1; default: the file's start. */
  readonly startsAt?: { readonly line: number; readonly column: number };
}

export interface LaterPlace {
  readonly name: string;
  /** Position in the rendered text, UTF-16 units; `length` is that of the reference as written. */
  readonly at: number;
  readonly length: number;
}

export interface Rendered {
  readonly text: string;
  readonly later: readonly LaterPlace[];
  readonly problems: readonly Problem[];
}

/** Fills in what `lookup` knows. `known`: names to suggest for an unknown one. */
export function render(template: Template, lookup: Lookup, known: readonly string[]): Rendered {
  const problems: Problem[] = [];
  const { text, later } = fill(template.text, ({ name, offset }) => {
    const value = lookup(name);
    if (typeof value !== 'string') {
      if (value === undefined) {
        problems.push(problemIn(template, offset, `there is no variable "${name}"${hint(name, known)}`));
        return undefined;
      }
      return { later: {} };
    }
    return value;
  });
  return { text, later, problems };
}

/** Replaces each reference by a text, keeps it for `later` with its data, or leaves it as written. */
export function fill<More extends object>(
  whole: string,
  valueFor: (place: Extract<Piece, { readonly kind: 'variable' }>) => string | { readonly later: More } | undefined,
): FilledText<LaterPlace & More> {
  const later: (LaterPlace & More)[] = [];
  let text = '';
  for (const piece of parsePieces(whole)) {
    if (piece.kind === 'text') text += piece.text;
    else {
      const value = valueFor(piece);
      const { name, source } = piece;
      if (typeof value === 'object') later.push({ name, at: text.length, length: source.length, ...value.later });
      text += typeof value === 'string' ? value : source;
    }
  }
  return { text, later };
}

/** Fills the references kept for later; the texts have the order of `places`. */
export function fillLater(text: string, places: readonly LaterPlace[], texts: readonly string[]): string {
  let filled = '';
  let end = 0;
  for (const [index, { at, length }] of places.entries()) {
    filled += text.slice(end, at) + (texts[index] ?? '');
    end = at + length;
  }
  return filled + text.slice(end);
}

export interface FilledText<Place extends LaterPlace> {
  readonly text: string;
  readonly later: readonly Place[];
}

/** Inserts another text at every reference to `name`; both keep their other references. */
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

export const surroundingNames = ['project.path', 'project.name', 'session.name', 'group.name', 'group.slug'] as const;

export function lookupSurroundings(
  projectPath: string,
  session: string,
  group: { readonly name: string; readonly slug: string },
): Lookup {
  const values: Readonly<Record<(typeof surroundingNames)[number], string>> = {
    'project.path': projectPath,
    'project.name': basename(projectPath),
    'session.name': session,
    'group.name': group.name,
    'group.slug': group.slug,
  };
  return (name) => (Object.hasOwn(values, name) ? values[name as keyof typeof values] : undefined);
}
