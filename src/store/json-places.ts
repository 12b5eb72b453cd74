/**
 * Where a JSON text is wrong, and where what it says stands. The runtime's own parser names no place, and takes the
 * last of two equal keys without a word, which would lose a deny rule.
 */
import type { Node, ParseError } from 'jsonc-parser';

/** Loaded when a place is asked for: a hook reads JSON that is as it should be, and must start fast. */
const library = () => require('jsonc-parser') as typeof import('jsonc-parser');

export interface JsonFault {
  /** UTF-16 units from the begin of the text. */
  readonly offset: number;
  /** Completes a sentence; without a full stop. */
  readonly message: string;
}

export type JsonPath = readonly (string | number)[];

/** Each level of nesting takes a level of the stack, and the runtime reads what it cannot write any more. */
const depthMax = 200;

/** By the library's names: what was expected in place of what is there. */
const expected: Readonly<Record<string, string>> = {
  PropertyNameExpected: 'a key in double quotes',
  ValueExpected: 'a value',
  ColonExpected: '":"',
  CommaExpected: '"," or a closing bracket',
  CloseBraceExpected: '"," or "}"',
  CloseBracketExpected: '"," or "]"',
  EndOfFileExpected: 'the end',
};
/** And what is wrong with a part of it. */
const wrong: Readonly<Record<string, string>> = {
  InvalidSymbol: 'JSON does not know what stands here',
  InvalidNumberFormat: 'this number is not complete',
  InvalidCommentToken: 'JSON knows no comments',
  UnexpectedEndOfComment: 'JSON knows no comments',
  UnexpectedEndOfString: 'this text has no end',
  UnexpectedEndOfNumber: 'this number is not complete',
  InvalidUnicode: 'this text holds an escape that JSON does not know',
  InvalidEscapeCharacter: 'this text holds an escape that JSON does not know',
  InvalidCharacter: 'this text holds a character that JSON wants escaped',
};

/** What keeps a text from being JSON; null when it is. Equal keys are none. */
export function findJsonFault(text: string): JsonFault | null {
  const tooDeep = offsetOfDepth(text);
  if (tooDeep !== null) return { offset: tooDeep, message: `nests more than ${depthMax} levels` };
  try {
    JSON.parse(text);
    return null;
  } catch {
    const errors: ParseError[] = [];
    treeOf(text, errors);
    const [first] = errors;
    if (first === undefined) return { offset: 0, message: 'is not JSON' };
    const { offset } = first;
    const name = library().printParseErrorCode(first.error);
    const char = text.codePointAt(offset);
    const found = char === undefined ? 'the end' : JSON.stringify(String.fromCodePoint(char));
    const wanted = expected[name];
    return {
      offset,
      message: wanted === undefined ? (wrong[name] ?? 'is not JSON') : `${wanted} was expected instead of ${found}`,
    };
  }
}

/** What keeps a text from being a JSON object in which no key stands twice; null when it is one. */
export function findObjectFault(text: string): JsonFault | null {
  if (!text.trimStart().startsWith('{')) {
    return { offset: text.search(/\S|$/), message: 'a JSON object was expected, it begins with "{"' };
  }
  return findJsonFault(text) ?? equalKeys(treeOf(text));
}

/** Where the value at `path` begins, or the nearest thing above it when it is missing. The text must be JSON. */
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
      return { offset: key.offset, message: `the key ${JSON.stringify(key.value)} is there twice` };
    }
    if (key !== undefined) known.add(key.value);
    const below = equalKeys(child);
    if (below !== null) return below;
  }
  return null;
}

/** Where more brackets are open at once; null where they never are. Quotes are told apart, no more. */
function offsetOfDepth(text: string): number | null {
  // Most texts hold fewer brackets than that, and to count them is much faster than to tell them apart.
  if ((text.match(/[[{]/g)?.length ?? 0) <= depthMax) return null;
  let depth = 0;
  for (const { 0: found, index } of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[\]{}]/gs)) {
    if (found === '{' || found === '[') depth += 1;
    else if (found === '}' || found === ']') depth -= 1;
    if (depth > depthMax) return index;
  }
  return null;
}
