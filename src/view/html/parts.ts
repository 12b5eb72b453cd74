/** Small pieces that several sections of the report page share. */

import { type Child, cutText, el, type Markup } from '../picture/markup.ts';
import { safeLine } from '../terminal-text.ts';

/** A status in its colour, with the reason where there is one. */
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
  readonly isNumber?: true;
}

/** A table in a frame of its own, which scrolls sideways where the page is narrow. */
export function table(heads: readonly HeadCell[], rows: readonly Child[]): Markup {
  const head = heads.map(({ title, isNumber }) => el('th', { scope: 'col', class: isNumber ? 'n' : undefined }, title));
  return el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows)));
}

export function numberCell(text: Child): Markup {
  return el('td', { class: 'n' }, text);
}

/** Colours with their meaning. `className` is that of the picture's rectangles. */
export function legend(items: readonly { readonly className: string; readonly text: string }[]): Markup {
  const entries = items.map(({ className, text }) => {
    const swatch = el('rect', { class: className, x: 0.75, y: 0.75, width: 10, height: 10, rx: 2 });
    return el(
      'li',
      {},
      el('svg', { width: 12, height: 12, viewBox: '0 0 12 12', 'aria-hidden': 'true' }, swatch),
      text,
    );
  });
  return el('ul', { class: 'legend' }, entries);
}
