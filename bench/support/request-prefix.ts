/**
 * How much of a request another one repeats from its beginning on. The prompt cache of the Messages API reads a request
 * as tools, then system, then messages; it stores what stands before a `cache_control` mark and nothing in between.
 */
import type { MessagesBody } from '../../src/rehearsal/conversation.ts';

interface Piece {
  /** Where in the request it stands: `tools[3] Bash`, `system[2]`, `messages[0].content[1]`. */
  readonly place: string;
  /** As JSON, without its mark. */
  readonly text: string;
  readonly isMarked: boolean;
}

export interface SharedPrefix {
  /** Bytes of tools, system and messages of the second request. */
  readonly bytes: number;
  /** Bytes at its beginning that are those of the first one as well. */
  readonly same: number;
  /** Those of them that stand before the last mark of the first request: what can be read from the cache. */
  readonly cached: number;
  /** Where the requests part; undefined when one is the beginning of the other. */
  readonly parts?: { readonly place: string; readonly first: string; readonly second: string };
}

/** Of one text around the place where two part, characters. */
const shownBefore = 30;
const shownAfter = 50;

/** Another model has another cache: then nothing is shared. */
export function sharedPrefix(first: MessagesBody, second: MessagesBody): SharedPrefix {
  const [one, other] = [piecesOf(first), piecesOf(second)];
  const bytes = other.reduce((total, { text }) => total + Buffer.byteLength(text), 0);
  if (first.model !== second.model) {
    const parts = { place: 'model', first: `${first.model}`, second: `${second.model}` };
    return { bytes, same: 0, cached: 0, parts };
  }
  let same = 0;
  let cached = 0;
  for (const [index, { place, text }] of other.entries()) {
    const before = one[index];
    if (before === undefined) break;
    if (before.text !== text) {
      const at = commonLength(before.text, text);
      const around = (whole: string) => whole.slice(Math.max(0, at - shownBefore), at + shownAfter);
      const parts = { place, first: around(before.text), second: around(text) };
      return { bytes, same: same + Buffer.byteLength(text.slice(0, at)), cached, parts };
    }
    same += Buffer.byteLength(text);
    // It is stored at the marks of the first one; the second one finds it from a later mark of its own as well.
    if (before.isMarked) cached = same;
  }
  return { bytes, same, cached };
}

function piecesOf({ tools = [], system, messages = [] }: MessagesBody): Piece[] {
  const lists = { tools: blocksOf(tools), system: blocksOf(system) };
  return [
    ...Object.entries(lists).flatMap(([list, blocks]) => blocks.map((block, at) => piece(`${list}[${at}]`, block))),
    ...messages.flatMap(({ role, content }, message) =>
      blocksOf(content).map((block, at) => piece(`messages[${message}].content[${at}]`, { role, ...block })),
    ),
  ];
}

type Block = Readonly<Record<string, unknown>>;

function blocksOf(content: unknown): Block[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return Array.isArray(content) ? (content as Block[]) : [];
}

function piece(place: string, { cache_control: mark, ...block }: Block): Piece {
  const name = typeof block.name === 'string' ? ` ${block.name}` : '';
  return { place: `${place}${name}`, text: JSON.stringify(block), isMarked: mark !== undefined };
}

function commonLength(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}
