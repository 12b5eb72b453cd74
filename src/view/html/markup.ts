/** Builds HTML and SVG from values. All text is escaped, so foreign text never becomes markup. */

import { safeLine, safeText } from '../terminal-text.ts';

/** The start of every page, by which a report is recognised and may be overwritten. */
export const pageStart = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" ';

export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** Strings are text, never markup. Undefined, null and false are empty. */
export type Child = Markup | string | number | undefined | null | false | readonly Child[];
export type Attributes = Readonly<Record<string, string | number | true | undefined>>;

/** HTML elements without an end tag. */
const endless: ReadonlySet<string> = new Set(['meta', 'input', 'br', 'hr']);
/** SVG elements that are self-closing if empty, which is valid in HTML and XML. */
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
  /** Length of the whole text in UTF-16 units; absent if nothing was cut. */
  readonly cutFrom?: number;
}

/** The start of a text, at most `maxBytes` bytes of UTF-8 in the page. */
export function cutText(text: string, maxBytes: number): Cut {
  // Process only what can be shown, because a result may have many megabytes.
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

/** A number for an attribute, without invisible digits. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

export function pill(status: string, reason?: string): Markup {
  const text = reason === undefined || reason === status ? status : `${status}: ${safeLine(reason, 80)}`;
  return el('span', { class: `pill s-${status}` }, text);
}

/** A short foreign text in the middle of others: marks for the direction of writing end where it ends. */
export function isolated(text: string, maxBytes = 2000): Markup {
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

/** Name, light colour, dark colour. */
const colours: readonly (readonly [string, string, string])[] = [
  ['bg', '#ffffff', '#0d1117'],
  ['fg', '#1f2328', '#e6edf3'],
  ['dim', '#59636e', '#9198a1'],
  ['line', '#d1d9e0', '#3d444d'],
  ['card', '#f6f8fa', '#151b23'],
  ['completed', '#1a7f37', '#3fb950'],
  ['running', '#0969da', '#58a6ff'],
  ['failed', '#cf222e', '#f85149'],
  ['paused', '#9a6700', '#d29922'],
  ['pending', '#818b98', '#848d97'],
  ['blocked', '#a475f9', '#a475f9'],
  ['accepting', '#1b7c83', '#39c5cf'],
];

const variables = (column: 1 | 2): string => colours.map((row) => `--${row[0]}:${row[column]}`).join(';');

const statuses = ['completed', 'running', 'failed', 'paused', 'pending', 'blocked'];

export const pictureStyle = [
  `:root{color-scheme:light dark;${variables(1)}}`,
  `@media (prefers-color-scheme:dark){:root{${variables(2)}}}`,
  'svg text{font:12px system-ui,sans-serif;fill:var(--fg)}',
  'svg text.dim{fill:var(--dim);font-size:11px}',
  'svg text.end{text-anchor:end}svg text.middle{text-anchor:middle}svg text.strong{font-weight:600}',
  '.grid{stroke:var(--line);stroke-width:1}',
  '.edge{fill:none;stroke:var(--dim);stroke-width:1.2}',
  '.head{fill:var(--dim)}',
  '.node{fill-opacity:.16;stroke-width:1.5}',
  ...statuses.map((name) => `.s-${name}{fill:var(--${name});stroke:var(--${name})}`),
  '.bar{stroke:none}.preparing{fill-opacity:.45}.accepting{fill:var(--accepting)}',
  '.idle{fill:var(--line);fill-opacity:.55}',
].join('\n');

const page = `
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:16px;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6em;margin:.2em 0}h2{font-size:1.2em;margin:2em 0 .6em;border-bottom:1px solid var(--line);
padding-bottom:.2em}h3{font-size:1.05em;margin:0}
a{color:inherit;text-decoration-color:var(--dim)}
p{margin:.5em 0}.dim,small{color:var(--dim)}code,pre{font:13px/1.45 ui-monospace,Menlo,Consolas,monospace}
pre{background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:10px;margin:.5em 0;
white-space:pre-wrap;unicode-bidi:plaintext;max-height:32em;overflow:auto}
.pill{display:inline-block;border:1px solid var(--pending);color:var(--pending);border-radius:99px;
padding:0 .6em;font-size:.85em;font-weight:600;white-space:nowrap}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:1em 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.card b{display:block;font-size:1.35em;line-height:1.3}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:var(--card)}
.wide svg{display:block}.wide svg.stretch{width:100%;min-width:760px;height:auto}.tall{max-height:80vh;overflow:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:5px 7px;text-align:left;border-top:1px solid var(--line);white-space:nowrap}
thead th{border-top:0;color:var(--dim);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.words{white-space:normal;min-width:5em}td.long{white-space:normal;min-width:14em}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;color:var(--dim);
padding:0;margin:.5em 0;list-style:none}
.legend svg{vertical-align:-1px;margin-right:5px}
article,.trouble{border:1px solid var(--line);border-left:4px solid var(--pending);border-radius:8px;padding:10px 14px;
margin:10px 0;background:var(--card)}
article:target{outline:2px solid var(--running)}
.cure{margin:.3em 0;font-weight:600}
summary{cursor:pointer;color:var(--dim)}summary bdi{color:var(--fg)}details{margin:.4em 0}
.filter{display:inline-block;margin:.3em 0}
#sessions:has(#only-problems:checked) .fine{display:none}
footer{margin:3em 0 1em;color:var(--dim);font-size:13px}
@media print{.filter{display:none}.tall{max-height:none}pre{max-height:none}}
`;

/** Statuses without their own colour use that of `pending`; `interrupted` uses that of `paused`. */
const coloured = [...statuses, 'interrupted'].map((status) => {
  const colour = `var(--${status === 'interrupted' ? 'paused' : status})`;
  const framed = `article.s-${status},.trouble.s-${status}{border-left-color:${colour}}`;
  return `.pill.s-${status}{color:${colour};border-color:${colour}}${framed}`;
});

export const pageStyle = [pictureStyle, page.trim(), ...coloured].join('\n');
