/** Valid values of settings, whether typed as options, passed to the library, or sent by another program. */
import {
  type ChangesOf,
  groupSettings,
  type Setting,
  type Settings,
  sessionSettings,
  sharedSettings,
  type ValuesOf,
} from './definitions.ts';
import { defaultGroupConfig, type GroupConfig, type SessionDefinition } from './group.ts';
import { nearest } from './nearest.ts';
import {
  ageMs,
  commandProblem,
  contextSystems,
  hostNamePattern,
  hostNameRule,
  isDurationMs,
  isMoneyUsd,
  isPermissionRule,
  isWhole,
  labelPattern,
  labelRule,
  lineProblem,
  moneyUsd,
  permissionRules,
  promptProblem,
  sessionNameLengthMax,
  sessionNamePattern,
  wordListPattern,
  wordPattern,
  wordRule,
} from './values.ts';
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
