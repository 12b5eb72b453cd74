/** Texts with `{{…}}` in a workflow file or in a template: filled in, with every unknown name at its place. */
import type { YamlPath } from '../store/yaml-text.ts';
import { parsePieces, problemIn, type Template } from './render.ts';
import type { Problems } from './workflow-problems.ts';

/** What a name stands for: a text, `later` when it is filled in afterwards, or nothing, with what is wrong. */
export type Meaning =
  | { readonly text: string }
  | { readonly later: true }
  /** Without a full stop. */
  | { readonly problem: string };

export type Meanings = (name: string) => Meaning;

/** A place that is filled afterwards, in the filled text. */
export interface OpenPlace {
  readonly name: string;
  /** UTF-16 units in the filled text; `length` is that of the place as it was written. */
  readonly at: number;
  readonly length: number;
  /** Says what is wrong with it, at its place in the file. */
  readonly report: (message: string) => void;
}

export interface FilledText {
  readonly text: string;
  readonly open: readonly OpenPlace[];
}

/** Fills in a text of the workflow file that stands under `path`. */
export function fillYamlText(path: YamlPath, text: string, meanings: Meanings, problems: Problems): FilledText {
  return fill(text, meanings, (source, nth) => (message) => problems.atPlace(path, source, nth, message));
}

/** Fills in the body of a template file. `note` ends each problem, because many sessions may use the file. */
export function fillTemplate(template: Template, meanings: Meanings, problems: Problems, note: string): FilledText {
  return fill(template.text, meanings, (_source, _nth, offset) => (message) => {
    problems.add(problemIn(template, offset, message + note));
  });
}

type Reporter = (source: string, nth: number, offset: number) => (message: string) => void;

function fill(whole: string, meanings: Meanings, reporter: Reporter): FilledText {
  const parts: string[] = [];
  const open: OpenPlace[] = [];
  const seen = new Map<string, number>();
  let length = 0;
  const add = (part: string) => {
    parts.push(part);
    length += part.length;
  };
  for (const piece of parsePieces(whole)) {
    if (piece.kind === 'text') {
      add(piece.text);
      continue;
    }
    const { name, source, offset } = piece;
    const nth = seen.get(source) ?? 0;
    seen.set(source, nth + 1);
    const meaning = meanings(name);
    const report = reporter(source, nth, offset);
    if ('later' in meaning) open.push({ name, at: length, length: source.length, report });
    else if ('problem' in meaning) report(meaning.problem);
    add('text' in meaning ? meaning.text : source);
  }
  return { text: parts.join(''), open };
}

/** Puts another filled text into every open place called `name`; both keep their other open places. */
export function insertText(outer: FilledText, name: string, inner: FilledText): FilledText {
  const parts: string[] = [];
  const open: OpenPlace[] = [];
  let end = 0;
  let length = 0;
  const add = (part: string) => {
    parts.push(part);
    length += part.length;
  };
  for (const place of outer.open) {
    add(outer.text.slice(end, place.at));
    end = place.at + place.length;
    if (place.name === name) {
      open.push(...inner.open.map((one) => ({ ...one, at: one.at + length })));
      add(inner.text);
    } else {
      open.push({ ...place, at: length });
      add(outer.text.slice(place.at, end));
    }
  }
  add(outer.text.slice(end));
  return { text: parts.join(''), open };
}

const lineLengthMax = 500;

/** Names and descriptions stand on one line of a report, whatever long text a variable brought into them. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > lineLengthMax ? `${line.slice(0, lineLengthMax)}…` : line;
}
