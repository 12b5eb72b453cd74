/** What the names between braces stand for at a place of a workflow. */
import { quoted } from '../../core/id.ts';
import { surroundingNames } from '../known-names.ts';
import type { Lookup } from '../render.ts';
import type { Hint } from './session-references.ts';
import type { Meaning, Meanings } from './text.ts';

export interface Scope {
  /** Variables, the nearest ones first. */
  readonly variables: readonly Readonly<Record<string, string>>[];
  /** `matrix.KEY` by KEY; absent where no matrix is known. */
  readonly matrix?: ReadonlyMap<string, string>;
  /** Absent where project, session and group are not known yet. */
  readonly surroundings?: Lookup;
  /** Results of other sessions may stand here. */
  readonly takesResults?: true;
  /** Where one declares a variable that is missing, for the sentence. */
  readonly declares?: string;
}

export function meaningsIn(scope: Scope, hint: Hint): Meanings {
  return (name): Meaning => {
    const text = textOf(scope, name);
    if (text !== undefined) return { text };
    if (!name.startsWith('sessions.')) return { problem: unknown(scope, name, hint) };
    if (scope.takesResults === true) return { later: true };
    return { problem: `"${name}" can only stand in a prompt: the result is not known before` };
  };
}

function textOf({ variables, matrix, surroundings }: Scope, name: string): string | undefined {
  const own = variables.find((values) => Object.hasOwn(values, name));
  if (own !== undefined) return own[name];
  if (name.startsWith('matrix.')) return matrix?.get(name.slice('matrix.'.length));
  const around = surroundings?.(name);
  return typeof around === 'string' ? around : undefined;
}

function unknown({ variables, matrix, surroundings, declares = '"vars"' }: Scope, name: string, hint: Hint): string {
  if (name.startsWith('matrix.')) {
    if (matrix === undefined) return `"${name}" is not known here: there is no matrix`;
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
  const near = hint(name, known) || `; declare it under ${declares}, or write \\{{${name}}} for these characters`;
  return `there is no variable ${quoted(name)}${near}`;
}
