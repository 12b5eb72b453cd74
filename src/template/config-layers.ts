/** A session's configuration from shared-config, config templates and its own settings, with the layer of each part. */

import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionConfig } from '../core/group.ts';
import { isObject, type JsonObject, parseJson } from '../store/json.ts';
import { findObjectFault } from '../store/json-positions.ts';
import { decodeText } from './text-file.ts';

export interface ConfigFile {
  /** Relative to the template's folder, with "/". `.mcp.json` is called `mcp.json`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** UTF-8 without a NUL: variables in it are filled in. */
  readonly isText: boolean;
}

export const aboutFile = 'config.yaml';

export interface ConfigLayer {
  /** 'shared-config', 'config template X', 'session settings'. */
  readonly layer: string;
  readonly files: readonly ConfigFile[];
}

export interface ResolvedConfig {
  readonly claudeMd: readonly { readonly layer: string; readonly text: string }[];
  readonly settings: JsonObject;
  readonly settingsOrigins: Readonly<Record<string, string>>;
  /** Commands, skills, agents and rules, by path; a later layer's file hides an earlier one's. */
  readonly files: readonly (ConfigFile & { readonly layer: string })[];
  /** `{mcpServers}`; null when no layer has any. */
  readonly mcp: JsonObject | null;
  readonly mcpOrigins: Readonly<Record<string, string>>;
}

export const userLayer = 'your own claude configuration';
export const sharedConfigLayer = 'shared-config';
export const sessionSettingsLayer = 'session settings';

export function configTemplateLayer(name: string): string {
  return `config template ${name}`;
}

/** Merges the layers, lowest first. Fails with `usage` and every fault of a settings.json or mcp.json. */
export function resolveConfig(layers: readonly ConfigLayer[], config: SessionConfig): Result<ResolvedConfig> {
  const faults: string[] = [];
  const settingsLayers = jsonOf(layers, 'settings.json', settingsFaults, faults);
  const override = config.settingsOverride;
  if (override !== undefined) {
    faults.push(...settingsFaults(override).map((fault) => `${sessionSettingsLayer}: ${fault}`));
    settingsLayers.push({ layer: sessionSettingsLayer, settings: override });
  }
  const mcpLayers = jsonOf(layers, 'mcp.json', mcpFaults, faults);
  if (faults.length > 0) {
    return fail('usage', `The session's config is invalid: ${faults.join('; ')}.`, 'Correct these files.');
  }
  const wantsSettings = config.generateSettings !== false;
  const { settings, origins } = mergeSettings(wantsSettings ? settingsLayers : []);
  return ok({
    claudeMd: claudeMdOf(layers, config.claudeMdText),
    settings,
    settingsOrigins: origins,
    files: config.generateCommands === false ? [] : filesOf(layers),
    ...mcpOf(config.generateMcpConfig === false ? [] : mcpLayers),
  });
}

function jsonOf(
  layers: readonly ConfigLayer[],
  path: string,
  faultsOf: (value: JsonObject) => string[],
  faults: string[],
): SettingsLayer[] {
  return layers.flatMap(({ layer, files }) => {
    const file = files.find((one) => one.path === path);
    if (file === undefined) return [];
    const text = decodeText(file.bytes) ?? '';
    const fault = findObjectFault(text);
    const value = parseJson(text);
    const found = fault === null && isObject(value) ? faultsOf(value) : [fault?.message ?? 'is not a JSON object'];
    faults.push(...found.map((one) => `${layer}, ${path}: ${one}`));
    return found.length === 0 ? [{ layer, settings: value as JsonObject }] : [];
  });
}

/** The session's own text replaces the last config template's; shared-config is never replaced. */
function claudeMdOf(layers: readonly ConfigLayer[], own: string | undefined): ResolvedConfig['claudeMd'] {
  const texts = layers.flatMap(({ layer, files }) => {
    const file = files.find(({ path }) => path === 'CLAUDE.md');
    return file === undefined ? [] : [{ layer, text: decodeText(file.bytes) ?? '' }];
  });
  if (own === undefined) return texts;
  const replaced = texts.findLastIndex(({ layer }) => layer !== sharedConfigLayer);
  return [...texts.filter((_, index) => index !== replaced), { layer: sessionSettingsLayer, text: own }];
}

const elsewhere: ReadonlySet<string> = new Set(['CLAUDE.md', 'settings.json', 'mcp.json', aboutFile]);

