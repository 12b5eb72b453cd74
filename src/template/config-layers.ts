/** What a session gets, made of shared-config, config templates and its own settings, each part with its layer. */
import { fail, ok, type Result } from '../core/failure.ts';
import type { SessionConfig } from '../core/group.ts';
import { findObjectFault } from '../store/json-places.ts';
import { isObject, parseJson } from '../store/shape.ts';
import { aboutFile, type ConfigFile } from './config-file.ts';
import { type JsonObject, mcpFaults, settingsFaults } from './config-shape.ts';
import { mergeSettings, type SettingsLayer } from './settings-merge.ts';
import { textOf } from './text-file.ts';

export interface ConfigLayer {
  /** 'shared-config', 'config template X', 'session settings'. */
  readonly layer: string;
  /** Rendered. */
  readonly files: readonly ConfigFile[];
}

export interface ResolvedConfig {
  readonly claudeMd: readonly { readonly layer: string; readonly text: string }[];
  readonly settings: JsonObject;
  /** As `mergeSettings` tells them. */
  readonly settingsOrigins: Readonly<Record<string, string>>;
  /** Commands, skills, agents and rules, by path; a later layer's file hides an earlier one's. */
  readonly files: readonly (ConfigFile & { readonly layer: string })[];
  /** `{mcpServers}`; null when no layer has any. */
  readonly mcp: JsonObject | null;
  /** Name of each server to its layer. */
  readonly mcpOrigins: Readonly<Record<string, string>>;
}

export const sharedConfigLayer = 'shared-config';
export const sessionSettingsLayer = 'session settings';

export function configTemplateLayer(name: string): string {
  return `config template ${name}`;
}

/**
 * Puts the layers together, the first one lowest. What a session does not inherit (`inheritFromGroup`) the caller
 * leaves out. Fails with `usage` and every fault of a settings.json or mcp.json.
 */
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
    return fail('usage', `The session's config is faulty: ${faults.join('; ')}.`, 'Correct these files and try again.');
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
    const text = textOf(file.bytes) ?? '';
    const fault = findObjectFault(text);
    const value = parseJson(text);
    const found = fault === null && isObject(value) ? faultsOf(value) : [fault?.message ?? 'is not a JSON object'];
    faults.push(...found.map((one) => `${layer}, ${path}: ${one}`));
    return found.length === 0 ? [{ layer, settings: value as JsonObject }] : [];
  });
}

/** The session's own text takes the place of the last config template's; shared-config is never replaced. */
function claudeMdOf(layers: readonly ConfigLayer[], own: string | undefined): ResolvedConfig['claudeMd'] {
  const texts = layers.flatMap(({ layer, files }) => {
    const file = files.find(({ path }) => path === 'CLAUDE.md');
    return file === undefined ? [] : [{ layer, text: textOf(file.bytes) ?? '' }];
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

/** A server is taken whole from the last layer that has it: half of two would be neither. */
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
