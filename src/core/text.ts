/** A value of external JSON as text. `String` throws for an object with a field `toString`. */

export function foreignText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

// A time in a sentence: without milliseconds, and convertible to local time by the caller.

export function momentText(ms: number): string {
  if (Number.isNaN(ms)) return 'an unknown time';
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

// Amounts of money as text.

/** US dollars: usually with cents, more digits below a cent. An estimate has a tilde. */
export function formatMoney(usd: number, estimated = false): string {
  const mark = estimated ? '~' : '';
  if (usd !== 0 && Math.abs(usd) < 0.01) return `${mark}$${usd.toFixed(4)}`;
  return `${mark}$${usd.toFixed(2)}`;
}

// core/text/: how values and foreign texts are shown. This file: the characters that must never be shown unescaped,
// one list for all callers that remove them.

/** C0, DEL, C1 and the Unicode line separators, without newline and tab. */
const controls = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** Characters that change the writing direction, so that a text displays differently than it reads. */
const turns = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
/** Invisible characters. */
export const widthless = '\\u200b\\u2060-\\u2065\\ufeff';
/** Invisible as well, but needed in emoji and some scripts. */
export const joiners = '\\u200c\\u200d';

/** Finds terminal control characters and direction changes, and `more`: ranges as in a character class. */
export function unsafeCharacters(more = ''): RegExp {
  return new RegExp(`[${controls}${turns}${more}]`, 'g');
}

const escapeByte = '\\u001b';
const bell = '\\u0007';
/** Complete sequences that set colours, move the cursor or the window title. */
const sequences = new RegExp(
  `${escapeByte}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${bell}${escapeByte}]*(?:${bell}|${escapeByte}\\\\))`,
  'g',
);
const ownTags = /<(?=\/?(?:session-result|system-reminder|function_|invoke|antml:|command-))/gi;
const turnMarks = /^([ \t]*)(Human|Assistant|System|User)(?=:)/gim;

/** External text for a prompt: it cannot end a fence, imitate another speaker or control a terminal. */
export function asData(text: string): string {
  return text
    .replace(sequences, '')
    .replace(/\r\n?/g, '\n')
    .replace(unsafeCharacters(), '\ufffd')
    .replace(ownTags, '‹')
    .replace(turnMarks, '$1[$2]');
}

/** The first `max` names for a sentence, and the number of the others. */
export function listNames(names: readonly string[], max: number): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}
