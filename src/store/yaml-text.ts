/**
 * YAML written by people: checked against a schema, with every problem at its line and column, all at once. Its content
 * is never executed, and parsing it is always fast.
 */
import type { Alias, Document, Node, YAMLParseError } from 'yaml';
import type { z } from 'zod';
import { errorText, fail, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import { hint } from '../core/nearest.ts';

/** On first use, for the same reason as in schema.ts. */
function library(): typeof import('yaml') {
  return require('yaml');
}

/** Larger than any hand-written file. */
export const yamlBytesMax = 1024 * 1024;
const aliasesMax = 100;

/** A problem at a position of a file. Line and column count from 1. */
export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** Lines that show the position, as in the file. */
  readonly frame?: readonly string[];
}

/** A problem of a file as a whole. */
export function wholeFile(file: string, message: string): Problem {
  return { file, line: 1, column: 1, message };
}

export type YamlPath = readonly (string | number)[];

export interface YamlText {
  /** Plain data, or undefined for an empty file. */
  readonly value: unknown;
  /** A problem at the value under `path`, or at its nearest existing parent. */
  problemAt(path: YamlPath, message: string): Problem;
  /** A problem at the key itself, for unknown keys. */
  problemAtKey(path: YamlPath, key: string, message: string): Problem;
  /** The text or number at `path`: its start in the file and its source text; null for other values. */
  scalarAt(path: YamlPath): { readonly offset: number; readonly source: string; readonly isPlain: boolean } | null;
}

export type Validated<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface YamlSource {
  readonly text: string;
  readonly file: string;
  /** Lines of the file before the text, such as the first line of a front matter; 0 unless given. */
  readonly linesBefore?: number;
}

/** Parses, or names the first syntax error: later ones mostly follow from it. Never throws. */
export function readYaml({ text, file, linesBefore = 0 }: YamlSource): Validated<YamlText> {
  const { LineCounter, parseDocument } = library();
  const lines = new LineCounter();
  const at = (offset: number, message: string): Problem => {
    const { line, col } = lines.linePos(offset);
    return { file, line: Math.max(1, line) + linesBefore, column: Math.max(1, col), message };
  };
  const refuse = (message: string): Validated<YamlText> => ({
    ok: false,
    problems: [{ file, line: 1 + linesBefore, column: 1, message }],
  });
  const refuseAt = (offset: number, sentence: (source: string, column: number) => string): Validated<YamlText> => {
    const problem = at(offset, '');
    const source = text.split('\n')[problem.line - linesBefore - 1]?.trimEnd() ?? '';
    const message = sentence(source, problem.column);
    return { ok: false, problems: [{ ...problem, message, frame: frameOf(problem, source) }] };
  };
  if (Buffer.byteLength(text) > yamlBytesMax) return refuse(`is larger than ${yamlBytesMax / 1024 ** 2} MiB`);
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
    const [error] = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
    if (error !== undefined) return refuseAt(error.pos[0], (...place) => sentenceOf(error, ...place));
    const root = document.contents;
    const alias = danglingAlias(document);
    if (alias !== null) {
      const message = `there is no anchor "&${alias.source}"; quote text that starts with "*"`;
      return refuseAt(alias.range?.[0] ?? 0, () => message);
    }
    return {
      ok: true,
      value: {
        // Through JSON, which rejects alias cycles, and converts dates to text.
        value: JSON.parse(JSON.stringify(document.toJS({ maxAliasCount: aliasesMax }) ?? null)),
        problemAt: (path, message) => at(nodeAt(root, path)?.range?.[0] ?? 0, message),
        problemAtKey: (path, key, message) => at(keyOffset(root, path, key), message),
        scalarAt: (path) => scalarAt(root, path),
      },
    };
  } catch (error) {
    // The YAML library throws for aliases that expand without bound or name nothing.
    return refuse(error instanceof RangeError ? 'is nested too deeply' : errorText(error));
  }
}

