/**
 * How a workflow names its sessions: `NAME`, `NAME[*]`, `NAME[VALUE]`, `NAME[matrix.KEY]` in `dependsOn`, and the same
 * inside `{{sessions.NAME.result}}`.
 */
import type { PromptReference } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import type { Families, Family, Instance } from './expand.ts';
import type { MatrixValue } from './matrix.ts';
import type { Hint } from './text.ts';

/** Who is meant, as it was written. */
export interface Target {
  readonly family: Family;
  /** What stands in brackets; null without any. */
  readonly selector: string | null;
}

/** What a prompt wants to know of a session. */
export interface Wanted extends Target {
  readonly field: PromptReference['field'];
  readonly path: readonly string[];
}

/** `problem` is without a full stop. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const refuse = (problem: string) => ({ ok: false, problem }) as const;

/** Reads an entry of `dependsOn`. */
export function parseDependency(text: string, families: Families, hint: Hint): Parsed<Target> {
  const match = /^([^[\]]*)(?:\[([^[\]]*)\])?$/.exec(text.trim());
  if (match === null) return refuse(`${quoted(text)} names no session: write NAME, NAME[*] or NAME[VALUE]`);
  const [, name = '', selector = null] = match;
  const family = families.get(name);
  return family === undefined
    ? refuse(unknownSession(name, families, hint))
    : { ok: true, value: { family, selector } };
}

