/** The problems of a workflow file: each once, however many sessions of a matrix have it. */

import { quoted } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import type { Problem, YamlPath, YamlText } from '../../store/yaml-text.ts';
import {
  type FilledText,
  fill,
  type LaterPlace,
  type Lookup,
  problemIn,
  surroundingNames,
  type Template,
} from '../render.ts';

const problemsMax = 200;

export class Problems {
  readonly #yaml: YamlText;
  readonly #text: string;
  readonly #file: string;
  readonly #found = new Map<string, Problem>();
  #reported = 0;

  constructor(yaml: YamlText, text: string, file: string) {
    this.#yaml = yaml;
    this.#text = text;
    this.#file = file;
  }

  /** Number of problems found, including repetitions. */
  get size(): number {
    return this.#reported;
  }

  /** Those of the workflow first, then those of templates. */
  get all(): readonly Problem[] {
    const rank = ({ file }: Problem) => (file === this.#file ? '' : file);
    const order = (a: Problem, b: Problem) => rank(a).localeCompare(rank(b)) || a.line - b.line || a.column - b.column;
    return [...this.#found.values()].sort(order).slice(0, problemsMax);
  }

  add(...problems: readonly Problem[]): void {
    this.#reported += problems.length;
    for (const problem of problems) this.#found.set(JSON.stringify(problem), problem);
  }

  /** At the value under `path`, or at its nearest existing parent. */
  at(path: YamlPath, message: string): void {
    this.add(this.#yaml.problemAt(path, message));
  }

  atKey(path: YamlPath, key: string, message: string): void {
    this.add(this.#yaml.problemAtKey(path, key, message));
  }

  /** At the first reference in the text under `path` that is written as `source`. */
  atPlace(path: YamlPath, source: string, message: string): void {
    const offset = this.#text.indexOf(source, this.#yaml.scalarAt(path)?.offset ?? this.#text.length);
    // A text with escapes, or a folded one, does not contain the reference as written.
    if (offset < 0) this.at(path, message);
    else {
      const before = this.#text.slice(0, offset).split('\n');
      this.add({ file: this.#file, line: before.length, column: (before.at(-1) ?? '').length + 1, message });
    }
  }

  /** A number or a flag must be unambiguous: YAML reads 1.10 as 1.1. */
  checkPlain(path: YamlPath, value: unknown): void {
    const { isPlain = false, source = '' } = this.#yaml.scalarAt(path) ?? {};
    if (!isPlain || typeof value === 'string' || source === String(value)) return;
    this.at(path, `${source} means ${String(value)} in YAML; quote it, or write ${String(value)}`);
  }
}

// Texts with `{{…}}` in a workflow file or in a template: filled in, with every unknown name at its position.

/** The value of a name: a text, `later` when it is filled in afterwards, or nothing, with the problem. */
export type NameValue = { readonly text: string } | { readonly later: true } | { readonly problem: string };

export type NameLookup = (name: string) => NameValue;

export interface OpenPlace extends LaterPlace {
  readonly report: (message: string) => void;
}

export function fillYamlText(
  path: YamlPath,
  text: string,
  meanings: NameLookup,
  problems: Problems,
): FilledText<OpenPlace> {
  return fill(text, ({ name, source }) =>
    valueFor(meanings(name), (message) => problems.atPlace(path, source, message)),
  );
}

/** Fills in the body of a template file. `note` ends each problem, because many sessions may use the file. */
export function fillTemplate(
  template: Template,
  meanings: NameLookup,
  problems: Problems,
  note: string,
): FilledText<OpenPlace> {
  return fill(template.text, ({ name, offset }) =>
    valueFor(meanings(name), (message) => problems.add(problemIn(template, offset, message + note))),
  );
}

function valueFor(meaning: NameValue, report: (message: string) => void) {
  if ('later' in meaning) return { later: { report } };
  if ('text' in meaning) return meaning.text;
  report(meaning.problem);
  return undefined;
}

const lineLengthMax = 500;

/** Names and descriptions are on one line of a report, whatever long text a variable contained. */
export function collapsedLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > lineLengthMax ? `${line.slice(0, lineLengthMax)}…` : line;
}

export interface Scope {
  readonly variables: readonly Readonly<Record<string, string>>[];
  /** `matrix.KEY` by KEY; absent without a matrix. */
  readonly matrix?: ReadonlyMap<string, string>;
  /** Absent where project, session and group are not known yet. */
  readonly surroundings?: Lookup;
  readonly takesResults?: true;
}

export function meaningsIn(scope: Scope): NameLookup {
  return (name): NameValue => {
    const text = textOf(scope, name);
    if (text !== undefined) return { text };
    if (!name.startsWith('sessions.')) return { problem: unknown(scope, name) };
    if (scope.takesResults === true) return { later: true };
    return { problem: `"${name}" can be used only in a prompt, because the result is not known earlier` };
  };
}

function textOf({ variables, matrix, surroundings }: Scope, name: string): string | undefined {
  const own = variables.find((values) => Object.hasOwn(values, name));
  if (own !== undefined) return own[name];
  if (name.startsWith('matrix.')) return matrix?.get(name.slice('matrix.'.length));
  const around = surroundings?.(name);
  return typeof around === 'string' ? around : undefined;
}

function unknown({ variables, matrix, surroundings }: Scope, name: string): string {
  if (name.startsWith('matrix.')) {
    if (matrix === undefined) return `"${name}" is undefined here: there is no matrix`;
    const key = name.slice('matrix.'.length);
    const next = hint(key, matrix.keys()) || `; its keys are ${[...matrix.keys()].join(', ')}`;
    return `the matrix has no key ${quoted(key)}${next}`;
  }
  if (surroundings === undefined && surroundingNames.some((known) => known === name)) {
    return `"${name}" is not known here`;
  }
  const known = new Set(variables.flatMap((values) => Object.keys(values)));
  for (const key of matrix?.keys() ?? []) known.add(`matrix.${key}`);
  for (const one of surroundings === undefined ? [] : surroundingNames) known.add(one);
  const near = hint(name, known) || `; declare it under "vars", or write \\{{${name}}} for literal text`;
  return `there is no variable ${quoted(name)}${near}`;
}
