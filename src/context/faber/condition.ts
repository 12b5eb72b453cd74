/**
 * Conditions of critical artifacts, such as `state.artifacts.spec_path != null`. A grammar of their own: they stand in
 * files of a project, so nothing of them is ever run as code.
 *
 *   or:      and ('||' and)*          and: not ('&&' not)*          not: '!' not | compare
 *   compare: value (('==' | '!=' | '<' | '<=' | '>' | '>=') value)?
 *   value:   'null' | 'true' | 'false' | number | 'text' | "text" | state.name['other'][0] | '(' or ')'
 */

import type { JsonPath } from '../../store/json-places.ts';
import { plainNumber } from './exact-number.ts';
import { fieldOf } from './json-text.ts';

export type Condition = (state: unknown) => boolean;

export type ParsedCondition =
  | { readonly ok: true; readonly holds: Condition }
  /** `column` counts from 1 within the condition. */
  | { readonly ok: false; readonly column: number; readonly message: string };

const lengthMax = 1_000;
const depthMax = 50;

/** Never throws. What a path does not lead to is null. */
export function parseCondition(text: string): ParsedCondition {
  if (text.length > lengthMax) return { ok: false, column: 1, message: `is longer than ${lengthMax} characters` };
  try {
    const evaluate = new Parser(text).whole();
    return { ok: true, holds: (state) => isTrue(evaluate(state)) };
  } catch (error) {
    if (error instanceof Trouble) return { ok: false, column: error.offset + 1, message: error.message };
    throw error;
  }
}

/** `artifacts.spec_path`, also written `$.artifacts['spec_path']` or with `state` in front; null when it is no path. */
export function parsePath(text: string): JsonPath | null {
  if (text.length > lengthMax) return null;
  const rest = text.trim().replace(/^(?:\$|state(?=[.[]))\.?/, '');
  const path = /^[.[]/.test(rest) ? rest : `.${rest}`;
  const parts: (string | number)[] = [];
  for (let at = 0; at < path.length; at = segment.lastIndex) {
    segment.lastIndex = at;
    const found = segment.exec(path);
    if (found === null) return null;
    parts.push(partOf(found));
  }
  return parts;
}

/** The value a path leads to; undefined when it leads nowhere. */
export function valueAt(state: unknown, path: JsonPath): unknown {
  return path.reduce<unknown>((value, part) => fieldOf(value, part), state);
}

const segment = /\.([A-Za-z_][\w-]*)|\[(\d{1,6})\]|\['([^'\\]*)'\]|\["([^"\\]*)"\]/y;

function partOf([, name, index, single, double]: RegExpExecArray): string | number {
  return index === undefined ? (name ?? single ?? double ?? '') : Number(index);
}

type Evaluate = (state: unknown) => unknown;

class Trouble extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

const operators = /\s*(===|!==|==|!=|<=|>=|<|>)/y;
const literal = /null\b|true\b|false\b|-?(?:0|[1-9]\d*)(?:\.\d+)?(?![\w.])|'([^'\\]*)'|"([^"\\]*)"/y;
const blank = /\s*/y;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Evaluate {
    const found = this.#or();
    this.#match(blank);
    if (this.#at < this.#text.length) this.#fail('expected an operator or the end');
    return found;
  }

  #or(): Evaluate {
    let left = this.#and();
    while (this.#takes('||')) {
      const [one, other] = [left, this.#and()];
      left = (state) => isTrue(one(state)) || isTrue(other(state));
    }
    return left;
  }

  #and(): Evaluate {
    let left = this.#not();
    while (this.#takes('&&')) {
      const [one, other] = [left, this.#not()];
      left = (state) => isTrue(one(state)) && isTrue(other(state));
    }
    return left;
  }

  #not(): Evaluate {
    let negated = false;
    let any = false;
    while (this.#takes('!')) {
      negated = !negated;
      any = true;
    }
    const value = this.#compare();
    return any ? (state) => isTrue(value(state)) !== negated : value;
  }

  #compare(): Evaluate {
    const left = this.#value();
    const operator = this.#match(operators)?.[1];
    if (operator === undefined) return left;
    const right = this.#value();
    return (state) => compared(operator, left(state) ?? null, right(state) ?? null);
  }

  #value(): Evaluate {
    if (this.#takes('(')) {
      this.#depth += 1;
      if (this.#depth > depthMax) this.#fail(`nests more than ${depthMax} levels`);
      const inner = this.#or();
      if (!this.#takes(')')) this.#fail('expected ")"');
      this.#depth -= 1;
      return inner;
    }
    const found = this.#match(literal);
    if (found !== null) {
      const value = found[1] ?? found[2] ?? JSON.parse(found[0]);
      return () => value;
    }
    return this.#path();
  }

  #path(): Evaluate {
    const start = this.#at;
    const parts: (string | number)[] = [];
    if (this.#match(/state\b/y) === null) this.#fail('expected state.…, a number, a text, true, false or null');
    for (let part = this.#match(segment); part !== null; part = this.#match(segment)) parts.push(partOf(part));
    if (parts.length === 0) this.#fail('expected a field such as state.status', start);
    return (state) => plainNumber(valueAt(state, parts));
  }

  #takes(symbol: string): boolean {
    this.#match(blank);
    const isNotEqual = symbol === '!' && this.#text.startsWith('!=', this.#at);
    if (isNotEqual || !this.#text.startsWith(symbol, this.#at)) return false;
    this.#at += symbol.length;
    this.#match(blank);
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    if (pattern !== segment && pattern !== operators && pattern !== blank) this.#match(blank);
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found;
  }

  #fail(message: string, offset = this.#at): never {
    throw new Trouble(offset, message);
  }
}

function isTrue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== 0 && value !== '';
}

/** Texts and numbers have an order among themselves; anything else is neither less nor more. */
function compared(operator: string, left: unknown, right: unknown): boolean {
  if (operator.startsWith('==')) return left === right;
  if (operator.startsWith('!=')) return left !== right;
  const isOrdered = typeof left === typeof right && (typeof left === 'number' || typeof left === 'string');
  if (!isOrdered) return false;
  const [a, b] = [left as number, right as number];
  if (operator === '<') return a < b;
  if (operator === '<=') return a <= b;
  return operator === '>' ? a > b : a >= b;
}
