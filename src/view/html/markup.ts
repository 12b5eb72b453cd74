/**
 * HTML and SVG as values: an element is made from a name, attributes and children, and every text that goes in is
 * cleaned and escaped on the way. Nothing foreign can become markup, because there is no way to say it as markup.
 */
import { safeLine, safeText } from '../terminal-text.ts';

export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** Strings are text, never markup. Nothing is drawn for undefined, null and false. */
export type Child = Markup | string | number | undefined | null | false | readonly Child[];
export type Attributes = Readonly<Record<string, string | number | true | undefined>>;

/** Elements of HTML that have no end. */
const endless: ReadonlySet<string> = new Set(['meta', 'input', 'br', 'hr']);
/** Elements of SVG that are closed at once when they hold nothing: shorter, and right in HTML and XML alike. */
const leaves: ReadonlySet<string> = new Set(['rect', 'path', 'line', 'circle', 'polyline', 'polygon']);

export function el(name: string, attributes: Attributes = {}, ...children: readonly Child[]): Markup {
  let head = `<${name}`;
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) head += ` ${key}="${value === true ? '' : escapeText(String(value))}"`;
  }
  if (endless.has(name)) return new Markup(`${head}>`);
  const inner = join(children);
  if (inner === '' && leaves.has(name)) return new Markup(`${head}/>`);
  return new Markup(`${head}>${inner}</${name}>`);
}

export function fragment(...children: readonly Child[]): Markup {
  return new Markup(join(children));
}

export function styleElement(css: string): Markup {
  return new Markup(`<style>${css}</style>`);
}

function join(children: readonly Child[]): string {
  let text = '';
  for (const child of children) {
    if (child instanceof Markup) text += child.text;
    else if (typeof child === 'string') text += escapeText(child);
    else if (typeof child === 'number') text += String(child);
    else if (Array.isArray(child)) text += join(child);
  }
  return text;
}

const plain = /^[\n\t\x20-\x7e]*$/;
const notCharacters = /[\ufffe\uffff]/g;

export function cleanText(text: string): string {
  if (plain.test(text)) return text;
  return safeText(text).toWellFormed().replace(notCharacters, '\ufffd');
}

/** The text for an element or a quoted attribute. */
export function escapeText(text: string): string {
  return Bun.escapeHTML(cleanText(text));
}

export interface Cut {
  readonly text: string;
  /** Characters (UTF-16 units) of the whole text; absent when nothing was cut off. */
  readonly cutFrom?: number;
}

/** The beginning of a text, so long that it takes at most `maxBytes` bytes of UTF-8 in the page. */
export function cutText(text: string, maxBytes: number): Cut {
  // Only what can be shown is looked at: a result may be many megabytes long.
  const head = text.slice(0, maxBytes);
  const fits = (length: number): boolean => Buffer.byteLength(escapeText(head.slice(0, length))) <= maxBytes;
  if (fits(head.length)) return head.length === text.length ? { text } : { text: head, cutFrom: text.length };
  let low = 0;
  let high = head.length;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return { text: head.slice(0, low), cutFrom: text.length };
}

/** A number for an attribute: no more digits than can be seen. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export function pill(status: string, reason?: string): Markup {
  const text = reason === undefined || reason === status ? status : `${status}: ${safeLine(reason, 80)}`;
  return el('span', { class: `pill s-${status}` }, text);
}

/** A short foreign text in the middle of others: marks for the direction of writing end where it ends. */
export function foreign(text: string, maxBytes = 2000): Markup {
  const { text: shown, cutFrom } = cutText(text, maxBytes);
  return el('bdi', {}, cutFrom === undefined ? shown : `${shown}…`);
}

export interface HeadCell {
  readonly title: string;
  readonly isNumber?: boolean;
}

export function table(heads: readonly HeadCell[], rows: readonly Child[]): Markup {
  const head = heads.map(({ title, isNumber }) => el('th', { scope: 'col', class: isNumber ? 'n' : undefined }, title));
  return el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows)));
}

export function numberCell(text: Child): Markup {
  return el('td', { class: 'n' }, text);
}
