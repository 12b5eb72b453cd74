/** Generates a session's configuration from the user's own, shared-config, config templates and session settings. */

import { join } from 'node:path';
import { checkSettings, findSettings } from '../../claude/launch/project-settings.ts';
import { mergedSettings, readBackCheck } from '../../claude/launch/settings.ts';
import { inheritedSettings, projectServers, type UserClaude } from '../../claude/launch/user-claude.ts';
import { object } from '../../claude/lenient.ts';
import { type PermissionMode, permissionModes } from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { ConfigTemplateRef, GroupDefinition, SessionDefinition } from '../../core/group.ts';
import { sessionLabel } from '../../core/id.ts';
import type { JsonObject } from '../../store/json.ts';
import type { GroupPaths } from '../../store/paths.ts';
import { describeYamlProblem, type Problem, type Validated } from '../../store/yaml-text.ts';
import type { World } from '../../system/world.ts';
import {
  type ConfigLayer,
  configTemplateLayer,
  type ResolvedConfig,
  resolveConfig,
  sharedConfigLayer,
  userLayer,
} from '../../template/config-layers.ts';
import type { ConfigTemplate } from '../../template/config-template.ts';
import { lookupSurroundings } from '../../template/render.ts';

/** Loaded on first use, because most sessions have no template. */
function configTemplates(): typeof import('../../template/config-template.ts') {
  return require('../../template/config-template.ts');
}

/** Source of config templates: a group's frozen copies, or the originals for a preview. */
export interface TemplateStore {
  readonly sharedConfig: string;
  load(digest: string): Validated<ConfigTemplate>;
}

/** The frozen copies in a group's folder. Each is read and checked once. */
export function frozenTemplates(world: World, paths: GroupPaths): TemplateStore {
  const { sharedConfig, templates } = paths;
  const loaded = new Map<string, Validated<ConfigTemplate>>();
  return {
    sharedConfig,
    load(digest) {
      const known = loaded.get(digest) ?? configTemplates().loadConfigTemplate(world, join(templates, digest));
      // Failed reads are not cached.
      if (known.ok) loaded.set(digest, known);
      return known;
    },
  };
}

/**
 * The session's configuration, with the layer of each part. `user`: the user's plain claude; absent when only a
 * template is checked. Fails with `config-invalid`.
 */
export function generatedConfig(
  world: World,
  store: TemplateStore,
  group: GroupDefinition,
  definition: SessionDefinition,
  user?: UserClaude,
): Result<ResolvedConfig> {
  const config = definition.config ?? {};
  const inherits = config.inheritFromGroup !== false;
  const layers: ConfigLayer[] = user === undefined ? [] : plainLayers(world, user, definition);
  if (inherits && world.files.info(store.sharedConfig)?.kind === 'folder') {
    const shared = configTemplates().loadSharedConfig(world, store.sharedConfig);
    if (!shared.ok) return invalid(shared.problems);
    layers.push({ layer: sharedConfigLayer, files: shared.value });
  }
  for (const reference of templatesOf(group, definition, inherits)) {
    if (definition.untrusted === true && isOfRepository(reference)) return untrustedTemplate(reference);
    const layer = templateLayer(store, reference, group, definition);
    if (!layer.ok) return layer;
    layers.push(layer.value);
  }
  const resolved = resolveConfig(layers, config);
  return resolved.ok ? checked(world, resolved.value) : invalidSentence(resolved.failure.message);
}

/** The lowest layers: what plain claude would use in this project. */
function plainLayers(world: World, user: UserClaude, definition: SessionDefinition): ConfigLayer[] {
  const { projectPath, inherit } = definition;
  const { approved } = projectServers(world, user, definition, findSettings(world, projectPath));
  const own = inherit === 'user' ? inheritedSettings(world, user, projectPath) : { settings: {}, servers: {} };
  const file = (path: string, value: JsonObject) => ({ path, bytes: Buffer.from(JSON.stringify(value)), isText: true });
  const mcp = (servers: JsonObject) => (isEmpty(servers) ? [] : [file('mcp.json', { mcpServers: servers })]);
  const layers = [
    {
      layer: userLayer,
      files: [...(isEmpty(own.settings) ? [] : [file('settings.json', own.settings)]), ...mcp(own.servers)],
    },
    { layer: '.mcp.json of the project', files: mcp(approved) },
  ];
  return layers.filter(({ files }) => files.length > 0);
}

