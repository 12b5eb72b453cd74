/** app/config/: what holds for this user on this machine. This file: each value, and where it comes from. */
import { delimiter, join } from 'node:path';
import { isMap, parse, parseDocument } from 'yaml';
import { findClaude } from '../../claude/launch/program.ts';
import { shippedPrices } from '../../claude/pricing.ts';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { see } from '../../core/advice.ts';
import { errorText, fail, ok, type Result } from '../../core/failure.ts';
import { quoted } from '../../core/id.ts';
import { hint } from '../../core/nearest.ts';
import { configRoot, worktreesFolder } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { yamlBytesMax } from '../../store/yaml-text.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath } from '../path-argument.ts';
import { readUserConfig } from './user-config.ts';
import { parseUserConfig } from './user-config-schema.ts';

export type SettingSource = 'default' | 'config.yaml' | 'environment';

export interface EffectiveSetting {
  readonly key: string;
  /** Plain data; null = nothing. */
  readonly value: unknown;
  readonly source: SettingSource;
  /** The variable by which it is set, for those that no file can set. */
  readonly variable?: string;
}

/** Fails as `readUserConfig` does, or when the environment names no folders. */
export async function listSettings(context: AppContext): Promise<Result<readonly EffectiveSetting[]>> {
  const { env } = context;
  const root = context.root();
  if (!root.ok) return root;
  const folder = configRoot(env);
  if (!folder.ok) return folder;
  const own = await readUserConfig(context);
  if (!own.ok) return own;
  const { config, onEvent, worktrees, dayUsd } = own.value;
  const claude = findClaude(context.world, env, context);
  const templates = (env.CLAUDE_CODE_AGENT_TEMPLATES ?? '').split(delimiter).filter((path) => path !== '');
  const byVariable = (key: string, variable: string, value: unknown): EffectiveSetting => ({
    key,
    value,
    source: (env[variable] ?? '') === '' ? 'default' : 'environment',
    variable,
  });
  const prices = config.prices ?? {};
  const inFile = (key: string, value: unknown, byDefault: unknown): EffectiveSetting => ({
    key,
    value: value ?? byDefault,
    source: value === undefined ? 'default' : 'config.yaml',
  });
  const priceOf = (source: SettingSource) => (entry: readonly [string, object]) => ({
    key: `prices.${entry[0]}`,
    value: entry[1],
    source,
  });
  return ok([
    byVariable('home', 'CLAUDE_CODE_AGENT_HOME', root.value),
    byVariable('configFolder', 'XDG_CONFIG_HOME', folder.value),
    byVariable('claude', 'CLAUDE_CODE_AGENT_CLAUDE', claude.ok ? claude.value.program : null),
    byVariable('templates', 'CLAUDE_CODE_AGENT_TEMPLATES', templates),
    byVariable('plainText', 'NO_COLOR', (env.NO_COLOR ?? '') !== ''),
    byVariable('debug', 'CLAUDE_CODE_AGENT_DEBUG', env.CLAUDE_CODE_AGENT_DEBUG === '1'),
    inFile('worktrees', worktrees, worktreesFolder(root.value)),
    inFile('onEvent', onEvent, null),
    inFile('budget.day', dayUsd, null),
    ...Object.entries(prices).map(priceOf('config.yaml')),
    ...Object.entries(shippedPrices)
      .filter(([word]) => !Object.hasOwn(prices, word))
      .map(priceOf('default')),
  ]);
}

/** The value of one setting, or of a part of it such as `prices.opus.input`. Fails with `not-found`. */
export function settingOf(settings: readonly EffectiveSetting[], key: string): Result<unknown> {
  for (const { key: known, value } of settings) {
    if (known === key) return ok(value);
    const part = key.slice(known.length + 1);
    const isPart = key.startsWith(`${known}.`) && typeof value === 'object' && value !== null;
    if (isPart && Object.hasOwn(value, part)) return ok((value as Readonly<Record<string, unknown>>)[part]);
  }
  return unknownKey(key, settings);
}

function unknownKey(key: string, settings: readonly EffectiveSetting[]): Result<never> {
  const known = settings.map((setting) => setting.key);
  const near = hint(key, known);
  return fail('not-found', `There is no setting ${quoted(key)}${near || '.'}`, see('config', 'list'));
}

export function configPath({ env }: Pick<AppContext, 'env'>): Result<string> {
  const folder = configRoot(env);
  return folder.ok ? ok(join(folder.value, 'config.yaml')) : folder;
}

