/** Options that several commands share, and the parsers of their values. */

import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import type { GroupReference } from '../../app/resolve.ts';
import type { RunOptions } from '../../app/run/run-options.ts';
import { defined } from '../../core/defined.ts';
import {
  type ContextName,
  configSettings,
  ownGroupSettings,
  type Setting,
  type Settings,
  sessionSettings,
  sharedSettings,
} from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import {
  ageMs,
  optionOf,
  parseSetting,
  plainNamePattern,
  plainNameRule,
  settingProblem,
  type ValueRule,
} from '../../core/setting-values.ts';
import { shellCommand } from '../../template/workflow/work-settings.ts';
import type { Reporter } from '../../view/reporter.ts';
import type { Context } from '../context.ts';

export interface RunCommandOptions extends RunOptions {
  readonly output: OutputKind | undefined;
  readonly dryRun?: true | undefined;
  readonly prompts?: true | undefined;
  readonly detach?: true | undefined;
  readonly notify?: true | undefined;
}

export function withRunOptions<Args extends unknown[]>(command: Command<Args>) {
  addRunSettings(command);
  return command
    .option('--rehearse [script]', 'use the scripted API on this machine: no account, no cost')
    .option('--keep', 'with --rehearse: keep its branches and worktrees')
    .option('--dry-run', 'show what would run and what it may cost; start nothing')
    .option('--prompts', 'with --dry-run: show the prompt of each session')
    .option('--detach', 'run in the background and return')
    .option('--notify', 'ring the terminal bell when the group is done, failed, paused or at a usage limit')
    .option('--json', 'the same as --output json: one event per line; with --dry-run one document')
    .addOption(new Option('--output <kind>', 'what to print; default: tui on a terminal, else text').choices(outputs));
}

type GivenRunOptions = Partial<Omit<RunCommandOptions, 'config'>> & { readonly json?: true | undefined };

export function runCommandOptions(given: GivenRunOptions, retryFailed: boolean): RunCommandOptions {
  const { json, output = json && 'json', rehearse, keep, dryRun, prompts, detach, notify, ...config } = given;
  return {
    config: givenSettings(ownGroupSettings, config),
    output,
    rehearse,
    keep,
    retryFailed,
    isQuiet: output === 'quiet',
    ...defined({ dryRun, prompts, detach, notify }),
  };
}

export const outputs = ['tui', 'text', 'json', 'quiet'] as const;
export type OutputKind = (typeof outputs)[number];
export type LineOutput = Exclude<OutputKind, 'tui'>;

/** The requested output, else the dashboard on a terminal and text elsewhere. */
export function chooseOutput<Kind extends OutputKind>(
  context: Context,
  wished: Kind | undefined,
): Result<Kind | 'tui' | 'text'> {
  const obstacle = dashboardObstacle(context);
  if (wished === undefined) return ok(obstacle === null && !isBuildServer(context) ? 'tui' : 'text');
  if (wished !== 'tui' || obstacle === null) return ok(wished);
  return fail('usage', `The dashboard cannot be shown: ${obstacle}.`, 'Use --output text instead.');
}

/** Why the dashboard cannot be shown; null if it can. */
function dashboardObstacle({ stdout, stdinIsTerminal, env }: Context): string | null {
  if (!stdout.isTerminal) return 'standard output is not a terminal';
  if (!stdinIsTerminal) return 'standard input is not a terminal';
  const terminal = env.TERM ?? '';
  if (terminal === '') return 'TERM is not set';
  return terminal === 'dumb' ? 'the terminal is TERM=dumb' : null;
}

/** Some build servers give their jobs a terminal without a user. */
function isBuildServer({ env }: Context): boolean {
  return !['', '0', 'false'].includes(env.CI ?? '');
}

/** Loads only the requested reporter. */
export async function createReporter(context: Context, group: GroupReference, kind: LineOutput): Promise<Reporter> {
  const { stdout, world, env } = context;
  const write = (text: string): void => stdout.write(text);
  const now = (): number => world.clock.now();
  switch (kind) {
    case 'text': {
      const columns = stdout.isTerminal ? stdout.columns : undefined;
      const lasting = context.leavesNothing === true ? {} : { groupFolder: group.paths.folder };
      const options = { write, style: stdout.style, now, columns, ...lasting };
      if (env.GITHUB_ACTIONS !== 'true')
        return (await import('../../view/text-reporter.ts')).createTextReporter(options);
      return (await import('../../view/text-reporter.ts')).createGithubReporter({ ...options, write: stdout.raw });
    }
    case 'json': {
      const { createJsonReporter } = await import('../../view/json-reporter.ts');
      return createJsonReporter({ write, groupId: group.groupId, clock: world.clock });
    }
    case 'quiet':
      return (await import('../../view/reporter.ts')).createQuietReporter(write);
  }
}

