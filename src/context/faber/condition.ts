/**
 * Conditions of critical artifacts, such as `state.artifacts.spec_path != null`. They come from project files, so they
 * are never run as code. Supported: comparisons, `&&`, `||` and `!`; operands are `null`, booleans, numbers, quoted
 * texts and paths into the state.
 */
import type { JsonPath } from '../../store/json-positions.ts';
import { fieldOf } from './json-text.ts';

export type Condition = (state: unknown) => boolean;

export type ParsedCondition =
  | { readonly ok: true; readonly holds: Condition }
  | { readonly ok: false; readonly column: number; readonly message: string };

const lengthMax = 1_000;
const step = String.raw`\.[A-Za-z_][\w-]*|\[\d{1,6}\]|\['[^'\\]*'\]|\["[^"\\]*"\]`;
const side = String.raw`state(?:${step})+|null|true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?|'[^'\\]*'|"[^"\\]*"`;
const comparison = new RegExp(`^\\s*([!\\s]*)(${side})\\s*(?:(===?|!==?|<=|>=|<|>)\\s*(${side}))?\\s*$`);
const outside = (operator: string) => new RegExp(`${operator}(?=(?:[^'"]|'[^']*'|"[^"]*")*$)`);
const [or, and] = [outside('\\|\\|'), outside('&&')];

/** Never throws. A path without a value is null. */
export function parseCondition(text: string): ParsedCondition {
  if (text.length > lengthMax) return { ok: false, column: 1, message: `is longer than ${lengthMax} characters` };
  let column = 1;
  const alternatives: Condition[][] = [];
  for (const alternative of text.split(or)) {
    const all: Condition[] = [];
    for (const part of alternative.split(and)) {
      const holds = parseComparison(part);
      if (holds === null) {
        const message = 'expected a comparison such as state.artifacts.spec_path != null; join several by && or ||';
        return { ok: false, column: column + part.search(/\S|$/), message };
      }
      all.push(holds);
      column += part.length + 2;
    }
    alternatives.push(all);
  }
  return { ok: true, holds: (state) => alternatives.some((all) => all.every((holds) => holds(state))) };
}

function parseComparison(text: string): Condition | null {
  const [whole, negations = '', left = '', operator, right = ''] = comparison.exec(text) ?? [];
  if (whole === undefined) return null;
  const isNegated = negations.replace(/\s/g, '').length % 2 === 1;
  const [one, other] = [sideOf(left), sideOf(right)];
  return (state) => {
    const value = operator === undefined ? isTrue(one(state)) : compared(operator, one(state), other(state));
    return value !== isNegated;
  };
}

function sideOf(text: string): (state: unknown) => unknown {
  if (text.startsWith('state')) {
    const path = pathIn(text.slice('state'.length)) ?? [];
    return (state) => stateValue(state, path) ?? null;
  }
  const value: unknown = text === '' ? null : /^['"]/.test(text) ? text.slice(1, -1) : JSON.parse(text);
  return () => value;
}

function isTrue(value: unknown): boolean {
  return value !== null && value !== false && value !== 0 && value !== '';
}

/** Strings and numbers are ordered among themselves; other values are neither less nor more. */
function compared(operator: string, left: unknown, right: unknown): boolean {
  if (operator.startsWith('==')) return left === right;
  if (operator.startsWith('!=')) return left !== right;
  const isOrdered = typeof left === typeof right && (typeof left === 'number' || typeof left === 'string');
  if (!isOrdered) return false;
  const [a, b] = [left as number, right as number];
  if (a === b) return operator.endsWith('=');
  return operator.startsWith('<') ? a < b : a > b;
}

/** `artifacts.spec_path`, also written `$.artifacts['spec_path']` or with `state` in front; null for another text. */
export function parsePath(text: string): JsonPath | null {
  const rest = text.trim().replace(/^(?:\$|state(?=[.[]))\.?/, '');
  return pathIn(/^[.[]/.test(rest) ? rest : `.${rest}`);
}

function pathIn(text: string): JsonPath | null {
  if (text.length > lengthMax || !new RegExp(`^(?:${step})+$`).test(text)) return null;
  return [...text.matchAll(new RegExp(step, 'g'))].map(([part]) => {
    if (part.startsWith('.')) return part.slice(1);
    return /^\[\d/.test(part) ? Number(part.slice(1, -1)) : part.slice(2, -2);
  });
}

export function stateValue(state: unknown, path: JsonPath): unknown {
  return path.reduce<unknown>((value, part) => fieldOf(value, part), state);
}
