/** The command-line options of settings. They follow from the tables in core/definitions.ts. */
import { InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { configSettings, groupSettings, type Setting, type Settings, sessionSettings } from '../../core/definitions.ts';
import { optionOf, settingProblem } from '../../core/setting-values.ts';
import { parseCommand, parserOf } from './option-values.ts';

export interface Target {
  addOption(option: Option): unknown;
}

const placeholders: Partial<Record<Setting['kind'], string>> = {
  line: 'text',
  money: 'usd',
  count: 'n',
  megabytes: 'mb',
  duration: 'time',
  choice: 'mode',
  labels: 'label',
  host: 'name',
  systems: 'systems',
  object: 'json',
};

export function settingOption(name: string, setting: Setting): Option {
  const { kind, value, words } = setting;
  const placeholder = kind === 'flag' ? '' : ` <${value ?? placeholders[kind] ?? kind}>`;
  const option = new Option(`--${optionOf(name, setting)}${placeholder}`, helpOf(setting));
  if (words !== undefined) return option.choices(words);
  if (kind === 'command') return option.argParser(parseCommand);
  if (kind === 'rules' || kind === 'labels') return option.argParser(listParser(setting));
  return kind === 'flag' || kind === 'object' || kind === 'text' ? option : option.argParser(parserOf(setting));
}

function helpOf({ kind, help, default: standard }: Setting): string {
  if (kind === 'labels') return `${help}; may be repeated`;
  if (kind === 'object') return `${help}; JSON, a file with it, or "-"`;
  if (standard === undefined || standard === false) return help;
  return standard === true ? `${help} (default)` : `${help} (default: ${standard})`;
}

/** These options may be repeated. False: the option was taken back by its negation. */
function listParser(setting: Setting) {
  const parse = parserOf<readonly string[]>(setting);
  return (text: string, before: readonly string[] | false = []): readonly string[] => {
    const all = [...new Set([...(before || []), ...parse(text)])];
    const problem = settingProblem(setting, all);
    if (problem !== null) throw new InvalidArgumentError(`It ${problem}.`);
    return all;
  };
}

function addSettings(command: Target, settings: Settings, isEdit: boolean): void {
  for (const [name, setting] of Object.entries(settings)) {
    if (setting.option === false) continue;
    command.addOption(settingOption(name, setting));
    const no = setting.no ?? (isEdit ? setting.without : undefined);
    if (no !== undefined) command.addOption(new Option(`--no-${optionOf(name, setting)}`, no));
  }
}

export function addSessionSettings(command: Target, isEdit: boolean): void {
  addSettings(command, sessionSettings, isEdit);
  addSettings(command, configSettings, isEdit);
}

export function addGroupSettings(command: Target, isEdit: boolean): void {
  command.addOption(new Option('--name <text>', 'name for people (default: the slug)').argParser(parserOf(line)));
  command.addOption(new Option('--description <text>', 'what the group is for').argParser(parserOf(line)));
  addSettings(command, groupSettings, isEdit);
  command.addOption(new Option('--template <name>', 'prompt or config template for sessions that name none'));
  command.addOption(new Option('--config-template <name>', 'config template that all sessions inherit'));
}

const line = { kind: 'line' } as const;

export interface GroupOptions {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
}

export function addRunSettings(command: Target): void {
  const ofRun = Object.entries(groupSettings as Settings).filter(([, setting]) => setting.run !== false);
  addSettings(command, Object.fromEntries(ofRun), false);
}

export function givenSettings(settings: Settings, given: object): Record<string, unknown> {
  const options = new Map<string, unknown>(Object.entries(given));
  const values = Object.entries(settings).map(([name, setting]) => {
    const attribute = optionOf(name, setting).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const value = options.get(attribute);
    const isTaken = value === false && setting.kind !== 'flag' && setting.no === undefined;
    return [name, isTaken ? null : value] as const;
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}