export interface OptionTarget {
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
  globs: 'glob',
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
  if (kind === 'rules' || kind === 'labels' || kind === 'globs') return option.argParser(listParser(setting));
  return kind === 'flag' || kind === 'object' || kind === 'text' ? option : option.argParser(parserOf(setting));
}

function helpOf({ kind, help, default: standard }: Setting): string {
  if (kind === 'labels') return `${help}; may be repeated`;
  if (kind === 'globs') return `${help}; may be repeated (default: ${standard})`;
  if (kind === 'object') return `${help}; JSON, a file with it, or "-"`;
  if (standard === undefined || standard === false) return help;
  return standard === true ? `${help} (default)` : `${help} (default: ${standard})`;
}

/** For options that may be repeated. `before` is false after the negated option. */
function listParser(setting: Setting) {
  const parse = parserOf<readonly string[]>(setting);
  return (text: string, before: readonly string[] | false = []): readonly string[] => {
    const all = [...new Set([...(before || []), ...parse(text)])];
    const problem = settingProblem(setting, all);
    if (problem !== null) throw new InvalidArgumentError(`It ${problem}.`);
    return all;
  };
}

function addSettings(command: OptionTarget, settings: Settings, isEdit: boolean): void {
  for (const [name, setting] of Object.entries(settings)) {
    if (setting.option === false) continue;
    command.addOption(settingOption(name, setting));
    const no = setting.no ?? (isEdit ? setting.without : undefined);
    if (no !== undefined) command.addOption(new Option(`--no-${optionOf(name, setting)}`, no));
  }
}

export function addSessionSettings(command: OptionTarget, isEdit: boolean): void {
  addSettings(command, sessionSettings, isEdit);
  addSettings(command, configSettings, isEdit);
}

export function addGroupSettings(command: OptionTarget, isEdit: boolean): void {
  command.addOption(new Option('--name <text>', 'name for people (default: the slug)').argParser(parserOf(line)));
  command.addOption(new Option('--description <text>', 'what the group is for').argParser(parserOf(line)));
  addSettings(command, ownGroupSettings, isEdit);
  command.addOption(new Option('--template <name>', 'default prompt or config template of the sessions'));
  command.addOption(new Option('--config-template <name>', 'config template that all sessions inherit'));
  const shared = Object.entries<Setting>(sharedSettings).map(([name, setting]): [string, Setting] => [
    name,
    { ...setting, help: `for all sessions: ${setting.help}` },
  ]);
  addSettings(command, Object.fromEntries(shared), isEdit);
}

const line = { kind: 'line' } as const;

export interface GroupOptions {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly template?: string | undefined;
  readonly configTemplate?: string | undefined;
}

export function addRunSettings(command: OptionTarget): void {
  const ofRun = Object.entries(ownGroupSettings as Settings).filter(([, setting]) => setting.run !== false);
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

export function parserOf<T>(rule: ValueRule): (text: string) => T {
  return (text) => {
    const parsed = parseSetting(rule, text);
    if ('problem' in parsed) throw new InvalidArgumentError(`It ${parsed.problem}.`);
    return parsed.value as T;
  };
}

export const parseMoney = parserOf<number>({ kind: 'money' });
export const parseText = parserOf<string>({ kind: 'line' });
export const parseContext = parserOf<readonly ContextName[]>({ kind: 'systems' });
export const parseMegabytes = parserOf<number>({ kind: 'megabytes', max: 100_000_000 });

export function parseCommand(text: string): string {
  const found = shellCommand(text);
  if (found.ok) return found.command;
  throw new InvalidArgumentError(`${found.problem[0]?.toUpperCase()}${found.problem.slice(1)}.`);
}

export function parseAge(text: string): number {
  const ms = ageMs(text);
  if (ms === null) throw new InvalidArgumentError('It must be a time such as 12h, 30d or 365d.');
  return ms;
}

export function parseWhole(min: number, max: number): (text: string) => number {
  return parserOf<number>({ kind: 'count', min, max });
}

export function collect(text: string, before: readonly string[] | false = []): readonly string[] {
  // `before` is false after the negated option, such as --no-depends-on.
  return [...(before || []), text];
}

/** Tries the `u` flag first, which rejects harmless escapes such as `a\-b`, then no flag. */
export function parsePattern(text: string): RegExp {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(text, flags);
    } catch {}
  }
  throw new InvalidArgumentError('It must be a JavaScript regular expression.');
}

export function parseWorkId(text: string): string {
  const id = text.replace(/^#/, '');
  if (plainNamePattern.test(id)) return id;
  throw new InvalidArgumentError(`It must have ${plainNameRule}, such as 258 or ABC-12.`);
}