/** Reads what stands between the braces and begins with `sessions.`. */
export function parseReference(name: string, families: Families, hint: Hint): Parsed<Wanted> {
  const rest = name.slice('sessions.'.length);
  const family = longestKey(rest, families);
  if (family === undefined) return refuse(unknownSession(rest.split(/[[.]/, 1)[0] as string, families, hint));
  const tail = /^(?:\[([^[\]]*)\])?(.*)$/s.exec(rest.slice(family.key.length));
  const [, selector = null, access = ''] = tail ?? [];
  const what = parseAccess(access, family.key, hint);
  return what.ok ? { ok: true, value: { family, selector, ...what.value } } : what;
}

const fields: readonly PromptReference['field'][] = ['result', 'structured', 'diffStat', 'branch'];

/** Reads what is wanted of a session: one of the fields, and of `.structured` a way into it. */
export function parseAccess(access: string, session: string, hint: Hint): Parsed<Pick<Wanted, 'field' | 'path'>> {
  const match = /^\.([\w-]+)(.*)$/s.exec(access);
  if (match === null)
    return refuse(`say what of ${quoted(session)} is meant: .result, .structured, .diffStat or .branch`);
  const [, field = '', steps = ''] = match;
  const known = fields.find((one) => one === field);
  if (known === undefined) {
    return refuse(`a session has no ${quoted(field)}${hint(field, fields) || `; use ${fields.join(', ')}`}`);
  }
  if (known === 'result' && steps !== '') {
    return refuse('a result is one text; its fields are in .structured when the session has an outputSchema');
  }
  if (known !== 'structured' && steps !== '') return refuse(`.${known} is one text, so nothing can follow it`);
  const path = parseSteps(steps);
  if (path === null) return refuse(`${quoted(steps)} is no way into a result: write .name or [0]`);
  return { ok: true, value: { field: known, path } };
}

/** Names may hold dots, so the longest one that fits counts. */
function longestKey(text: string, families: Families): Family | undefined {
  let best = families.get(text);
  for (const { index } of best === undefined ? text.matchAll(/[.[]/g) : []) {
    best = families.get(text.slice(0, index)) ?? best;
  }
  return best;
}

/** `.a.b[0]` as `['a', 'b', '0']`. */
function parseSteps(text: string): string[] | null {
  const steps = [...text.matchAll(/\.([\w-]+)|\[(\d+)\]/gy)];
  const isWhole = steps.reduce((length, [step]) => length + step.length, 0) === text.length;
  return isWhole ? steps.map(([, name, index]) => name ?? (index as string)) : null;
}

function unknownSession(name: string, families: Families, hint: Hint): string {
  for (const family of families.values()) {
    const instance = family.dimensions.length > 0 && family.instances.find(({ key }) => key === name);
    if (instance) return `there is no session ${quoted(name)} in this file; write ${spelled(instance)}`;
  }
  return `there is no session ${quoted(name)}${hint(name, families.keys())}`;
}

function spelled({ family, values }: Instance): string {
  return `${family.key}[${values.map(({ name, text }) => name ?? text).join(',')}]`;
}

export interface Selected {
  readonly instances: readonly Instance[];
  /** Several sessions may be meant. */
  readonly isMany: boolean;
}

/** The sessions that are meant, seen from `from`. */
export function select({ family, selector }: Target, from: Instance, hint: Hint): Parsed<Selected> {
  const { key, dimensions, instances } = family;
  const all: Selected = { instances, isMany: true };
  if (family.spec.matrix === undefined) {
    if (selector === null) return { ok: true, value: { instances, isMany: false } };
    return refuse(`${quoted(key)} has no matrix: write ${key} without "[${selector}]"`);
  }
  const first = dimensions[0];
  // Its matrix has a problem of its own.
  if (first === undefined || instances.length === 0) return { ok: true, value: all };
  if (selector === null) {
    const same = `${key}[matrix.${first.key}] for the one with the same ${first.key}`;
    return refuse(`${quoted(key)} has a matrix: write ${key}[*] for all of its sessions, or ${same}`);
  }
  if (selector.trim() === '*') return { ok: true, value: all };
  const parts = selector.split(',').map((part) => part.trim());
  const whole = selector.trim();
  if (whole.startsWith('matrix.') && parts.length === 1) return selectSame(family, whole, from, hint);
  const exact = labelled(family, whole);
  if (exact.length === 1) return { ok: true, value: { instances: exact, isMany: false } };
  if (exact.length > 1) return refuse(ambiguous(family, whole, exact));
  if (parts.length > 1 && parts.length === dimensions.length) return selectByParts(family, parts, from, hint);
  return selectUnknown(family, whole, hint);
}

/** `key[matrix.KEY]`: those whose KEY equals that of `from`. */
function selectSame(family: Family, part: string, from: Instance, hint: Hint): Parsed<Selected> {
  const matrixKey = part.slice('matrix.'.length);
  const index = family.dimensions.findIndex(({ key }) => key === dimensionKey(matrixKey));
  if (index < 0) return refuse(noKey(family, matrixKey, hint));
  const wanted = ownValue(from, matrixKey, hint);
  if (!wanted.ok) return wanted;
  const found = same(family, index, matrixKey, wanted.value);
  if (found.length > 0) return { ok: true, value: { instances: found, isMany: found.length > 1 } };
  const isOpen = family.dimensions[index]?.isOpen || isOpenIn(from.family, matrixKey);
  if (isOpen) return { ok: true, value: { instances: family.instances.slice(0, 1), isMany: false } };
  const value = quoted(textOf(wanted.value, matrixKey));
  return refuse(`no session of ${quoted(family.key)} has ${value} as its matrix.${matrixKey}`);
}

/** `key[a,b]`: one part for each dimension, each a value, `matrix.KEY` or `*`. */
function selectByParts(family: Family, parts: readonly string[], from: Instance, hint: Hint): Parsed<Selected> {
  let left: readonly Instance[] = family.instances;
  for (const [index, part] of parts.entries()) {
    if (part === '*') continue;
    let fitting = labelledIn(family, index, part);
    if (part.startsWith('matrix.')) {
      const matrixKey = part.slice('matrix.'.length);
      const wanted = ownValue(from, matrixKey, hint);
      if (!wanted.ok) return wanted;
      fitting = same(family, index, matrixKey, wanted.value);
    }
    const fits = new Set(fitting);
    const next = left.filter((instance) => fits.has(instance));
    if (next.length === 0 && !family.dimensions[index]?.isOpen) return selectUnknown(family, parts.join(','), hint);
    if (next.length > 0) left = next;
  }
  return { ok: true, value: { instances: left, isMany: left.length > 1 || parts.includes('*') } };
}

function selectUnknown(family: Family, text: string, hint: Hint): Parsed<Selected> {
  const { dimensions, instances, key } = family;
  // With projects that are not known yet the value may be one of them.
  if (dimensions.some(({ isOpen }) => isOpen)) {
    return { ok: true, value: { instances: instances.slice(0, 1), isMany: false } };
  }
  const known = instances.map((instance) => instance.values.map(({ name, text: value }) => name ?? value).join(','));
  return refuse(`${quoted(key)} has no session for ${quoted(text)}${hint(text, known)}`);
}

function ambiguous({ key, dimensions }: Family, text: string, found: readonly Instance[]): string {
  const named = found.slice(0, 3).map((instance) => instance.key);
  const more = found.length > named.length ? ', …' : '';
  const next =
    dimensions.length > 1
      ? `give a value for each of ${dimensions.map((dimension) => dimension.key).join(', ')}, separated by commas`
      : 'give more of the path';
  return `${quoted(text)} fits ${found.length} sessions of ${quoted(key)} (${named.join(', ')}${more}); ${next}`;
}

function noKey(family: Family, matrixKey: string, hint: Hint): string {
  const keys = family.dimensions.map(({ key }) => key);
  const known = hint(matrixKey, keys) || `; its keys are ${keys.join(', ')}`;
  return `the matrix of ${quoted(family.key)} has no key ${quoted(matrixKey)}${known}`;
}

function ownValue(from: Instance, matrixKey: string, hint: Hint): Parsed<MatrixValue> {
  const { family, values } = from;
  if (family.dimensions.length === 0) {
    return refuse(`${quoted(family.key)} has no matrix, so it has no matrix.${matrixKey}`);
  }
  const index = family.dimensions.findIndex(({ key }) => key === dimensionKey(matrixKey));
  const value = values[index];
  return value === undefined ? refuse(noKey(family, matrixKey, hint)) : { ok: true, value };
}

/** `name` is the folder's name of the dimension `project`. */
function dimensionKey(matrixKey: string): string {
  return matrixKey === 'name' ? 'project' : matrixKey;
}

function textOf({ text, name }: MatrixValue, matrixKey: string): string {
  return matrixKey === 'name' ? (name ?? text) : text;
}

function isOpenIn(family: Family, matrixKey: string): boolean {
  return family.dimensions.some(({ key, isOpen }) => isOpen && key === dimensionKey(matrixKey));
}

function labelledIn(family: Family, dimension: number, label: string): readonly Instance[] {
  return family.instances.filter(({ values }) => values[dimension]?.labels.includes(label));
}

/** Instances that have the label in any dimension. */
function labelled(family: Family, label: string): readonly Instance[] {
  return family.instances.filter(({ values }) => values.some(({ labels }) => labels.includes(label)));
}

function same(family: Family, dimension: number, matrixKey: string, value: MatrixValue): readonly Instance[] {
  const wanted = textOf(value, matrixKey);
  return family.instances.filter(({ values }) => {
    const own = values[dimension];
    return own !== undefined && (matrixKey === 'name' ? own.name === wanted : own.text === wanted);
  });
}
