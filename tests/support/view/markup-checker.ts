/**
 * A small and strict reader of the HTML and SVG of reports: every element is known and closed correctly, attributes are
 * quoted, and no raw character would be read as markup.
 */

export interface ReadElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

export interface Reading {
  readonly elements: readonly ReadElement[];
  /** The text of the document outside of `style`, entities resolved. */
  readonly text: string;
}

const endless: ReadonlySet<string> = new Set(['meta', 'input', 'br', 'hr']);
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };
const tag = /<(\/?)([a-z][a-z0-9]*)((?: [a-zA-Z0-9:-]+="[^"<>]*")*)(\/?)>/y;

/** Reads a document or throws, with the position, at the first fault. */
export function readMarkup(document: string): Reading {
  const start = document.startsWith('<!doctype html>\n') ? '<!doctype html>\n'.length : 0;
  const open: string[] = [];
  const elements: ReadElement[] = [];
  const texts: string[] = [];
  for (let at = start; at < document.length; ) {
    if (document[at] !== '<') {
      const next = document.indexOf('<', at);
      const end = next < 0 ? document.length : next;
      const raw = document.slice(at, end);
      if (open.at(-1) !== 'style') texts.push(resolveEntities(raw));
      if (open.length === 0 && raw.trim() !== '') fail(document, at, 'text outside of the document');
      at = end;
      continue;
    }
    tag.lastIndex = at;
    const match = tag.exec(document);
    if (match === null) fail(document, at, 'no tag');
    const [whole, closing, name, attributes = '', selfClosed] = match as unknown as [
      string,
      string,
      string,
      string,
      string,
    ];
    if (closing === '/') {
      const expected = open.pop();
      if (expected !== name) fail(document, at, `</${name}> where </${expected}> was due`);
    } else {
      elements.push({ name, attributes: readAttributes(attributes) });
      if (selfClosed !== '/' && !endless.has(name)) open.push(name);
    }
    at += whole.length;
  }
  if (open.length > 0) throw new Error(`not closed: ${open.join(', ')}`);
  return { elements, text: texts.join('') };
}

function readAttributes(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, name = '', value = ''] of text.matchAll(/ ([a-zA-Z0-9:-]+)="([^"]*)"/g)) {
    if (found.has(name)) throw new Error(`attribute ${name} twice in <${text}>`);
    found.set(name, resolveEntities(value));
  }
  return found;
}

function resolveEntities(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is what is to be seen.
  const unwanted = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/.exec(text);
  if (unwanted !== null) throw new Error(`unwanted character ${unwanted[0].charCodeAt(0).toString(16)}`);
  if (!text.isWellFormed()) throw new Error('half a character');
  return text.replace(/&([^;\s]{0,8});?/g, (whole, name: string) => {
    const character = entities[name];
    if (character === undefined || !whole.endsWith(';'))
      throw new Error(`raw & in ${JSON.stringify(text.slice(0, 80))}`);
    return character;
  });
}

function fail(document: string, at: number, what: string): never {
  throw new Error(`${what} at ${at}: ${JSON.stringify(document.slice(Math.max(0, at - 60), at + 60))}`);
}

/** Everything in which a page could name something to load or to run. */
export function referencesIn({ elements }: Reading): string[] {
  return elements.flatMap(({ name, attributes }) =>
    [...attributes]
      .filter(([key]) => /^(?:on.*|style|src|srcset|href|xlink:href|action|data|poster|background|ping)$/.test(key))
      .map(([key, value]) => `${name} ${key}=${value}`),
  );
}
