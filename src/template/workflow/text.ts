/** Texts with `{{…}}` in a workflow file or in a template: filled in, with every unknown name at its position. */

import { quoted } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import type { YamlPath } from '../../store/yaml-text.ts';
import {
  type FilledText,
  fill,
  type LaterPlace,
  type Lookup,
  problemIn,
  surroundingNames,
  type Template,
} from '../render.ts';
import type { Problems } from './problems.ts';

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
