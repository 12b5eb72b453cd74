/**
 * Text that a model, a file or a user wrote, made harmless for a terminal: no escape sequence and no control character
 * survives, so nothing in a transcript can move the cursor, change colours or retitle the window.
 */
import { unsafeCharacters } from '../core/text.ts';

const unsafe = unsafeCharacters();
// biome-ignore lint/suspicious/noControlCharactersInRegex: a sequence without its end hides what follows it.
const unterminated = /\u001b[[\]P^_X][^\u001b]*$/;

export function safeText(text: string): string {
  return Bun.stripANSI(text.replaceAll('\r\n', '\n')).replace(unterminated, '').replace(unsafe, '');
}

/** One line free of control characters, blanks collapsed, at most `columns` terminal columns wide. */
export function safeLine(text: string, columns: number): string {
  // Only what can be shown is cleaned: a line of claude may be many megabytes long.
  const head = text.length > columns * 8 ? text.slice(0, columns * 8) : text;
  const line = safeText(head).replace(/\s+/g, ' ').trim();
  return fitColumns(line, columns);
}

/**
 * Control characters, all but tab and newline, spelled as in JSON: what was JSON means the same as before. So is the
 * bracket of a command that GitHub Actions obeys wherever it stands.
 */
export function spelledControls(text: string): string {
  return text.replace(unsafe, spelled).replaceAll('##[', `##${spelled('[')}`);
}

function spelled(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

export function safeJson(value: unknown, indent = 0): string {
  return spelledControls(JSON.stringify(value, null, indent));
}

export function fitColumns(text: string, columns: number): string {
  if (Bun.stringWidth(text) <= columns) return text;
  // A character of two columns at the cut belongs to neither side, and marks that join may make what is cut off wider.
  for (let room = columns - 1; room > 0; room -= 1) {
    const cut = `${Bun.sliceAnsi(text, 0, room)}…`;
    if (Bun.stringWidth(cut) <= columns) return cut;
  }
  return '…';
}
