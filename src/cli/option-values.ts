/** Values of options, checked before anything happens: numbers, names, free text. Commander shows the sentences. */
import { InvalidArgumentError } from '@commander-js/extra-typings';

const concurrentMax = 256;
const sessionNameLengthMax = 64;
const textLengthMax = 10_000;
const moneyUsdMax = 1_000_000;
/** claude cannot work with less than a tenth of a cent. */
const moneyUsdMin = 0.001;
const number = /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** US dollars, more than nothing. */
export function parseMoney(text: string): number {
  const value = toNumber(text.replace(/^\$/, ''));
  if (!(value >= moneyUsdMin && value <= moneyUsdMax)) {
    throw new InvalidArgumentError(`It must be an amount in US dollars from ${moneyUsdMin} to ${moneyUsdMax}.`);
  }
  return value;
}

/** A share: more than 0, at most 1. */
export function parseShare(text: string): number {
  const value = toNumber(text);
  if (!(value > 0 && value <= 1))
    throw new InvalidArgumentError('It must be a share above 0 and up to 1, such as 0.8.');
  return value;
}

/** How many sessions may run at once. */
export function parseConcurrent(text: string): number {
  return parseWhole(text, concurrentMax);
}

/** Failures after which nothing new starts. */
export function parseThreshold(text: string): number {
  return parseWhole(text, 1_000_000);
}

/** Further attempts after a transient failure. */
export function parseRetries(text: string): number {
  return parseWhole(text, 20, 0);
}

/** Megabytes (a million bytes) as they are typed; the value is in bytes. */
export function parseMegabytes(text: string): number {
  return parseWhole(text, 100_000_000, 0) * 1_000_000;
}

const durationMsMax = 30 * 24 * 3_600_000;
const duration = /^(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/i;

/** A time such as `90s`, `15m` or `1h30m`; the value is in milliseconds. */
export function parseDuration(text: string): number {
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = duration.exec(text) ?? [];
  const ms = (((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
  if (!(ms >= 1000 && ms <= durationMsMax)) {
    throw new InvalidArgumentError('It must be a time from 1s to 30d, such as 90s, 15m, 2h or 1h30m.');
  }
  return ms;
}

function parseWhole(text: string, max: number, min = 1): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

function toNumber(text: string): number {
  return number.test(text) ? Number(text) : Number.NaN;
}

/** A session's name: used in references and on every line of a report, so it is short and plain. */
export function parseSessionName(text: string): string {
  const isPlain = /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text) && text.length <= sessionNameLengthMax;
  if (!isPlain || /^\d+$/.test(text)) {
    throw new InvalidArgumentError(
      `It must have 1 to ${sessionNameLengthMax} letters, digits, "-", "_" or ".", ` +
        'not only digits, and begin with a letter or digit.',
    );
  }
  return text;
}

/** One line that says something: names, descriptions. */
export function parseText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) throw new InvalidArgumentError('It must be one line of plain text.');
  if (text.trim() === '') throw new InvalidArgumentError('It must not be blank.');
  if (text.length > textLengthMax) {
    throw new InvalidArgumentError(`It must have at most ${textLengthMax} characters.`);
  }
  return text.trim();
}

/** A word without blanks, such as a model's name. Never begins with a dash: it ends up on another command line. */
export function parseWord(text: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9._:/@[\]-]{0,199}$/.test(text)) {
    throw new InvalidArgumentError('It must be one word of letters, digits and . _ : / @ [ ] -');
  }
  return text;
}

/** Permission rules, separated by commas or blanks outside parentheses: `Edit,Bash(git log:*)`. */
export function parseRules(text: string, before: readonly string[] = []): readonly string[] {
  const rules: string[] = [];
  let rule = '';
  let depth = 0;
  let isBalanced = true;
  for (const char of text) {
    if (char === '(') depth += 1;
    if (char === ')') depth -= 1;
    isBalanced &&= depth >= 0;
    if (depth === 0 && /[,\s]/.test(char)) {
      if (rule !== '') rules.push(rule);
      rule = '';
    } else rule += char;
  }
  if (rule !== '') rules.push(rule);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
  if (!isBalanced || depth !== 0 || rules.length === 0 || rules.some((one) => /^[-(]|[\u0000-\u001f]/.test(one))) {
    throw new InvalidArgumentError('It must be a list of permission rules such as "Edit,Bash(git log:*)".');
  }
  return [...before, ...rules];
}

/** For options that may be given several times. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** A regular expression. */
export function parsePattern(text: string): RegExp {
  try {
    return new RegExp(text, 'u');
  } catch {
    throw new InvalidArgumentError('It must be a regular expression as JavaScript knows them.');
  }
}
