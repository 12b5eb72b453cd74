/** From the sessions of a workflow file to those of the group: each matrix becomes one session per combination. */
import { sessionNameLengthMax } from '../../core/values.ts';
import {
  type Dimension,
  type MatrixContext,
  type MatrixValue,
  readDimensions,
  sessionsMax,
  slugOfValue,
} from './matrix.ts';
import type { SessionSpec, WorkflowFile } from './schema.ts';
import type { Meanings } from './text.ts';

/** One session of the group. */
export interface Instance {
  /** Its name in the group. */
  readonly key: string;
  /** The session of the file it comes from. */
  readonly family: Family;
  /** One for each dimension. */
  readonly values: readonly MatrixValue[];
}

/** A session of the file with all that it became. */
export interface Family {
  /** Its key in the file. */
  readonly key: string;
  readonly spec: SessionSpec;
  readonly dimensions: readonly Dimension[];
  /** Empty when the matrix has a problem; then nothing can be said about who depends on it. */
  readonly instances: readonly Instance[];
}

export type Families = ReadonlyMap<string, Family>;

/** Expands every matrix; names are unique and depend only on the values and their order. */
export function expandSessions(
  sessions: WorkflowFile['sessions'],
  meanings: Meanings,
  context: MatrixContext,
): Families {
  const families = new Map<string, Family>();
  const taken = new Set(Object.keys(sessions));
  let total = 0;
  for (const [key, spec] of Object.entries(sessions)) {
    const path = ['sessions', key, 'matrix'];
    const dimensions = spec.matrix === undefined ? [] : readDimensions(spec.matrix, path, meanings, context);
    const size = dimensions?.reduce((product, { values }) => product * values.length, 1) ?? 0;
    const fits = total + size <= sessionsMax;
    if (!fits) context.problems.at(path, `the workflow would have more than ${sessionsMax} sessions`);
    const instances: Instance[] = [];
    const family: Family = { key, spec, dimensions: dimensions ?? [], instances };
    families.set(key, family);
    if (dimensions === undefined || !fits) continue;
    total += size;
    for (const values of combinations(dimensions)) {
      instances.push({ key: spec.matrix === undefined ? key : nameOf(key, values, taken), family, values });
    }
  }
  return families;
}

/** Every combination; the last dimension changes fastest. */
function combinations(dimensions: readonly Dimension[]): readonly (readonly MatrixValue[])[] {
  return dimensions.reduce<readonly (readonly MatrixValue[])[]>(
    (rows, { values }) => rows.flatMap((row) => values.map((value) => [...row, value])),
    [[]],
  );
}

/** `key-slug-slug`, cut to the length of a name, with a number behind it when another session is called so. */
function nameOf(key: string, values: readonly MatrixValue[], taken: Set<string>): string {
  const slugs = values.map(slugOfValue).filter((slug) => slug !== '');
  const whole = [key, ...slugs].join('-');
  for (let number = 1; ; number += 1) {
    // A family's own key would name all of its sessions.
    const suffix = number === 1 ? '' : `-${number}`;
    const name = whole.slice(0, sessionNameLengthMax - suffix.length).replace(/[-._]+$/, '') + suffix;
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

/** What `{{matrix.KEY}}` stands for in one session, by KEY. */
export function matrixTexts({ family, values }: Instance): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [index, { key }] of family.dimensions.entries()) {
    const value = values[index] as MatrixValue;
    texts.set(key, value.text);
    if (value.name !== undefined) texts.set('name', value.name);
  }
  return texts;
}
