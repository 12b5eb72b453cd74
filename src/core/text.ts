/** A value of foreign JSON as text. `String` throws for an object that has a field `toString`. */

export function foreignText(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

// A moment within a sentence: without milliseconds, and callers that show the sentence may convert it to local time.

export function momentText(ms: number): string {
  if (Number.isNaN(ms)) return 'an unknown time';
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

// Amounts of money in words.

/** US dollars: cents as a rule, more digits below a cent. An estimate is marked by a tilde. */
export function formatMoney(usd: number, estimated = false): string {
  const mark = estimated ? '~' : '';
  if (usd !== 0 && Math.abs(usd) < 0.01) return `${mark}$${usd.toFixed(4)}`;
  return `${mark}$${usd.toFixed(2)}`;
}

// * core/text/: how values and foreign texts are shown. This file: the characters that must never be shown unescaped,
// one list for all callers that remove them.

/** C0, DEL, C1 and the Unicode line separators; newline and tab are not among them. */
const controls = '\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028\\u2029';
/** What turns the direction of writing: a text with it reads as it is not. */
const turns = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
/** What cannot be seen at all. */
export const widthless = '\\u200b\\u2060-\\u2065\\ufeff';
/** Not seen either, but emoji and some scripts are made with them. */
export const joiners = '\\u200c\\u200d';

/** Finds what a terminal would obey or what turns the direction of writing, and `more`: ranges as in a class. */
export function unsafeCharacters(more = ''): RegExp {
  return new RegExp(`[${controls}${turns}${more}]`, 'g');
}

const escapeByte = '\\u001b';
const bell = '\\u0007';
/** Whole sequences that set colours, move the cursor or name the window. */
const sequences = new RegExp(
  `${escapeByte}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${bell}${escapeByte}]*(?:${bell}|${escapeByte}\\\\))`,
  'g',
);
const ownTags = /<(?=\/?(?:session-result|system-reminder|function_|invoke|antml:|command-))/gi;
const turnMarks = /^([ \t]*)(Human|Assistant|System|User)(?=:)/gim;

/** What others said, for a prompt: nothing in it ends a frame, begins another speaker's turn or moves a terminal. */
export function asData(text: string): string {
  return text
    .replace(sequences, '')
    .replace(/\r\n?/g, '\n')
    .replace(unsafeCharacters(), '\ufffd')
    .replace(ownTags, '‹')
    .replace(turnMarks, '$1[$2]');
}

/** Names in a sentence: the first `max` of them, and how many there are besides. */
export function listNames(names: readonly string[], max: number): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}