/** Sets one value of config.yaml and keeps the rest with its comments; an empty text removes it. Returns the value. */
export async function changeSetting(context: AppContext, key: string, text: string): Promise<Result<unknown>> {
  const settings = await listSettings(context);
  if (!settings.ok) return settings;
  const known = settings.value.find((setting) => setting.key === key);
  if (known?.variable !== undefined) {
    const next = `Set the environment variable ${known.variable}, for good in the profile of your shell.`;
    return fail('usage', `${key} is not kept in config.yaml.`, next);
  }
  const path = configPath(context);
  if (!path.ok) return path;
  const keys = configKeyPath(key);
  if (keys === null) return unknownKey(key, settings.value);
  const { files } = context.world;
  try {
    const folder = configRoot(context.env);
    if (folder.ok) files.makeFolder(folder.value);
    const changed = updateExclusively(files, {
      path: files.realPath(path.value) ?? path.value,
      bytesMax: yamlBytesMax,
      access: 'private',
      change(before) {
        const now = changedUserConfig(new TextDecoder().decode(before ?? new Uint8Array(0)), { keys, key, text });
        return now.ok ? ok(new TextEncoder().encode(now.value)) : now;
      },
    });
    if (!changed.ok) return changed;
  } catch (error) {
    return { ok: false, failure: systemFailure(briefPath(path.value), error) };
  }
  const after = await listSettings(context);
  return after.ok ? ok(valueNow(after.value, key)) : after;
}

/** Null for what was taken out and has no default. */
function valueNow(settings: readonly EffectiveSetting[], key: string): unknown {
  const found = settingOf(settings, key);
  return found.ok ? found.value : null;
}

// One value of `config.yaml` changed in its text, so that comments and order stay as the person wrote them.

const priceKinds: ReadonlySet<string> = new Set(['input', 'output', 'cacheCreation', 'cacheRead']);

/** Where a setting stands in the file; null = it has no place there. A word of a model may have dots in it. */
export function configKeyPath(key: string): readonly string[] | null {
  if (key === 'onEvent' || key === 'worktrees') return [key];
  if (key === 'budget.day') return ['budget', 'day'];
  const word = /^prices\.(.+)$/s.exec(key)?.[1];
  if (word === undefined) return null;
  const dot = word.lastIndexOf('.');
  const kind = word.slice(dot + 1);
  return dot > 0 && priceKinds.has(kind) ? ['prices', word.slice(0, dot), kind] : ['prices', word];
}

interface Change {
  readonly keys: readonly string[];
  readonly key: string;
  readonly text: string;
}

/** Fails with `usage` when the text cannot be read as it is, or could not be afterwards. */
export function changedUserConfig(before: string, { keys, key, text }: Change): Result<string> {
  const readable = parseUserConfig(before, 'config.yaml');
  if (!readable.ok) return readable;
  const document = parseDocument(before);
  if (text === '') {
    document.deleteIn(keys);
    for (let above = keys.slice(0, -1); above.length > 0; above = above.slice(0, -1)) {
      const node = document.getIn(above);
      if (isMap(node) && node.items.length === 0) document.deleteIn(above);
    }
  } else {
    const value = valueFor(keys, text, document.getIn(keys));
    if (!value.ok) return fail('usage', `${key} cannot be ${JSON.stringify(text)}: ${value.failure.message}.`, give);
    document.setIn(keys, value.value);
  }
  const after =
    isMap(document.contents) && document.contents.items.length === 0 ? '' : document.toString({ lineWidth: 0 });
  const checked = parseUserConfig(after, 'config.yaml');
  if (checked.ok) return ok(after);
  // The text is never shown, so the location of its first problem is removed.
  const [, problem = ''] = checked.failure.message.split('\n');
  const why = problem.replace(/^.*?:\d+:\d+: /, '');
  return fail('usage', `${key} cannot be set so: ${why}.`, give);
}

const give =
  'Give a command to onEvent, an absolute path to worktrees, US dollars to budget.day, and to a price its parts: ' +
  "prices.opus '{input: 5, output: 25}'.";

/** `+5` for the budget of the day is on top of `now`. */
function valueFor(keys: readonly string[], text: string, now: unknown): Result<unknown> {
  // A command or a path is taken as it stands, whatever YAML would make of it.
  if (keys[0] === 'onEvent' || keys[0] === 'worktrees') return ok(text);
  try {
    if (keys[0] !== 'budget') return ok(parse(text));
    const value: unknown = parse(text.replace(/^\+?\$?/, ''));
    if (!text.startsWith('+') || typeof value !== 'number') return ok(value);
    return typeof now === 'number' ? ok(now + value) : fail('usage', 'there is no cap yet to which it is added', '');
  } catch (error) {
    return fail('usage', (errorText(error).split('\n')[0] ?? '').replace(/:$/, ''), '');
  }
}
