/** Changes one member of a JSON object in its text, so that the rest keeps its numbers, its order and its layout. */

interface Member {
  readonly key: string;
  /** Offset of its key's quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Offset behind its value. */
  readonly end: number;
}

/**
 * The text of the object with the member set to `value`, or without it when that is undefined. `text` must be a valid
 * JSON object in which no key stands twice.
 */
export function withMember(text: string, key: string, value: unknown): string {
  const open = text.indexOf('{');
  const members = membersOf(text, open);
  const index = members.findIndex((member) => member.key === key);
  const found = members[index];
  if (value === undefined) return found === undefined ? text : without(text, open, members, index);
  const layout = layoutOf(text, members);
  const written = writeValue(value, layout);
  if (found !== undefined) return text.slice(0, found.valueStart) + written + text.slice(found.end);
  const member = `${layout.lead}${JSON.stringify(key)}:${layout.eol === '' ? '' : ' '}${written}`;
  const last = members.at(-1);
  if (last !== undefined) return `${text.slice(0, last.end)},${member}${text.slice(last.end)}`;
  const close = text.indexOf('}', open);
  return `${text.slice(0, open + 1)}${member}${layout.eol}${text.slice(close)}`;
}

function without(text: string, open: number, members: readonly Member[], index: number): string {
  const { end } = members[index] as Member;
  const before = members[index - 1];
  const after = members[index + 1];
  // The comma goes along, the one before or the one behind.
  if (before !== undefined) return text.slice(0, before.end) + text.slice(end);
  if (after !== undefined) return text.slice(0, (members[index] as Member).start) + text.slice(after.start);
  return text.slice(0, open + 1) + text.slice(text.indexOf('}', end));
}

interface Layout {
  /** What separates two members besides the comma. */
  readonly lead: string;
  readonly indent: string;
  /** Empty when all stands in one line. */
  readonly eol: string;
}

function layoutOf(text: string, members: readonly Member[]): Layout {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const first = members[0];
  if (first === undefined) return { lead: `${eol}  `, indent: '  ', eol };
  const indent = /\n([ \t]+)$/.exec(text.slice(0, first.start))?.[1];
  if (indent !== undefined) return { lead: `${eol}${indent}`, indent, eol };
  return text.trim().includes('\n') ? { lead: `${eol}  `, indent: '  ', eol } : { lead: '', indent: '', eol: '' };
}

function writeValue(value: unknown, { lead, indent, eol }: Layout): string {
  return eol === '' ? JSON.stringify(value) : JSON.stringify(value, null, indent).replaceAll('\n', lead);
}

const stringPattern = /"(?:[^"\\]|\\.)*"/sy;

function membersOf(text: string, open: number): Member[] {
  const members: Member[] = [];
  let at = open + 1;
  for (;;) {
    at = skip(text, at);
    if (text[at] === ',') at = skip(text, at + 1);
    if (text[at] !== '"') return members;
    const start = at;
    at = stringEnd(text, at);
    const key = JSON.parse(text.slice(start, at)) as string;
    const valueStart = skip(text, skip(text, at) + 1);
    at = valueEnd(text, valueStart);
    members.push({ key, start, valueStart, end: at });
  }
}

function skip(text: string, from: number): number {
  let at = from;
  while (/[ \t\r\n]/.test(text[at] ?? '')) at += 1;
  return at;
}

function stringEnd(text: string, at: number): number {
  stringPattern.lastIndex = at;
  return stringPattern.test(text) ? stringPattern.lastIndex : text.length;
}

function valueEnd(text: string, start: number): number {
  if (text[start] === '"') return stringEnd(text, start);
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const character = text[at] as string;
    if (character === '"') at = stringEnd(text, at);
    else {
      if (character === '{' || character === '[') depth += 1;
      else if (character === '}' || character === ']') {
        if (depth === 0) return at;
        depth -= 1;
        if (depth === 0) return at + 1;
      } else if (depth === 0 && /[,\s]/.test(character)) return at;
      at += 1;
    }
  }
  return at;
}
