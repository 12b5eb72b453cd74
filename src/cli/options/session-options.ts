/** The options that define a session; the same in `session add` and `session edit`. */
import { resolve } from 'node:path';
import { Option } from '@commander-js/extra-typings';
import type { NewSessionOptions } from '../../app/create/new-session.ts';
import { briefPath } from '../../app/path-argument.ts';
import { defined } from '../../core/defined.ts';
import { configSettings, sessionSettings } from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { findObjectFault } from '../../store/json-places.ts';
import { readTextFile } from '../../template/text-file.ts';
import type { Context } from '../context.ts';
import { collect } from './option-values.ts';
import { promptSource, readStandardInput, standardInput } from './prompt-source.ts';
import { addSessionSettings, givenSettings, type Target } from './setting-options.ts';

const overrideBytesMax = 1024 * 1024;

/** Adds all but `--project` to a command. */
export function addSessionOptions(command: Target, isEdit: boolean): void {
  const add = (flags: string, what: string) => {
    const option = new Option(flags, what);
    command.addOption(option);
    return option;
  };
  add('--prompt <text>', 'the task; "-" reads it from standard input');
  add('--prompt-file <file>', 'file with the task; "-" is standard input');
  add('--template <name>', 'prompt template that makes the task, or a config template');
  add('--config-template <name>', 'what the session finds in its config dir');
  add('--var <name=value>', 'value for a variable of a template; may be repeated').argParser(collect);
  const dependsOn = 'id, number or name, with or without <group>/; may be repeated';
  add('--depends-on <session>', dependsOn).argParser(collect);
  if (isEdit) add('--no-depends-on', 'it waits for no other session');
  addSessionSettings(command, isEdit);
}

/** As commander gives what is no setting. */
interface GivenOptions {
  readonly prompt?: string;
  readonly promptFile?: string;
  readonly template?: string;
  readonly configTemplate?: string;
  readonly var?: readonly string[];
  readonly dependsOn?: readonly string[] | false;
}

/** What the options come to. Reads only. Fails with `usage`. */
export async function sessionFrom(
  context: Context,
  options: object,
): Promise<Result<Omit<NewSessionOptions, 'project'>>> {
  const { prompt, promptFile, template, configTemplate, var: vars, dependsOn }: GivenOptions = options;
  const config = givenSettings(configSettings, options);
  const { settingsOverride: typed } = config;
  const override = typeof typed === 'string' ? await settingsIn(context, typed) : ok(undefined);
  if (!override.ok) return override;
  return ok({
    ...givenSettings(sessionSettings, options),
    ...defined({ template, configTemplate, var: vars, prompt: promptSource(context, { prompt, promptFile }) }),
    ...(dependsOn === undefined ? {} : { dependsOn: dependsOn || null }),
    config: { ...config, ...defined({ settingsOverride: override.value }) },
  });
}

/** A text that begins with "{" is JSON itself, any other but "-" is the path of a file. */
async function settingsIn(context: Context, typed: string): Promise<Result<Readonly<Record<string, unknown>>>> {
  const next =
    'Give a JSON object such as \'{"permissions": {"deny": ["WebFetch"]}}\', or the path of a file with one.';
  if (typed.trimStart().startsWith('{')) return objectIn(typed, 'The JSON of --settings-override', next);
  if (typed === standardInput) {
    const bytes = await readStandardInput(context, 'The settings', overrideBytesMax);
    return bytes.ok ? objectIn(Buffer.from(bytes.value).toString(), 'The JSON on standard input', next) : bytes;
  }
  const path = resolve(context.cwd, typed);
  const read = readTextFile(context.world, path, overrideBytesMax);
  if (!read.ok) return fail('usage', `The file of --settings-override ${briefPath(path)} ${read.trouble}.`, next);
  return objectIn(read.text, `The file of --settings-override ${briefPath(path)}`, next);
}

function objectIn(text: string, source: string, next: string): Result<Readonly<Record<string, unknown>>> {
  const fault = findObjectFault(text);
  if (fault !== null)
    return fail('usage', `${source} is wrong at character ${fault.offset + 1}: ${fault.message}.`, next);
  const value: unknown = JSON.parse(text);
  return isObject(value) ? ok(value) : fail('usage', `${source} is no JSON object.`, next);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