/** The first dangling alias; the library throws for it without a position. */
function danglingAlias(document: Document.Parsed): Alias.Parsed | null {
  let found: Alias.Parsed | null = null;
  library().visit(document, {
    Alias(_, node) {
      if (node.resolve(document) === undefined) found ??= node as Alias.Parsed;
    },
  });
  return found;
}

/** Sentences for the most likely mistakes; the library's messages address programmers. */
function sentenceOf({ code, message }: YAMLParseError, source: string, column: number): string {
  const key = source.slice(column - 1).replace(/\s*:.*$/, '');
  if (/^ *\t/.test(source)) return 'the indentation contains a tab; use spaces';
  if (/:\s+\{\{/.test(source)) return 'quote text that starts with "{{"';
  const holdsColon = /^[^"'#]*?:\s+(?!["'])[^#]*?:(?:\s|$)/.test(source);
  if (holdsColon && (code === 'BLOCK_AS_IMPLICIT_KEY' || code === 'BLOCK_IN_FLOW'))
    return 'quote text that contains ": "';
  switch (code) {
    case 'MULTIPLE_DOCS':
      return 'a second document starts here (---); the file may contain only one';
    case 'MISSING_CHAR':
      return 'a quote is never closed';
    case 'BAD_SCALAR_START':
      return 'quote text that starts with this character';
    case 'UNEXPECTED_TOKEN':
      return 'the value ends before this; quote the whole value';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'the next line is indented more, but this line already has a value';
    case 'BAD_INDENT':
      if (message.startsWith('Flow')) return 'a bracket above is not closed before this line';
      return 'the indentation matches no line above; keys of a map start at the same column';
    case 'MULTILINE_IMPLICIT_KEY':
      return '"key: value" is expected here, with a colon and a space';
    case 'DUPLICATE_KEY':
      return `the key ${quoted(key)} appears twice in its map; remove one of them`;
    default:
      return message;
  }
}

const frameColumnsMax = 100;

/** The line with a mark under the column; empty when the mark would be too far to the right. */
function frameOf({ line, column }: Problem, source: string): readonly string[] {
  if (column > frameColumnsMax) return [];
  const lead = `  ${line} | `;
  return [lead + source.slice(0, frameColumnsMax), `${' '.repeat(lead.length - 2)}| ${' '.repeat(column - 1)}^`];
}

/** The file's value by `schema`, or all its problems. `whole` names the file as a whole. */
export function checkYaml<T>(yaml: YamlText, schema: z.ZodType<T>, whole: string): Validated<T> {
  const parsed = schema.safeParse(yaml.value, { error: knownKeys });
  if (parsed.success) return { ok: true, value: parsed.data };
  return { ok: false, problems: inOrder(parsed.error.issues.flatMap((issue) => describeIssue(issue, yaml, whole))) };
}

/** For the message about an unknown key: the known ones, for a suggestion. */
function knownKeys({ code, inst }: z.core.$ZodRawIssue): string | undefined {
  const { shape = {} } = (inst as z.ZodObject | undefined)?.def ?? {};
  return code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : undefined;
}

/** Fails with `usage`: one line per problem, `file:line:column` first, so that editors can jump there. */
export function problemsFailure(
  noun: string,
  problems: readonly Problem[],
  next = 'Correct it and run the command again.',
): Result<never> {
  const sorted = inOrder(problems);
  const amount = sorted.length === 1 ? 'a problem' : `${sorted.length} problems`;
  const { failure } = fail('usage', `${noun} has ${amount}:\n${sorted.map(describeYamlProblem).join('\n')}`, next);
  return { ok: false, failure: { ...failure, isList: true } };
}

export function inOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted(
    (a, b) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0) || a.line - b.line || a.column - b.column,
  );
}

export function describeYamlProblem({ file, line, column, message, frame = [] }: Problem): string {
  return [`${file}:${line}:${column}: ${message}`, ...frame].join('\n');
}

/** One problem for each position of a zod issue: unknown keys are reported at the key itself. */
function describeIssue(issue: z.core.$ZodIssue, yaml: YamlText, whole: string): Problem[] {
  const path = issue.path.map((part) => (typeof part === 'number' ? part : String(part)));
  const where = path.length === 0 ? whole : path.join('.');
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(' ');
    return issue.keys.map((key) => yaml.problemAtKey(path, key, `${where} has no ${quoted(key)}${hint(key, known)}`));
  }
  if (issue.code === 'invalid_key') {
    const [key = '', rule] = [path.at(-1), issue.issues[0]?.message];
    return [yaml.problemAtKey(path.slice(0, -1), String(key), `${quoted(String(key))} is not a valid name: ${rule}`)];
  }
  const isAbsent = issue.message.endsWith('received undefined');
  return [yaml.problemAt(path, isAbsent ? `${where} is missing` : issueSentence(issue, yaml.value, where))];
}

