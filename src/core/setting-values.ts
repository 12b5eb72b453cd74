/** Valid values of settings, whether typed as options, passed to the library, or sent by another program. */
import {
  type ChangesOf,
  type ContextName,
  contextNames,
  groupSettings,
  type Setting,
  type Settings,
  sessionSettings,
  sharedSettings,
  type ValuesOf,
} from './definitions.ts';
import { defaultGroupConfig, type GroupConfig, type SessionDefinition } from './group.ts';
import { nearest } from './nearest.ts';
import { parseContinueIf, wavesProblem } from './waves.ts';

/** Maximum number of labels that a session may require of a host. */
const labelsMax = 16;
const globPattern = /^(?![/:!])[^\0\n]{1,200}$/;
const megabyte = 1_000_000;

export function bytesOf(megabytes: number): number {
  return megabytes * megabyte;
}

export function keyOf(name: string, { key }: Setting): string {
  return key || name.replace(/(?:Ms|Bytes)$/, '');
}

export function optionOf(name: string, setting: Setting): string {
  return setting.option || keyOf(name, setting).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export type ValueRule = Pick<Setting, 'kind' | 'words' | 'min' | 'max' | 'likely'>;

/** The value that a text means, or the problem with it, as the rest of a sentence about it. */
export function parseSetting(
  setting: ValueRule,
  text: string,
): { readonly value: unknown } | { readonly problem: string } {
  const value = valueIn(setting, text);
  const problem = settingProblem(setting, value) ?? (value === '' ? 'must not be blank' : null);
  return problem === null ? { value } : { problem };
}

function valueIn({ kind }: ValueRule, text: string): unknown {
  const whole = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  switch (kind) {
    case 'line':
      return text.trim();
    case 'money':
      return numberIn(text.replace(/^\$/, ''));
    case 'share':
      return numberIn(text);
    case 'count':
      return whole;
    case 'megabytes':
      return whole * megabyte;
    case 'duration':
      return ageMs(text);
    case 'labels':
    case 'globs':
      return [text];
    case 'waves':
      return text.split(',').map((size) => size.trim());
    case 'rules':
      return permissionRules(text);
    case 'systems':
      return contextSystems(text);
    default:
      return text;
  }
}

function numberIn(text: string): number {
  return /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
}

export function settingText({ kind }: Setting, value: unknown): string {
  if (kind === 'megabytes') return String(Math.round(Number(value) / megabyte));
  if (kind === 'duration') return `${Math.round(Number(value) / 1000)}s`;
  return kind === 'systems' ? String(value) || 'none' : String(value);
}

export function pickSettings<T extends Settings>(settings: T, from: object): ChangesOf<ValuesOf<T>> {
  const given = Object.entries(from).filter(([name, value]) => Object.hasOwn(settings, name) && value !== undefined);
  return Object.fromEntries(given) as ChangesOf<ValuesOf<T>>;
}

/** Without entries that have no effect: flags that are off anyway, and empty label lists. */
export function storedSettings<T extends object>(settings: Settings, values: T, ofGroup: object = {}): T {
  const isEmpty = ([name, value]: readonly [string, unknown]) =>
    (value === false && settings[name]?.default === false && !Object.hasOwn(ofGroup, name)) ||
    (settings[name]?.kind === 'labels' && Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(values).filter((entry) => !isEmpty(entry))) as T;
}

/** The session with its group's shared settings. Its own value wins; rules and labels are merged. */
export function withShared(session: SessionDefinition, config: Partial<GroupConfig>): SessionDefinition {
  const given = Object.entries(pickSettings(sharedSettings, config));
  if (given.length === 0) return session;
  const own = new Map<string, unknown>(Object.entries(session));
  const settings: Settings = sharedSettings;
  const values = given.map(([name, ofGroup]) => {
    const value = own.get(name);
    const isSum = ['rules', 'labels'].includes(settings[name]?.kind ?? '');
    return [name, isSum ? [...new Set([ofGroup, value ?? []].flat())] : (value ?? ofGroup)];
  });
  return { ...session, ...Object.fromEntries(values) };
}

const unless = (isFine: boolean, problem: string): string | null => (isFine ? null : problem);
const isList = (value: unknown, fits: (one: string) => boolean): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === 'string' && fits(one));

