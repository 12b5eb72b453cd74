/**
 * The few things of YAML front matter that resume files need, with the place of each, so that one value can be
 * changed while every other byte stays. Works on text of any one-byte encoding as well: only ASCII counts as syntax.
 */

/** One top-level `key: value`. The value's region goes on to the next key and may span lines. */
export interface Field {
  readonly key: string;
  /** Offset behind the colon. */
  readonly start: number;
  /** Offset of the next key, or of the end of the front matter. */
  readonly end: number;
}

export interface FrontMatter {
  /** Offset behind the opening line. */
  readonly start: number;
  /** Offset of the closing line; of a front matter without one, the end of the text. */
  readonly end: number;
  readonly isClosed: boolean;
  readonly fields: readonly Field[];
}

/** A byte order mark as one character, or as its three bytes. */
const opening = /^(?:\ufeff|\u00ef\u00bb\u00bf)?---[ \t]*\r?\n/;
const closing = /^(?:---|\.\.\.)[ \t]*\r?$/;
const keyLine = /^(?:"([^"\\\n]+)"|'([^'\n]+)'|([A-Za-z_][\w.-]*))[ \t]*:(?=[ \t\r\n]|$)/;

/** Front matter that never ends is only believed when it holds one of these: `---` is a line of Markdown, too. */
const knownKeys = /^(?:resume_schema_version|last_updated|session_ids?|project_id|project_name|next_action)$/;

/**
 * Where the front matter of the text is; null when it has none, and `unreadable` when it has one of another form than
 * lines of `key: value`.
 */
export function findFrontMatter(text: string): FrontMatter | 'unreadable' | null {
  const start = opening.exec(text)?.[0].length;
  if (start === undefined) return null;
  const found: { key: string; start: number; lineStart: number }[] = [];
  let firstLine: string | undefined;
  let end = text.length;
  let isClosed = false;
  for (let at = start; at < text.length; ) {
    const next = lineEnd(text, at);
    const line = text.slice(at, next).replace(/\n$/, '');
    if (closing.test(line)) {
      end = at;
      isClosed = true;
      break;
    }
    if (firstLine === undefined && !isBlankOrComment(line)) firstLine = line;
    const match = keyLine.exec(line);
    const key = match?.[1] ?? match?.[2] ?? match?.[3];
    if (match !== null && key !== undefined) found.push({ key, start: at + match[0].length, lineStart: at });
    at = next;
  }
  if (firstLine !== undefined && !keyLine.test(firstLine)) {
    return isClosed && /^(?:[{&!?]|<<[ \t]*:)/.test(firstLine) ? 'unreadable' : null;
  }
  if (!isClosed && !found.some(({ key }) => knownKeys.test(key))) return null;
  const fields = found.map((field, index) => ({
    key: field.key,
    start: field.start,
    end: found[index + 1]?.lineStart ?? end,
  }));
  return { start, end, isClosed, fields };
}

/** Offset behind the line that begins at `at`, its newline included. */
export function lineEnd(text: string, at: number): number {
  const newline = text.indexOf('\n', at);
  return newline < 0 ? text.length : newline + 1;
}

export function isBlankOrComment(line: string): boolean {
  return /^[ \t\r\n]*(?:#|$)/.test(line);
}

/** Part of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Scalar extends Span {
  readonly value: string;
}

const doubleQuoted = /"((?:[^"\\\r\n]|\\.)*)"/y;
const singleQuoted = /'((?:[^'\r\n]|'')*)'/y;

/** A quoted value at `at`. */
function quotedAt(text: string, at: number): Scalar | null {
  for (const pattern of [doubleQuoted, singleQuoted]) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) continue;
    const inner = match[1] ?? '';
    const value = pattern === singleQuoted ? inner.replaceAll("''", "'") : unescaped(match[0], inner);
    return { value, start: at, end: at + match[0].length };
  }
  return null;
}

/** YAML knows all escapes of JSON; others are rare enough to be taken as they are. */
function unescaped(quoted: string, inner: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return inner;
  }
}

/** The value of a field as one line; where it stands, without comments; empty span when there is none. */
export function scalarOf(text: string, field: Field): Scalar {
  const firstEnd = Math.min(lineEnd(text, field.start), field.end);
  const behind = behindProperties(text, field.start, firstEnd);
  const start = skipBlanks(text, behind, firstEnd);
  const quoted = quotedAt(text, start);
  if (quoted !== null && quoted.end <= field.end) return quoted;
  const first = plainUntil(text, start, firstEnd);
  let { end } = first;
  const parts = /^[|>][-+\d]*$/.test(first.value) ? [] : [first.value];
  // Lines that are indented go on with the value.
  for (let at = firstEnd; at < field.end; at = lineEnd(text, at)) {
    const line = text.slice(at, Math.min(lineEnd(text, at), field.end));
    if (line.trim() === '') continue;
    if (!/^[ \t]/.test(line)) break;
    parts.push(line.trim());
    end = at + line.trimEnd().length;
  }
  const value = parts.filter((part) => part !== '').join(' ');
  if (value === '' && first.value === '') return { value: '', start: behind, end: behind };
  return { value: /^(?:~|null)$/.test(value) ? '' : value, start, end };
}

const property = /[ \t]*[&!][^\s,[\]{}]*(?=[ \t\r\n]|$)/y;

