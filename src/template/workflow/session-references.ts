/**
 * References to sessions in a workflow: `NAME`, `NAME[*]`, `NAME[VALUE]`, `NAME[matrix.KEY]` in `dependsOn`, and the
 * same inside `{{sessions.NAME.result}}`; and the resulting graph of dependencies.
 */
import { ancestorsOf, buildGraph } from '../../core/graph.ts';
import type { PromptReference } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import type { Families, Family, Instance, MatrixValue } from './matrix.ts';
import type { Problems } from './problems.ts';
import { memoize } from './template-cache.ts';

export interface ReferenceTarget {
  readonly family: Family;
  readonly selector: string | null;
}

/** The requested part of a session's result. */
export interface Wanted extends ReferenceTarget {
  readonly field: PromptReference['field'];
  readonly path: readonly string[];
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const refuse = (problem: string) => ({ ok: false, problem }) as const;

export function parseDependency(text: string, families: Families): Parsed<ReferenceTarget> {
  const match = /^([^[\]]*)(?:\[([^[\]]*)\])?$/.exec(text.trim());
  if (match === null) return refuse(`${quoted(text)} is not a session reference: write NAME, NAME[*] or NAME[VALUE]`);
  const [, name = '', selector = null] = match;
  const family = families.get(name);
  return family === undefined ? refuse(unknownSession(name, families)) : { ok: true, value: { family, selector } };
}

/** Parses the text between the braces, which begins with `sessions.`. */
export function parseReference(name: string, families: Families): Parsed<Wanted> {
  const rest = name.slice('sessions.'.length);
  const family = families.get(longestName(rest, families) ?? '');
  if (family === undefined) return refuse(unknownSession(rest.split(/[[.]/, 1)[0] as string, families));
  const tail = /^(?:\[([^[\]]*)\])?(.*)$/s.exec(rest.slice(family.key.length));
  const [, selector = null, access = ''] = tail ?? [];
  const what = parseAccess(access, family.key);
  return what.ok ? { ok: true, value: { family, selector, ...what.value } } : what;
}

const fields: readonly PromptReference['field'][] = ['result', 'structured', 'diffStat', 'branch'];

/** Parses the requested part: one of the fields, and for `.structured` a path into it. */
export function parseAccess(access: string, session: string): Parsed<Pick<Wanted, 'field' | 'path'>> {
  const match = /^\.([\w-]+)(.*)$/s.exec(access);
  if (match === null) return refuse(`add a field to ${quoted(session)}: .result, .structured, .diffStat or .branch`);
  const [, field = '', steps = ''] = match;
  const known = fields.find((one) => one === field);
  if (known === undefined) {
    return refuse(`a session has no ${quoted(field)}${hint(field, fields) || `; use ${fields.join(', ')}`}`);
  }
  if (known === 'result' && steps !== '') {
    return refuse('a result is plain text; with an outputSchema its fields are in .structured');
  }
  if (known !== 'structured' && steps !== '') return refuse(`.${known} is plain text and has no fields`);
  const path = parseSteps(steps);
  if (path === null) return refuse(`${quoted(steps)} is not a path into a result: write .name or [0]`);
  return { ok: true, value: { field: known, path } };
}

/** The longest known name at the start of the text, because names may contain dots. */
export function longestName(text: string, known: ReadonlyMap<string, unknown>): string | undefined {
  const ends = [...text.matchAll(/[.[]|$/g)].map(({ index }) => text.slice(0, index));
  return ends.findLast((name) => known.has(name));
}

/** `.a.b[0]` as `['a', 'b', '0']`. */
function parseSteps(text: string): string[] | null {
  const steps = [...text.matchAll(/\.([\w-]+)|\[(\d+)\]/gy)];
  const isWhole = steps.reduce((length, [step]) => length + step.length, 0) === text.length;
  return isWhole ? steps.map(([, name, index]) => name ?? (index as string)) : null;
}

function unknownSession(name: string, families: Families): string {
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
  readonly isMany: boolean;
}

export function select({ family, selector }: ReferenceTarget, from: Instance): Parsed<Selected> {
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
  if (whole.startsWith('matrix.') && parts.length === 1) return selectSame(family, whole, from);
  const exact = labelled(family, whole);
  if (exact.length === 1) return { ok: true, value: { instances: exact, isMany: false } };
  if (exact.length > 1) return refuse(ambiguous(family, whole, exact));
  if (parts.length > 1 && parts.length === dimensions.length) return selectByParts(family, parts, from);
  return selectUnknown(family, whole);
}

/** `key[matrix.KEY]`: those whose KEY equals that of `from`. */
function selectSame(family: Family, part: string, from: Instance): Parsed<Selected> {
  const matrixKey = part.slice('matrix.'.length);
  const index = family.dimensions.findIndex(({ key }) => key === dimensionKey(matrixKey));
  if (index < 0) return refuse(noKey(family, matrixKey));
  const wanted = ownValue(from, matrixKey);
  if (!wanted.ok) return wanted;
  const found = same(family, index, matrixKey, wanted.value);
  if (found.length > 0) return { ok: true, value: { instances: found, isMany: found.length > 1 } };
  const isOpen = family.dimensions[index]?.isOpen || isOpenIn(from.family, matrixKey);
  if (isOpen) return { ok: true, value: { instances: family.instances.slice(0, 1), isMany: false } };
  const value = quoted(textOf(wanted.value, matrixKey));
  return refuse(`no session of ${quoted(family.key)} has ${value} as its matrix.${matrixKey}`);
}

/** `key[a,b]`: one part for each dimension, each a value, `matrix.KEY` or `*`. */
function selectByParts(family: Family, parts: readonly string[], from: Instance): Parsed<Selected> {
  let left: readonly Instance[] = family.instances;
  for (const [index, part] of parts.entries()) {
    if (part === '*') continue;
    let fitting = labelledIn(family, index, part);
    if (part.startsWith('matrix.')) {
      const matrixKey = part.slice('matrix.'.length);
      const wanted = ownValue(from, matrixKey);
      if (!wanted.ok) return wanted;
      fitting = same(family, index, matrixKey, wanted.value);
    }
    const fits = new Set(fitting);
    const next = left.filter((instance) => fits.has(instance));
    if (next.length === 0 && !family.dimensions[index]?.isOpen) return selectUnknown(family, parts.join(','));
    if (next.length > 0) left = next;
  }
  return { ok: true, value: { instances: left, isMany: left.length > 1 || parts.includes('*') } };
}

function selectUnknown(family: Family, text: string): Parsed<Selected> {
  const { dimensions, instances, key } = family;
  // With unknown projects the value may be one of them.
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
      ? `add a value for each of ${dimensions.map((dimension) => dimension.key).join(', ')}, separated by commas`
      : 'give more of the path';
  return `${quoted(text)} matches ${found.length} sessions of ${quoted(key)} (${named.join(', ')}${more}); ${next}`;
}

function noKey(family: Family, matrixKey: string): string {
  const keys = family.dimensions.map(({ key }) => key);
  const known = hint(matrixKey, keys) || `; its keys are ${keys.join(', ')}`;
  return `the matrix of ${quoted(family.key)} has no key ${quoted(matrixKey)}${known}`;
}

function ownValue(from: Instance, matrixKey: string): Parsed<MatrixValue> {
  const { family, values } = from;
  if (family.dimensions.length === 0) {
    return refuse(`${quoted(family.key)} has no matrix, so it has no matrix.${matrixKey}`);
  }
  const index = family.dimensions.findIndex(({ key }) => key === dimensionKey(matrixKey));
  const value = values[index];
  return value === undefined ? refuse(noKey(family, matrixKey)) : { ok: true, value };
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

export interface Wiring {
  /** Every session after its dependencies; among equals in the order of the file. */
  readonly order: readonly Instance[];
  readonly dependsOn: ReadonlyMap<Instance, ReadonlySet<Instance>>;
  isAncestor(from: Instance, to: Instance): boolean;
}

/** Undefined without an order: the dependencies form a cycle. */
export function wire(families: Families, problems: Problems): Wiring | undefined {
  const instances = [...families.values()].flatMap((family) => family.instances);
  const dependsOn = new Map<Instance, Set<Instance>>();
  for (const instance of instances) dependsOn.set(instance, dependenciesOf(instance, families, problems));
  const order = orderOf(instances, dependsOn, problems);
  if (order === undefined) return undefined;
  const nodes = new Map(
    [...dependsOn].map(([{ key }, others]) => [key, { dependsOn: [...others].map((one) => one.key) }]),
  );
  const once = memoize();
  const isAncestor = (from: Instance, to: Instance): boolean =>
    once(to.key, () => ancestorsOf(nodes, [to.key])).has(from.key);
  return { order, dependsOn, isAncestor };
}

function dependenciesOf(instance: Instance, families: Families, problems: Problems): Set<Instance> {
  const { key, spec } = instance.family;
  const { dependsOn = [] } = spec;
  const path = ['sessions', key, 'dependsOn'];
  const found = new Set<Instance>();
  for (const [index, text] of [dependsOn].flat().entries()) {
    const at = typeof dependsOn === 'string' ? path : [...path, index];
    const target = parseDependency(text, families);
    const selected = target.ok ? select(target.value, instance) : target;
    if (!selected.ok) {
      problems.at(at, selected.problem);
      continue;
    }
    if (selected.value.instances.includes(instance)) problems.at(at, `${quoted(key)} depends on itself`);
    else for (const one of selected.value.instances) found.add(one);
  }
  return found;
}

/** The graph gets only numbers for ids: a session may have the name of an object property. */
function orderOf(
  instances: readonly Instance[],
  dependsOn: Wiring['dependsOn'],
  problems: Problems,
): readonly Instance[] | undefined {
  const ids = new Map(instances.map((instance, index) => [instance, `${index}`]));
  const nodes = instances.map((instance) => ({
    id: ids.get(instance) as string,
    name: instance.key,
    dependsOn: [...(dependsOn.get(instance) ?? [])].map((one) => ids.get(one) as string),
  }));
  const graph = buildGraph(nodes);
  if (graph.ok) return graph.value.order.map((id) => instances[Number(id)] as Instance);
  const { message } = graph.failure;
  // The cycle is reported at the first session of its path.
  const start = /: (\S+) -> /.exec(message)?.[1];
  const first = instances.find(({ key }) => key === start);
  const sentence = message.replace(/^T/, 't').replace(/\.$/, '');
  problems.at(first === undefined ? ['sessions'] : ['sessions', first.family.key, 'dependsOn'], sentence);
  return undefined;
}
