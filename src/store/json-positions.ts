/**
 * Positions of faults and values in a JSON text. The runtime's parser names no position, and silently takes the last of
 * two equal keys, which would lose a deny rule.
 */
import type { Node, ParseError } from 'jsonc-parser';

/** Loaded when a position is needed: a hook reads valid JSON, and must start fast. */
// By its path: otherwise a require gets a build that loads its parts in a way that cannot be compiled in.
const library = () => require('jsonc-parser/lib/esm/main.js') as typeof import('jsonc-parser');

export interface JsonFault {
  /** UTF-16 units from the start of the text. */
  readonly offset: number;
  readonly message: string;
}

export type JsonPath = readonly (string | number)[];

/** Why a text is not JSON; null when it is. Duplicate keys are not checked. */
export function findJsonFault(text: string): JsonFault | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    if (error instanceof RangeError) return { offset: 0, message: 'is nested too deeply' };
    const errors: ParseError[] = [];
    treeOf(text, errors);
    const [{ error: code, offset } = { error: 1, offset: 0 }] = errors;
    return { offset, message: `is not JSON: ${slips[library().printParseErrorCode(code)] ?? 'a value is expected'}` };
  }
}

/** By the parser's names of them. */
const slips: Readonly<Record<string, string>> = {
  InvalidSymbol: 'a value is expected: text in double quotes, a number, true, false, null, "{" or "["',
  InvalidNumberFormat: 'this is not a number',
  PropertyNameExpected: 'a key in double quotes is expected; remove a comma before "}" or "]"',
  ValueExpected: 'a value is expected; remove a comma before "}" or "]"',
  ColonExpected: 'a colon is expected after the key',
  CommaExpected: 'a comma is expected between two values',
  CloseBraceExpected: 'a "{" is not closed before this',
  CloseBracketExpected: 'a "[" is not closed before this',
  EndOfFileExpected: 'unexpected text after the end of the value',
  InvalidCommentToken: 'JSON does not allow comments',
  UnexpectedEndOfComment: 'JSON does not allow comments',
  UnexpectedEndOfString: 'a quote is not closed on its line',
  UnexpectedEndOfNumber: 'this is not a number',
  InvalidUnicode: '\\u needs four hexadecimal digits',
  InvalidEscapeCharacter: 'invalid escape; write \\\\ for a backslash',
  InvalidCharacter: 'a string contains a tab or another control character; write \\t or \\u and its code',
};

/** Why a text is not a JSON object with unique keys; null when it is one. */
export function findObjectFault(text: string): JsonFault | null {
  if (!text.trimStart().startsWith('{')) {
    return { offset: text.search(/\S|$/), message: 'a JSON object is expected, which starts with "{"' };
  }
  return findJsonFault(text) ?? equalKeys(treeOf(text));
}

/** The start of the value at `path`, or of its nearest existing parent. The text must be JSON. */
export function offsetOf(text: string, path: JsonPath): number {
  const root = treeOf(text);
  const { findNodeAtLocation } = library();
  for (let length = path.length; root !== undefined && length >= 0; length -= 1) {
    const found = findNodeAtLocation(root, path.slice(0, length));
    if (found !== undefined) return found.offset;
  }
  return 0;
}

function treeOf(text: string, errors: ParseError[] = []): Node | undefined {
  return library().parseTree(text, errors, { disallowComments: true });
}

function equalKeys(node: Node | undefined): JsonFault | null {
  const known = new Set<unknown>();
  for (const child of node?.children ?? []) {
    const key = node?.type === 'object' ? child.children?.[0] : undefined;
    if (key !== undefined && known.has(key.value)) {
      return { offset: key.offset, message: `the key ${JSON.stringify(key.value)} appears twice` };
    }
    if (key !== undefined) known.add(key.value);
    const below = equalKeys(child);
    if (below !== null) return below;
  }
  return null;
}
