/** A difference as git prints it, for people: coloured by its marks, with nothing in it that a terminal would obey. */
import { unsafeCharacters, widthless } from '../core/text.ts';
import type { Style, Tone } from './format.ts';

/**
 * What a terminal would obey, what turns the direction of writing, and what cannot be seen at all. It is spelled out
 * and not left out, because in a difference nothing may be hidden from who reviews it. Tabs stay.
 */
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
