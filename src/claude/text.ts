/** Makes text from claude or a model safe for a terminal, a file name or one sentence. */
import { unsafeCharacters } from '../core/text.ts';

/** Colour and cursor sequences as one unit, so that their letters do not remain when ESC is removed. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
const escapeSequence = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
const controlCharacter = unsafeCharacters('\\t\\n');

/** At most `max` UTF-16 units, with an ellipsis when cut; never ends inside a character. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = Math.max(0, max - 1);
  const last = text.charCodeAt(end - 1);
  if (last >= 0xd800 && last <= 0xdbff) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** One line without control characters, spaces collapsed, at most `max` UTF-16 units. */
export function cleanLine(text: string, max: number): string {
  // Only the visible part is cleaned: a line of claude may be many megabytes long.
  const head = text.length > max * 8 ? text.slice(0, max * 8) : text;
  const clean = head.replace(escapeSequence, '').replace(controlCharacter, ' ').replace(/ {2,}/g, ' ').trim();
  return clip(clean, max);
}

export function cleanLines(text: string, max: number): string {
  const head = text.slice(0, max * 8).trim();
  return clip(
    head
      .split(/\r?\n/)
      .map((line) => cleanLine(line, max))
      .join('\n')
      .trim(),
    max,
  );
}
