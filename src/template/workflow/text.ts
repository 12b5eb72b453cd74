/** Texts with `{{…}}` in a workflow file or in a template: filled in, with every unknown name at its place. */
import type { YamlPath } from '../../store/yaml-text.ts';
import { type FilledText, type LaterPlace, parsePieces, problemIn, type Template } from '../render.ts';
import type { Problems } from './problems.ts';

/** What a name stands for: a text, `later` when it is filled in afterwards, or nothing, with what is wrong. */
export type Meaning =
  | { readonly text: string }
  | { readonly later: true }
  /** Without a full stop. */
  | { readonly problem: string };

export type Meanings = (name: string) => Meaning;

/** A place that is filled afterwards, in the filled text. */
export interface OpenPlace extends LaterPlace {
  /** Says what is wrong with it, at its place in the file. */
  readonly report: (message: string) => void;
}

/** Fills in a text of the workflow file that stands under `path`. */
export function fillYamlText(
  path: YamlPath,
  text: string,
  meanings: Meanings,
  problems: Problems,
): FilledText<OpenPlace> {
  return fill(text, meanings, (source, nth) => (message) => problems.atPlace(path, source, nth, message));
}

/** Fills in the body of a template file. `note` ends each problem, because many sessions may use the file. */
export function fillTemplate(
  template: Template,
  meanings: Meanings,
  problems: Problems,
  note: string,
): FilledText<OpenPlace> {
  return fill(template.text, meanings, (_source, _nth, offset) => (message) => {
    problems.add(problemIn(template, offset, message + note));
  });
}

type Reporter = (source: string, nth: number, offset: number) => (message: string) => void;

function fill(whole: string, meanings: Meanings, reporter: Reporter): FilledText<OpenPlace> {
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
  return { text: parts.join(''), later: open };
}

const lineLengthMax = 500;

/** Names and descriptions stand on one line of a report, whatever long text a variable brought into them. */
export function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > lineLengthMax ? `${line.slice(0, lineLengthMax)}…` : line;
}
