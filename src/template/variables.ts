/**
 * Variables of templates and workflows: their declaration, their values from the command line, and their conversion to
 * text.
 */
import { resolve } from 'node:path';
import type { z } from 'zod';
import { defined } from '../core/defined.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { hint, nearest } from '../core/nearest.ts';
import { plainNamePattern, plainNameRule } from '../core/setting-values.ts';
import { schema } from '../store/schema.ts';
import type { World } from '../system/world.ts';
import { readTextFile } from './text-file.ts';

const variableTypes = ['string', 'number', 'boolean', 'enum', 'name', 'path', 'file'] as const;
export type VariableType = (typeof variableTypes)[number];

export interface VariableSpec {
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
  /** Undeclared: its name occurs in the text, which makes it required. */
  readonly mayBeBlank?: true;
  readonly type: VariableType;
  readonly values?: readonly string[];
  /** As on the command line. Neither required nor with a default: empty unless given. */
  readonly default?: string;
}

/** Maximum bytes of a file that becomes part of a prompt. */
const fileBytesMax = 256 * 1024;
const variablesMax = 200;

/** Dots are reserved for built-in names; `__proto__` would not become a key of an object. */
export const namePattern = /^(?!__proto__$)[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
export const nameRule =
  'a name has 1 to 64 letters, digits, "-" or "_", begins with a letter or "_" and is not "__proto__"';
const numberPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const booleans: Readonly<Record<string, string>> = { true: 'true', yes: 'true', false: 'false', no: 'false' };

const variableName = schema((z) => z.string().regex(namePattern, nameRule).describe('Name between the braces'));
/** YAML makes numbers and booleans of unquoted words; a variable is always text. */
export const plainValue = schema((z) =>
  z.union([z.string(), z.number(), z.boolean()], 'expected text, a number, true or false'),
);

const declaration = schema((z) =>
  z.strictObject({
    description: z.string().max(2_000).optional().describe('What the variable is for'),
    required: z.boolean().optional().describe('Whether a non-blank value is required; default: false'),
    type: z.enum(variableTypes).optional().describe('Type of the value; default: string'),
    values: z.array(plainValue()).min(1).max(500).optional().describe('Allowed values of an enum'),
    default: plainValue().optional().describe('Default value'),
  }),
);

type Declared = z.output<ReturnType<typeof declaration>>;

/** The list form of a front matter: `[{name, required, default, type, values, description}]`. */
export const variableList = schema(
  (z): z.ZodType<VariableSpec[]> =>
    z
      .array(z.strictObject({ name: variableName(), ...declaration().shape }).superRefine(checkDeclared))
      .max(variablesMax)
      .superRefine((list, context) => {
        const seen = new Set<string>();
        for (const [index, { name }] of list.entries()) {
          const message = `"${name}" is declared twice`;
          if (seen.has(name)) context.addIssue({ code: 'custom', path: [index, 'name'], message });
          seen.add(name);
        }
      })
      .transform((list) => list.map(({ name, ...declared }) => specOf(name, declared))),
);

/** The map form of a workflow: `{ticket: {required: true}, area: "default", n: 3}`. A plain value is a default. */
export const variableMap = schema(
  (z): z.ZodType<VariableSpec[]> =>
    z
      .record(
        variableName(),
        z.union(
          [plainValue(), declaration().superRefine(checkDeclared)],
          'expected a default value, or a map such as {required: true}',
        ),
        { error: ({ code }) => (code === 'invalid_key' ? nameRule : undefined) },
      )
      .refine((map) => Object.keys(map).length <= variablesMax, `has more than ${variablesMax} variables`)
      .transform((map) =>
        Object.entries(map).map(([name, declared]) =>
          specOf(name, typeof declared === 'object' ? declared : { default: declared }),
        ),
      ),
);

/** Checked one by one, so that a fault of one variable hides none of another. */
function checkDeclared(declared: Declared, context: z.RefinementCtx): void {
  const { required, type = 'string', values, default: fallback } = declared;
  const report = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (required === true && fallback !== undefined) {
    report(['default'], 'a required variable cannot have a default; remove one of the two');
  }
  if (type === 'enum' && values === undefined) report([], 'an enum needs a list of values');
  if (type !== 'enum' && values !== undefined) report(['values'], `only an enum can have values, not a ${type}`);
  const words = values?.map(String) ?? [];
  const twice = words.find((word, index) => words.indexOf(word) < index);
  if (twice !== undefined) report(['values'], `${quote(twice)} appears twice`);
  if (fallback === undefined || (type === 'enum' && values === undefined)) return;
  const trouble = troubleOf({ type, values: words }, String(fallback));
  if (trouble !== null) report(['default'], trouble);
}

function specOf(name: string, { description, required, type, values, default: fallback }: Declared): VariableSpec {
  return {
    name,
    ...defined({ description }),
    required: required === true,
    type: type ?? 'string',
    ...(values === undefined ? {} : { values: values.map(String) }),
    ...(fallback === undefined ? {} : { default: String(fallback) }),
  };
}

/** The problem with a value, as far as it does not depend on files. */
function troubleOf({ type, values = [] }: Pick<VariableSpec, 'type' | 'values'>, text: string): string | null {
  if (text.includes('\0')) return 'it contains a NUL character';
  switch (type) {
    case 'number':
      return numberPattern.test(text) && Number.isFinite(Number(text)) ? null : `${quote(text)} is not a number`;
    case 'boolean':
      return booleanOf(text) === undefined ? `${quote(text)} is neither true nor false` : null;
    case 'enum':
      return values.includes(text) ? null : notAmong(text, values);
    case 'name':
      return plainNamePattern.test(text) ? null : `${quote(text)} is not a plain name; expected ${plainNameRule}`;
    case 'path':
    case 'file':
      return text === '' ? 'the path is empty' : null;
    case 'string':
      return null;
  }
}

function booleanOf(text: string): string | undefined {
  const word = text.toLowerCase();
  return Object.hasOwn(booleans, word) ? booleans[word] : undefined;
}

function notAmong(text: string, values: readonly string[]): string {
  return `${quote(text)} is not one of ${values.map(quote).join(', ')}${hint(text, values)}`;
}

/** For messages: values may be long and contain anything. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

/** A path may be a long text that was given by mistake. */
function brief(path: string): string {
  return path.length > 300 ? `${path.slice(0, 300)}…` : path;
}

export type GivenVariables = Readonly<Record<string, string>>;

/** `["k=v", ...]` in the form of `--var`; the value may contain further "=". Fails with `usage`. */
export function parseGiven(pairs: readonly string[]): Result<GivenVariables> {
  const given = new Map<string, string>();
  for (const pair of pairs) {
    const end = pair.indexOf('=');
    const name = pair.slice(0, end);
    if (end < 0 || !namePattern.test(name)) {
      const what = end < 0 ? 'has no "="' : `has no variable name before the "=": ${nameRule}`;
      return fail('usage', `The value ${quote(pair)} of --var ${what}.`, 'Set variables with --var name=value.');
    }
    const value = pair.slice(end + 1);
    const before = given.get(name);
    if (before !== undefined && before !== value) {
      const message = `The variable "${name}" is set twice, to ${quote(before)} and to ${quote(value)}.`;
      return fail('usage', message, 'Set it only once.');
    }
    given.set(name, value);
  }
  return ok(Object.fromEntries(given));
}

export interface VariableContext {
  readonly world: World;
  readonly folder: string;
  /** Base folder of relative paths in given values; default: the same folder. */
  readonly givenFolder?: string;
}

export interface ResolvedVariables {
  /** One for every declared variable without a problem. */
  readonly values: Record<string, string>;
  readonly problems: string[];
  readonly unused: string[];
}

/**
 * The value of every variable: given, otherwise its default, otherwise empty. Reads files. Required ones must not be
 * blank.
 */
export function resolveVariables(
  specs: readonly VariableSpec[],
  given: GivenVariables,
  context: VariableContext,
): ResolvedVariables {
  const { world, folder, givenFolder = folder } = context;
  const declared = new Set(specs.map(({ name }) => name));
  const unused = Object.keys(given).filter((name) => !declared.has(name));
  const values: [string, string][] = [];
  const problems: string[] = [];
  for (const spec of specs) {
    const isGiven = Object.hasOwn(given, spec.name);
    const text = isGiven ? given[spec.name] : spec.default;
    if (text === undefined) {
      if (spec.required) problems.push(missing(spec, unused));
      else values.push([spec.name, '']);
      continue;
    }
    if (spec.required && !spec.mayBeBlank && isBlank(text)) {
      problems.push(`${named(spec)} is empty`);
      continue;
    }
    const value = textOfValue(spec, text, isGiven ? { world, folder: givenFolder } : { world, folder });
    if (value.ok) values.push([spec.name, value.text]);
    else problems.push(`the variable "${spec.name}": ${value.trouble}`);
  }
  return { values: Object.fromEntries(values), problems, unused };
}

function missing(spec: VariableSpec, unused: readonly string[]): string {
  const near = nearest(spec.name, unused);
  return `${named(spec)} has no value${near === undefined ? '' : `; did you mean it by "${near}"?`}`;
}

/** Includes the description, because a user who left the variable out may not know the template. */
function named({ name, description }: VariableSpec): string {
  const what = description === undefined ? '' : ` (${description.replace(/\s+/g, ' ').trim()})`;
  return `the variable "${name}"${what}`;
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

type Value = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly trouble: string };

function textOfValue(spec: VariableSpec, text: string, { world, folder }: VariableContext): Value {
  const trouble = troubleOf(spec, text);
  if (trouble !== null) return { ok: false, trouble };
  switch (spec.type) {
    case 'boolean':
      return { ok: true, text: booleanOf(text) as string };
    case 'path':
      return { ok: true, text: resolve(folder, text) };
    case 'file': {
      const path = resolve(folder, text);
      const read = readTextFile(world, path, fileBytesMax);
      if (!read.ok) return { ok: false, trouble: `the file ${brief(path)} ${read.trouble}` };
      return spec.required && isBlank(read.text) ? { ok: false, trouble: `the file ${brief(path)} is empty` } : read;
    }
    default:
      return { ok: true, text };
  }
}

export function exampleValue({ type, values, default: fallback, name }: VariableSpec): string {
  if (fallback !== undefined) return fallback;
  switch (type) {
    case 'number':
      return '1';
    case 'boolean':
      return 'true';
    case 'enum':
      return values?.[0] ?? name;
    default:
      return name;
  }
}