/** The problem of a zod issue found in `root`, without a full stop; `where` names the value. */
export function issueSentence(issue: z.core.$ZodIssue, root: unknown, where = issue.path.join('.')): string {
  const value = issue.path.reduce<unknown>(
    (found, part) => (found as Readonly<Record<PropertyKey, unknown>> | null)?.[part],
    root,
  );
  return `${where}${plainIssue(issue, value)}`;
}

const kindNames: Readonly<Record<string, string>> = {
  ...{ record: 'a map ("name: value")', object: 'a map ("name: value")', array: 'a list', string: 'a text' },
  ...{ number: 'a number', int: 'a whole number', boolean: 'true or false' },
};

/** Continues the sentence after the value's name. Messages of our own schemas stay. */
function plainIssue(issue: z.core.$ZodIssue, value: unknown): string {
  if (issue.code === 'invalid_type' && issue.message.startsWith('Invalid input')) {
    const found = Array.isArray(value) ? 'array' : value === null ? 'nothing' : typeof value;
    const quotes =
      issue.expected === 'string' && found === 'object' ? ': put a text that begins with "{" in quotes' : '';
    const bare = issue.expected === 'number' && found === 'string' ? ', without quotes or a unit such as "$"' : '';
    const wanted = kindNames[issue.expected] ?? issue.expected;
    return ` must be ${wanted}, not ${kindNames[found] ?? found}${quotes}${bare}`;
  }
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid')) {
    return ` must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
  }
  const [, sign = '', bound] = /^Too (?:small|big): expected .* ([<>]=?)(.*)$/.exec(issue.message) ?? [];
  const words: Readonly<Record<string, string>> = {
    '>=': 'at least',
    '<=': 'at most',
    '>': 'more than',
    '<': 'less than',
  };
  if (issue.message.startsWith('must ')) return ` ${issue.message}`;
  return bound === undefined ? `: ${issue.message}` : ` must be ${words[sign]} ${bound}`;
}

/** The node at `path`, or its nearest existing parent. */
function nodeAt(root: Node | null, path: YamlPath): Node | null {
  let node: unknown = root;
  for (const part of path) {
    const child = childOf(node, part);
    if (child === undefined || child === null) break;
    node = child;
  }
  return node as Node | null;
}

function childOf(node: unknown, part: string | number): unknown {
  if (library().isSeq(node)) return node.items[Number(part)];
  return pairOf(node, String(part))?.value;
}

function pairOf(node: unknown, name: string) {
  const { isMap, isScalar } = library();
  return isMap(node) ? node.items.find(({ key }) => isScalar(key) && String(key.value) === name) : undefined;
}

function scalarAt(root: Node | null, path: YamlPath): ReturnType<YamlText['scalarAt']> {
  const node = path.reduce<unknown>(childOf, root);
  if (!library().isScalar(node) || node.range == null) return null;
  return { offset: node.range[0], source: node.source ?? '', isPlain: node.type === 'PLAIN' };
}

function keyOffset(root: Node | null, path: YamlPath, key: string): number {
  const node = nodeAt(root, path);
  return (pairOf(node, key)?.key as Node | undefined)?.range?.[0] ?? node?.range?.[0] ?? 0;
}
