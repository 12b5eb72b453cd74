/** Valid values of settings, whether typed as options or written in a workflow. */
import { type ContextName, contextNames } from './definitions.ts';

/** Session names occur in references and on every line of a report, so they are short and plain. */
export const sessionNamePattern = /^(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const sessionNameRule =
  'a session name has 1 to 64 letters, digits, "-", "_" or ".", not only digits, and begins with a letter or digit';
export const sessionNameLengthMax = 64;

/** Never begins with a dash, because it becomes an argument of another command line. */
export const wordPattern = /^[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,199}$/;
export const wordRule = 'one word of at most 200 letters, digits and . _ : / @ [ ] -, a letter or digit first';

/** Several of them separated by commas. */
export const wordListPattern = new RegExp(
  `^${wordPattern.source.slice(1, -1)}(?:,${wordPattern.source.slice(1, -1)}){0,9}$`,
);

/** Safe in names of files, folders and git branches, and as a shell word. */
export const plainNamePattern = /^(?!.*\.\.)(?!.*\.(?:lock)?$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const plainNameRule =
  'letters, digits, "-", "_" or ".", 64 at most, a letter or digit first, no "..", and no "." or ".lock" at the end';

export const hostNamePattern = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$/;
export const hostNameRule =
  'letters, digits, "-" or ".", 63 at most, a letter or digit first and last, as hosts are called';

/** A label that a host has, or a session requires. */
export const labelPattern = /^(?!any$)[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
export const labelRule =
  'letters, digits, "-", "_" or ".", 63 at most, a letter or digit first, not "any", such as gpu or node20';
export const slotsMax = 1000;

/** claude cannot work with less than a tenth of a cent. */
export const moneyUsd = { min: 0.001, max: 1_000_000 };

const durationMsMax = 30 * 24 * 3_600_000;
export const durationPattern = /^(?=\d)(?:(\d+)[dD])?(?:(\d+)[hH])?(?:(\d+)[mM])?(?:(\d+)[sS])?$/;

/** Milliseconds of a duration such as `90s`, `15m` or `1h30m`, of any length; null for another text. */
export function ageMs(text: string): number | null {
  const match = durationPattern.exec(text);
  if (match === null) return null;
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = match;
  return (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

export function isDurationMs(ms: number): boolean {
  return ms >= 1000 && ms <= durationMsMax;
}

export function isMoneyUsd(value: number): boolean {
  return value >= moneyUsd.min && value <= moneyUsd.max;
}

export function isWhole(value: number, max: number, min = 1): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

const lineLengthMax = 10_000;
export const promptBytesMax = 1024 * 1024;
/** A shell gets a command as one argument, which Linux limits to 128 KiB. */
const commandBytesMax = 32 * 1024;

/** Why a text is not a single line, such as a name or a description; null when it is one. */
export function lineProblem(text: string): string | null {
  if (hasControl(text)) return 'must be one line of plain text';
  return text.length > lineLengthMax ? `must have at most ${lineLengthMax} characters` : null;
}

/** Why a text cannot be a prompt; null when it can. */
export function promptProblem(text: string): string | null {
  if (text.trim() === '') return 'is blank';
  if (text.includes('\0')) return 'contains a NUL character';
  return Buffer.byteLength(text) > promptBytesMax ? 'is longer than 1 MiB' : null;
}

/** Why a text cannot be a shell command; null when it can. */
export function commandProblem(command: string): string | null {
  if (command.trim() === '') return 'is blank';
  if (command.includes('\0')) return 'holds a NUL character';
  if (Buffer.byteLength(command) <= commandBytesMax) return null;
  return `is longer than ${commandBytesMax / 1024} KiB; put it into a script`;
}

export const rulesRule = 'expected permission rules such as "Edit,Bash(git log:*)", or a list of them';

/** Permission rules, separated by commas or spaces outside parentheses; null when invalid. */
export function permissionRules(text: string): string[] | null {
  const rules: string[] = [];
  let rule = '';
  let depth = 0;
  for (const char of text) {
    if (char === '(') depth += 1;
    if (char === ')') depth -= 1;
    if (depth < 0) return null;
    if (depth === 0 && /[,\s]/.test(char)) {
      if (rule !== '') rules.push(rule);
      rule = '';
    } else rule += char;
  }
  if (rule !== '') rules.push(rule);
  return depth === 0 && rules.length > 0 && rules.every(isPermissionRule) ? rules : null;
}

export function isPermissionRule(rule: string): boolean {
  return rule !== '' && !/^[-(]/.test(rule) && !hasControl(rule);
}

/** True for texts with characters that move a terminal's cursor or end a line. */
export function hasControl(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
  return /[\u0000-\u001f\u007f-\u009f]/.test(text);
}

/** Context systems separated by commas, or the word `none`; null when invalid. */
export function contextSystems(text: string): ContextName[] | null {
  if (text.trim() === 'none') return [];
  const names = text.split(',').map((name) => name.trim());
  const known = contextNames.filter((name) => names.includes(name));
  return known.length === new Set(names).size ? known : null;
}