const isEmpty = (value: JsonObject): boolean => Object.keys(value).length === 0;

/** Rejects settings that claude would silently ignore, and settings that our own cannot override. */
function checked(world: World, resolved: ResolvedConfig): Result<ResolvedConfig> {
  if (Object.keys(resolved.settings).length === 0) return ok(resolved);
  const text = JSON.stringify(mergedSettings({ base: resolved.settings }));
  const readable = readBackCheck('Its settings.json', text);
  if (!readable.ok) return invalidSentence(readable.failure.message);
  const harmless = checkSettings(world, resolved.settings, 'Its settings.json', {});
  return harmless.ok ? ok(resolved) : invalidSentence(harmless.failure.message);
}

/** The session's mode, else that of its settings, else `acceptEdits`. Settings cannot select `bypassPermissions`. */
export function permissionModeOf({ permissionMode }: SessionDefinition, { settings }: ResolvedConfig): PermissionMode {
  if (permissionMode !== undefined) return permissionMode;
  const { defaultMode } = object(settings.permissions);
  const known = permissionModes.find((mode) => mode === defaultMode && mode !== 'bypassPermissions');
  return known ?? 'acceptEdits';
}

/** The group's template first. A template that both name is used once. */
function templatesOf(group: GroupDefinition, definition: SessionDefinition, inherits: boolean): ConfigTemplateRef[] {
  const own = definition.configTemplate;
  const shared = inherits ? group.configTemplate : undefined;
  return [...(shared === undefined || shared.digest === own?.digest ? [] : [shared]), ...(own ? [own] : [])];
}

function isOfRepository({ origin }: ConfigTemplateRef): boolean {
  return origin.includes('/.claude-code-agent/templates/');
}

function untrustedTemplate({ name, origin }: ConfigTemplateRef): Result<never> {
  const next = 'Leave out --untrusted, or copy what you need into your own template.';
  return fail('config-invalid', `The config template ${name} (${origin}) comes from an untrusted repository.`, next);
}

function templateLayer(
  store: TemplateStore,
  { name, digest }: ConfigTemplateRef,
  group: GroupDefinition,
  definition: SessionDefinition,
): Result<ConfigLayer> {
  const loaded = store.load(digest);
  if (!loaded.ok) return invalid(loaded.problems);
  if (loaded.value.digest !== digest) {
    return invalidSentence(`The frozen copy of the config template ${name} was changed.`);
  }
  const extra = lookupSurroundings(definition.projectPath, sessionLabel(definition.id, definition.name), group);
  const values = { ...defaultsOf(loaded.value), ...group.variables, ...definition.variables };
  const rendered = configTemplates().renderConfigTemplate(loaded.value, values, extra);
  if (rendered.problems.length > 0) return invalid(rendered.problems);
  return ok({ layer: configTemplateLayer(name), files: rendered.files });
}

function defaultsOf({ variables }: { variables: readonly { name: string; default?: string }[] }) {
  return Object.fromEntries(
    variables.flatMap((spec) => (spec.default === undefined ? [] : [[spec.name, spec.default]])),
  );
}

function invalid(problems: readonly Problem[]): Result<never> {
  return invalidSentence(`The session's configuration is invalid: ${problems.map(describeYamlProblem).join('; ')}.`);
}

function invalidSentence(message: string): Result<never> {
  const next =
    'Correct it. Templates are copied when a session or group is created, so then remove the session (or create the ' +
    'group again) and add it with the template again.';
  return fail('config-invalid', message, next);
}