/** The problem with a value of any type, as the rest of a sentence about it. */
export function settingProblem(setting: ValueRule, value: unknown): string | null {
  const { kind, words = [], min = 0, max = 0 } = setting;
  const text = typeof value === 'string' ? value : null;
  const number = typeof value === 'number' ? value : Number.NaN;
  switch (kind) {
    case 'line':
      return text === null ? 'must be one line of plain text' : lineProblem(text);
    case 'text':
      return unless(text !== null, 'must be a text');
    case 'word':
      return unless(text !== null && wordPattern.test(text), `must be ${wordRule}`) ?? slipIn(text ?? '', setting);
    case 'wordList':
      return unless(text !== null && wordListPattern.test(text), 'must be words with commas between, such as a,b');
    case 'name': {
      const letters = `must have 1 to ${sessionNameLengthMax} letters, digits, "-", "_" or "."`;
      const rule = `${letters}, not only digits, and begin with a letter or digit`;
      return unless(text !== null && sessionNamePattern.test(text), rule);
    }
    case 'host':
      return unless(text !== null && hostNamePattern.test(text), `must have ${hostNameRule}`);
    case 'command':
      return text === null ? 'must be a shell command' : commandProblem(text);
    case 'choice':
      return unless(text !== null && words.includes(text), `must be one of ${words.join(', ')}`);
    case 'money':
      return moneyProblem(number);
    case 'clock':
      return unless(/^(?:[01]\d|2[0-3]):[0-5]\d$/.test(text ?? ''), 'must be a local time such as 07:00');
    case 'answers':
      return answersProblem(value);
    case 'share':
      return unless(number > 0 && number <= 1, 'must be a share above 0 and up to 1, such as 0.8');
    case 'count':
      return unless(isWhole(number, max, min), `must be a whole number from ${min} to ${max}`);
    case 'megabytes': {
      const isFine = Number.isSafeInteger(number) && number >= min * megabyte && number <= max * megabyte;
      return unless(isFine, `must be a whole number from ${min} to ${max} megabytes`);
    }
    case 'duration':
      return unless(isDurationMs(number), 'must be a time from 1s to 30d, such as 90s, 15m, 2h or 1h30m');
    case 'flag':
      return unless(typeof value === 'boolean', 'must be true or false');
    case 'labels': {
      if (!isList(value, (label) => labelPattern.test(label))) return `must have ${labelRule}`;
      return unless((value as readonly string[]).length <= labelsMax, `must be at most ${labelsMax} labels`);
    }
    case 'globs':
      return unless(
        isList(value, (glob) => globPattern.test(glob)),
        'must be a list of patterns such as "tests/**"',
      );
    case 'rules':
      return unless(
        isList(value, isPermissionRule),
        'must be a list of permission rules such as "Edit,Bash(git log:*)"',
      );
    case 'systems': {
      const isFine = isList(value, (name) => contextSystems(name)?.length === 1);
      return unless(isFine, 'must be a list of cpm, faber and handover, or none');
    }
    case 'waves':
      return wavesProblem(value);
    case 'waveRule': {
      const rule = parseContinueIf(text ?? '');
      return typeof rule === 'string' ? rule : null;
    }
    case 'object':
      return unless(typeof value === 'object' && value !== null && !Array.isArray(value), 'must be an object');
  }
}

function answersProblem(value: unknown): string | null {
  const { permission = 'deny', question = 'x', ...rest } = (value ?? {}) as Record<string, unknown>;
  const isFine = ['allow', 'deny'].includes(permission as string) && typeof question === 'string' && question !== '';
  const rule = 'must have permission (allow or deny), question (a text), or both';
  return unless(typeof value === 'object' && value !== null && isFine && Object.keys(rest).length === 0, rule);
}

/** Model ids have digits and hyphens, and a gateway may use any name; but a name one letter off is a typing mistake. */
function slipIn(text: string, { likely = [] }: ValueRule): string | null {
  const near = /^[a-z]+$/i.test(text) && !likely.includes(text.toLowerCase()) ? nearest(text, likely) : undefined;
  return near === undefined ? null : `is no model of claude; perhaps ${JSON.stringify(near)} was meant`;
}

export function moneyProblem(usd: number): string | null {
  return unless(isMoneyUsd(usd), `must be an amount in US dollars from ${moneyUsd.min} to ${moneyUsd.max}`);
}

/** The problem with a definition, as a sentence without its full stop; null without one. */
export function sessionProblem(session: Omit<SessionDefinition, 'id'>): string | null {
  const isPath = (path: string) => path.startsWith('/') && !path.includes('\0');
  const { prompt, projectPath, repository = '/', template = '' } = session;
  const others = {
    prompt: promptProblem(prompt),
    projectPath: unless(isPath(projectPath), 'must be an absolute path'),
    repository: unless(isPath(repository), 'must be an absolute path'),
    template: lineProblem(template),
  };
  const [wrong] = [...Object.entries(others), ...problemsOf(sessionSettings, session)].filter(([, problem]) => problem);
  return wrong === undefined ? null : `The ${wrong[0]} of the session ${wrong[1]}`;
}

/** The same for the settings of a group; null removes a setting. */
export function configProblem(config: ChangesOf<GroupConfig>): string | null {
  for (const [name, value] of Object.entries(config)) {
    if (name !== 'prices' && !Object.hasOwn(groupSettings, name)) {
      return `A group has no setting ${JSON.stringify(name)}`;
    }
    if (value === null && Object.hasOwn(defaultGroupConfig, name)) return `The ${name} of the group cannot be left out`;
  }
  const [wrong] = problemsOf(groupSettings, config);
  return wrong === undefined ? null : `The ${wrong[0]} of the group ${wrong[1]}`;
}

function problemsOf(settings: Settings, values: object): [name: string, problem: string][] {
  const given = new Map<string, unknown>(Object.entries(values));
  return Object.entries(settings).flatMap(([name, setting]): [string, string][] => {
    const value = given.get(name) ?? null;
    const problem = value === null ? null : settingProblem(setting, value);
    return problem === null ? [] : [[name, problem]];
  });
}

// Valid values of settings, whether typed as options or written in a workflow.

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