function filesOf(layers: readonly ConfigLayer[]): ResolvedConfig['files'] {
  const byPath = new Map<string, ConfigFile & { readonly layer: string }>();
  for (const { layer, files } of layers) {
    for (const file of files) {
      if (elsewhere.has(file.path)) continue;
      for (const path of byPath.keys()) if (cannotStandBeside(path, file.path)) byPath.delete(path);
      byPath.set(file.path, { ...file, layer });
    }
  }
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** One is a file where the other needs a folder. */
function cannotStandBeside(a: string, b: string): boolean {
  return a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}

/** A server is taken completely from the last layer that has it. */
function mcpOf(layers: readonly SettingsLayer[]): Pick<ResolvedConfig, 'mcp' | 'mcpOrigins'> {
  const servers = new Map<string, { readonly server: unknown; readonly layer: string }>();
  for (const { layer, settings } of layers) {
    for (const [name, server] of Object.entries(settings.mcpServers as JsonObject))
      servers.set(name, { server, layer });
  }
  const pick = <T>(part: (one: { readonly server: unknown; readonly layer: string }) => T) =>
    Object.fromEntries([...servers].map(([name, one]) => [name, part(one)]));
  return {
    mcp: layers.length === 0 ? null : { mcpServers: pick(({ server }) => server) },
    mcpOrigins: pick(({ layer }) => layer),
  };
}

export interface SettingsLayer {
  readonly layer: string;
  readonly settings: JsonObject;
}

/** `origins`: the layer of every value and of every entry of a merged list, by path, such as `permissions.deny.0`. */
export function mergeSettings(layers: readonly SettingsLayer[]) {
  const root: Branch = new Map();
  for (const { layer, settings } of layers) addObject(root, settings, layer, []);
  withoutDenied(root);
  const origins = new Map<string, string>();
  const settings = plain(root, '', origins) as JsonObject;
  return { settings, origins: Object.fromEntries(origins) };
}

interface Entry {
  readonly value: unknown;
  readonly layer: string;
}
interface Branch extends Map<string, Node> {}
/** The value of one layer, a list with the entries of all layers, or an object. */
type Node = Entry | Entry[] | Branch;

function addObject(branch: Branch, object: JsonObject, layer: string, path: readonly string[]): void {
  for (const [key, value] of Object.entries(object)) {
    // As a key of its own it has no meaning, and as an assignment it would change the object itself.
    if (key !== '__proto__') branch.set(key, added(branch.get(key), value, layer, [...path, key]));
  }
}

/** The value at `path` after this layer. */
function added(before: Node | undefined, value: unknown, layer: string, path: readonly string[]): Node {
  if (isObject(value)) {
    if (Array.isArray(before)) return before;
    const branch: Branch = before instanceof Map ? before : new Map();
    addObject(branch, value, layer, path);
    return branch;
  }
  if (isJoined(path) && Array.isArray(value)) {
    const entries: Entry[] = Array.isArray(before) ? [...before] : [];
    for (const entry of value) {
      // Hooks run as often as they are listed; a repeated rule has no effect.
      const isRepeated = path[0] !== 'hooks' && entries.some((known) => Bun.deepEquals(known.value, entry));
      if (!isRepeated) entries.push({ value: entry, layer });
    }
    return entries;
  }
  return before !== undefined && forbids(before) ? before : { value, layer };
}

/** Lists in which every layer's entries count. */
function isJoined(path: readonly string[]): boolean {
  const [first, second] = path;
  if (path.length === 2 && first === 'hooks') return true;
  if (path.length === 2 && first === 'permissions') {
    if ((permissionLists as readonly string[]).includes(second as string)) return true;
  }
  return isDenyKey(path.at(-1) as string);
}

/** `deny`, `denyRead`, `deniedMcpServers`, `disabledMcpjsonServers`, `disallowedTools`: a list of what is forbidden. */
function isDenyKey(key: string): boolean {
  return /^(?:deny|denied|disabled|disallowed)(?:[A-Z]|$)/.test(key);
}

/** Whether removing this would allow something. */
function forbids(node: Node): boolean {
  return Array.isArray(node) || (node instanceof Map && [...node.values()].some(forbids));
}

/** A rule that any layer denies is neither allowed nor asked for. */
function withoutDenied(root: Branch): void {
  const permissions = root.get('permissions');
  const deny = permissions instanceof Map ? permissions.get('deny') : undefined;
  if (!(permissions instanceof Map) || !Array.isArray(deny)) return;
  const denied = new Set(deny.map(({ value }) => value));
  for (const kind of ['allow', 'ask']) {
    const list = permissions.get(kind);
    if (Array.isArray(list))
      permissions.set(
        kind,
        list.filter(({ value }) => !denied.has(value)),
      );
  }
}

/** The tree as plain data; the layers go into `origins`. */
function plain(node: Node, path: string, origins: Map<string, string>): unknown {
  const below = (key: string | number): string => (path === '' ? String(key) : `${path}.${key}`);
  if (node instanceof Map) {
    return Object.fromEntries([...node].map(([key, child]) => [key, plain(child, below(key), origins)]));
  }
  if (Array.isArray(node)) return node.map((entry, index) => plain(entry, below(index), origins));
  origins.set(path, node.layer);
  return node.value;
}

export const permissionLists = ['allow', 'deny', 'ask', 'additionalDirectories'] as const;

export function settingsFaults({ permissions, hooks }: JsonObject): string[] {
  const faults: string[] = [];
  if (permissions !== undefined && !isObject(permissions)) faults.push('"permissions" is not an object');
  if (isObject(permissions)) {
    for (const kind of permissionLists) {
      const rules = permissions[kind];
      if (rules !== undefined && !isTexts(rules)) faults.push(`"permissions.${kind}" is not a list of texts`);
    }
  }
  if (hooks !== undefined && !isObject(hooks)) faults.push('"hooks" is not an object');
  if (isObject(hooks)) {
    for (const [event, entries] of Object.entries(hooks)) {
      const isList = Array.isArray(entries) && entries.every(isObject);
      if (!isList) faults.push(`"hooks.${event}" is not a list of objects`);
    }
  }
  return faults;
}

/** Sentences without a full stop; empty for a valid list of MCP servers by name. */
export function mcpFaults(mcp: JsonObject): string[] {
  const faults = Object.keys(mcp)
    .filter((key) => key !== 'mcpServers')
    .map((key) => `unknown key ${JSON.stringify(key)} next to "mcpServers"`);
  const servers = mcp.mcpServers;
  if (!isObject(servers)) return [...faults, '"mcpServers" is missing or is not an object of servers by name'];
  for (const [name, server] of Object.entries(servers)) {
    if (!isObject(server)) faults.push(`the MCP server ${JSON.stringify(name)} is not an object`);
  }
  return faults;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
