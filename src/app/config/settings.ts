/** Settings of this user on this machine, with their sources. */
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
  /** Null = not set. */
  readonly value: unknown;
  readonly source: SettingSource;
  /** The environment variable of a setting that is not in config.yaml. */
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
    const next = `Set the environment variable ${known.variable}, permanently in your shell profile.`;
    return fail('usage', `${key} cannot be set in config.yaml.`, next);
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
  if (!after.ok) return after;
  const found = settingOf(after.value, key);
  // A removed setting may have no default.
  return found.ok ? found : ok(null);
}

const priceKinds: ReadonlySet<string> = new Set(['input', 'output', 'cacheCreation', 'cacheRead']);

/** The keys of a setting in config.yaml; null = not in that file. The word of a model may contain dots. */
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

/** Changes one value in the text, so that comments and order stay. Fails if the file is faulty before or after. */
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
  // The user does not see the changed text, so remove the line and column.
  const [, problem = ''] = checked.failure.message.split('\n');
  const why = problem.replace(/^.*?:\d+:\d+: /, '');
  return fail('usage', `${key} cannot be set: ${why}.`, give);
}

const give =
  'onEvent takes a command, worktrees an absolute path, budget.day US dollars, and a price its parts: ' +
  "prices.opus '{input: 5, output: 25}'.";

/** `+5` for the daily budget is added to `now`. */
function valueFor(keys: readonly string[], text: string, now: unknown): Result<unknown> {
  // Commands and paths are not parsed as YAML.
  if (keys[0] === 'onEvent' || keys[0] === 'worktrees') return ok(text);
  try {
    if (keys[0] !== 'budget') return ok(parse(text));
    const value: unknown = parse(text.replace(/^\+?\$?/, ''));
    if (!text.startsWith('+') || typeof value !== 'number') return ok(value);
    return typeof now === 'number' ? ok(now + value) : fail('usage', 'there is no daily cap to add to', '');
  } catch (error) {
    return fail('usage', (errorText(error).split('\n')[0] ?? '').replace(/:$/, ''), '');
  }
}