/** Offset behind the anchor (`&name`) and the tag (`!!seq`) of a value; they stay what they are. */
function behindProperties(text: string, from: number, end: number): number {
  let at = from;
  for (;;) {
    property.lastIndex = at;
    const match = property.exec(text);
    if (match === null || property.lastIndex > end) return at;
    at += match[0].length;
  }
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && /[ \t]/.test(text[at] as string)) at += 1;
  return at;
}

/** A value without quotes, up to a comment or the end of the line. */
function plainUntil(text: string, start: number, end: number): Scalar {
  const raw = text.slice(start, end);
  const comment = /(?:^|[ \t])#/.exec(raw);
  const value = (comment === null ? raw : raw.slice(0, comment.index)).trimEnd();
  return { value, start, end: start + value.length };
}

interface FlowList {
  readonly form: 'flow';
  readonly items: readonly Scalar[];
  readonly insertAt: number;
  /** From its bracket to the other one, or to its last item when there is no other one. */
  readonly span: Span;
  /** False when a bracket or a quote lacks its partner. */
  readonly isWellFormed: boolean;
}

/** How a list is written. `insertAt` is the place behind its last item. */
export type List =
  | FlowList
  | { readonly form: 'block'; readonly items: readonly Scalar[]; readonly insertAt: number; readonly indent: string }
  /** No list; a lone value counts as its only item. */
  | { readonly form: 'scalar'; readonly items: readonly Scalar[]; readonly span: Span };

export function listOf(text: string, field: Field): List {
  const start = firstContent(text, field);
  if (start !== null && text[start] === '[') return flowList(text, start, field.end);
  if (start !== null && /^-(?=[ \t\r\n]|$)/.test(text.slice(start, start + 2))) return blockList(text, field);
  const scalar = scalarOf(text, field);
  const items = scalar.value
    .split(/[\s,]+/)
    .map((word) => word.replace(/^["']|["']$/g, ''))
    .filter((word) => word !== '')
    .map((value) => ({ value, start: scalar.start, end: scalar.end }));
  return { form: 'scalar', items, span: scalar };
}

/** The first character of the value that is neither blank nor in a comment, an anchor or a tag. */
function firstContent(text: string, field: Field): number | null {
  for (let at = field.start; at < field.end; at = lineEnd(text, at)) {
    const end = Math.min(lineEnd(text, at), field.end);
    const behind = behindProperties(text, at, end);
    if (!isBlankOrComment(text.slice(behind, end))) return skipBlanks(text, behind, end);
  }
  return null;
}

function flowList(text: string, start: number, fieldEnd: number): List {
  const whole = flowItems(text, start, fieldEnd);
  if (text[whole.span.end - 1] === ']') return whole;
  // Without its end, only the first line is believed to belong to the list.
  return flowItems(text, start, Math.min(lineEnd(text, start), fieldEnd));
}

function flowItems(text: string, start: number, end: number): FlowList {
  const items: Scalar[] = [];
  let isWellFormed = true;
  let at = start + 1;
  while (at < end && text[at] !== ']') {
    const character = text[at] as string;
    if (character === '#' && /[\s,[]/.test(text[at - 1] as string)) at = lineEnd(text, at);
    else if (/[\s,]/.test(character)) at += 1;
    else {
      const from = skipBlanks(text, behindProperties(text, at, end), end);
      const quoted = quotedAt(text, from);
      const item = quoted ?? plainItem(text, from, end);
      // Behind a quoted item there may only be a comma, a comment or the end.
      isWellFormed &&=
        quoted === null ? !/["']/.test(text.slice(from, item.end)) : /^[\s,\]]?$/.test(text[item.end] ?? '');
      items.push(item);
      at = Math.max(item.end, at + 1);
    }
  }
  const insertAt = items.at(-1)?.end ?? start + 1;
  const isClosed = at < end;
  const span = { start, end: isClosed ? at + 1 : insertAt };
  return { form: 'flow', items, insertAt, span, isWellFormed: isWellFormed && isClosed };
}

function plainItem(text: string, start: number, end: number): Scalar {
  const raw = /^[^,\]\r\n]*/.exec(text.slice(start, end))?.[0] ?? '';
  const item = plainUntil(text, start, start + raw.length);
  // A quote without its partner belongs to a slip of the hand, not to the value.
  return { ...item, value: item.value.replace(/^["']|["']$/g, '').trim() };
}

function blockList(text: string, field: Field): List {
  const items: Scalar[] = [];
  let indent: string | undefined;
  let insertAt = field.start;
  for (let at = field.start; at < field.end; at = lineEnd(text, at)) {
    const end = Math.min(lineEnd(text, at), field.end);
    const line = text.slice(at, end);
    if (isBlankOrComment(line)) continue;
    // A line that is neither an item nor goes on with one, such as the merge key "<<".
    if (at > field.start && /^[^\s-]/.test(line)) break;
    insertAt = at + line.trimEnd().length;
    const match = /^([ \t]*)-(?:[ \t]+|(?=\r?\n|$))/.exec(line);
    if (match === null) continue;
    indent ??= match[1] ?? '';
    if (match[1] !== indent) continue;
    const from = skipBlanks(text, behindProperties(text, at + match[0].length, end), end);
    const item = quotedAt(text, from) ?? plainUntil(text, from, at + line.trimEnd().length);
    if (item.value !== '') items.push(item);
  }
  return { form: 'block', items, insertAt, indent: indent ?? '  ' };
}
