/** Texts that others wrote, and differences, made harmless: nothing of them controls a terminal. */
import { unsafeCharacters, widthless } from '../core/text.ts';

import type { Style, Tone } from './format.ts';

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

/** Control characters but tab and newline, and what GitHub Actions obeys, spelled as in JSON. */
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

/** What a terminal obeys or does not show; spelled out, since in a difference nothing may be hidden. */
const hidden = unsafeCharacters(`\\n${widthless}`);

/** Also of a line that is no part of a difference, such as the name of a file. */
export function spelledLine(line: string): string {
  return line.replace(hidden, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}

/** The lines of a patch or of `--stat`, without a newline at the end. */
export function diffLines(text: string, style: Style): string[] {
  let isInHead = true;
  const lines = text.replace(/\n$/, '').split('\n');
  return lines.map((raw) => {
    if (raw.startsWith('diff --git ')) isInHead = true;
    else if (raw.startsWith('@@ ')) isInHead = false;
    // Where lines end with CR and LF, the CR is no news.
    const line = spelledLine(raw.replace(/\r$/, ''));
    const tone = toneOf(line, isInHead);
    return tone === null || line === '' ? line : style(tone, line);
  });
}

function toneOf(line: string, isInHead: boolean): Tone | null {
  if (line.startsWith('@@ ')) return 'accent';
  if (isInHead)
    return /^(?:diff |index |--- |\+\+\+ |new |deleted |old |rename |copy |similarity )/.test(line) ? 'strong' : null;
  return line.startsWith('+') ? 'good' : line.startsWith('-') ? 'bad' : null;
}
