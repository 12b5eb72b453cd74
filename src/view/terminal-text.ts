/** Removes escape codes from foreign text and diffs, so that nothing controls the terminal. */
import { unsafeCharacters, widthless } from '../core/text.ts';

import type { Style, Tone } from './format.ts';

const unsafe = unsafeCharacters();
// biome-ignore lint/suspicious/noControlCharactersInRegex: a sequence without its end hides what follows it.
const unterminated = /\u001b[[\]P^_X][^\u001b]*$/;

export function safeText(text: string): string {
  return Bun.stripANSI(text.replaceAll('\r\n', '\n')).replace(unterminated, '').replace(unsafe, '');
}

/** One line without control characters, white space collapsed, at most `columns` columns wide. */
export function safeLine(text: string, columns: number): string {
  // Clean only what can be shown, because a line may have many megabytes.
  const head = text.length > columns * 8 ? text.slice(0, columns * 8) : text;
  const line = safeText(head).replace(/\s+/g, ' ').trim();
  return fitColumns(line, columns);
}

/** Spells control characters, except tab and newline, and commands of GitHub Actions as JSON escapes. */
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
  // A wide character at the cut is dropped, and combining marks may widen the cut text.
  for (let room = columns - 1; room > 0; room -= 1) {
    const cut = `${Bun.sliceAnsi(text, 0, room)}…`;
    if (Bun.stringWidth(cut) <= columns) return cut;
  }
  return '…';
}

/** Control and invisible characters, which are spelled out, because a diff must not hide anything. */
const hidden = unsafeCharacters(`\\n${widthless}`);

/** Also used for other lines, such as file names. */
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
    // Do not mark the CR of CRLF line endings.
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
