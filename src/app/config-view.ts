/** `session show --config`: the configuration of a session, each part with its source. */

import { basename } from 'node:path';
import { inheritedEntries } from '../claude/launch/config-dir.ts';
import { instructions } from '../claude/launch/instructions.ts';
import { findSettings, gitSettings, projectInstructions, sharedName } from '../claude/launch/project-settings.ts';
import { overriddenPaths } from '../claude/launch/settings.ts';
import { isTrusted, memoryOf, readUserClaude } from '../claude/launch/user-claude.ts';
import { isSecret } from '../claude/launch/variables.ts';
import { object } from '../claude/lenient.ts';
import { ok, type Result } from '../core/failure.ts';
import type { JsonObject } from '../store/json.ts';
import { sessionPaths } from '../store/paths.ts';
import { userLayer } from '../template/config-layers.ts';
import { fillPrompt } from '../template/fill-references.ts';
import type { Style } from '../view/format.ts';
import { safeLine, safeText } from '../view/terminal-text.ts';
import { importsOf, ownInstructions } from '../worker/attempt/attempt-setup.ts';
import { frozenTemplates, generatedConfig, permissionModeOf } from '../worker/prepare/generated-config.ts';
import type { AppContext } from './app-context.ts';
import type { LoadedSession } from './resolve.ts';

const ownLayer = 'claude-code-agent';
const valueColumnsMax = 200;

interface Origin {
  readonly layer: string;
}

export interface ConfigView {
  readonly claudeMd: readonly (Origin & { readonly text: string })[];
  /** Generated instructions that are passed as system prompt instead of CLAUDE.md. */
  readonly systemPrompt: readonly (Origin & { readonly text: string })[];
  /** Absolute paths of the project's own instructions that claude reads. */
  readonly projectInstructions: readonly string[];
  readonly permissionMode: string;
  readonly model: string | null;
  /** The project is not trusted: only its harmless settings apply. */
  readonly untrusted: boolean;
  /** The project's allow rules apply. */
  readonly trusted: boolean;
  readonly allowedTools: readonly string[];
  readonly settings: Readonly<Record<string, unknown>>;
  readonly settingsOrigins: Readonly<Record<string, string>>;
  /** `bytes` is absent for a symlink. */
  readonly files: readonly (Origin & { readonly path: string; readonly bytes?: number })[];
  readonly mcpServers: Readonly<Record<string, unknown>>;
  readonly mcpOrigins: Readonly<Record<string, string>>;
}

/** The configuration of the next attempt. Fails as that attempt would. */
export function configView(
  { world, env }: AppContext,
  { state, record, paths, sessionId }: LoadedSession,
): Result<ConfigView> {
  const { definition } = record;
  const user = readUserClaude(world, env);
  const generated = generatedConfig(world, frozenTemplates(world, paths), state.group, definition, user);
  if (!generated.ok) return generated;
  const { claudeMd, settings, settingsOrigins, files, mcp, mcpOrigins } = generated.value;
  const { prompt } = fillPrompt(definition, state, sessionPaths(paths, sessionId).inputs);
  const folder = record.workspace?.folder ?? definition.projectPath;
  const own = ownInstructions(state, record, prompt, gitSettings(settings, findSettings(world, folder)));
  const inherited = definition.inherit === 'user' ? user.folder : undefined;
  const ownText = instructions({ ...own, imports: importsOf(world, definition, folder, inherited) });
  const model = definition.model ?? state.group.config.model ?? settings.model;
  const isOwn = (entry: string) => files.some(({ path }) => path === entry || path.startsWith(`${entry}/`));
  const entries = inherited === undefined ? [] : inheritedEntries(world.files, inherited);
  const linked = entries.filter((entry) => !isOwn(entry)).map((path) => ({ path, layer: userLayer }));
  const overridden = overriddenPaths(settings).map((path) => [path, `overridden by ${ownLayer}`] as const);
  return ok({
    permissionMode: permissionModeOf(definition, generated.value),
    model: typeof model === 'string' ? model : null,
    untrusted: definition.untrusted === true,
    trusted: isTrusted(world, user, definition),
    allowedTools: definition.allowedTools ?? [],
    claudeMd: ownText === null ? [] : [{ layer: ownLayer, text: ownText }, ...claudeMd],
    systemPrompt: ownText === null ? claudeMd : [],
    projectInstructions: projectInstructions(world, folder, inherited === undefined ? memoryOf(user) : []),
    settings: withoutSecrets(settings),
    settingsOrigins: { ...settingsOrigins, ...Object.fromEntries(overridden) },
    files: [...files.map(({ path, bytes, layer }) => ({ path, bytes: bytes.length, layer })), ...linked],
    mcpServers: Object.fromEntries(
      Object.entries(object(mcp?.mcpServers)).map(([name, server]) => [name, withoutSecrets(object(server))]),
    ),
    mcpOrigins,
  });
}

const notShown = '(a secret, not shown)';
/** Names of variables that may contain a secret. */
const secretWord = /PASS|PWD|CREDENTIAL|AUTH|COOKIE|DSN|CERT/i;

/** Masks secrets, because the output may be shared. */
function withoutSecrets(part: JsonObject): JsonObject {
  const masked = (key: string, isHidden: (name: string, value: string) => boolean) => {
    const all = Object.entries(object(part[key])).map(([name, value]) => {
      return [name, typeof value === 'string' && value !== '' && isHidden(name, value) ? notShown : value];
    });
    return all.length === 0 ? {} : { [key]: Object.fromEntries(all) };
  };
  const isHidden = (name: string, value: string) => isSecret(name.toUpperCase(), value) || secretWord.test(name);
  return { ...part, ...masked('env', isHidden), ...masked('headers', () => true) };
}

export function configLines(view: ConfigView, style: Style): string[] {
  const heading = (text: string) => ['', style('strong', text)];
  const from = (layer: string) => style('dim', `(${safeLine(layer, 80)})`);
  const texts = (parts: ConfigView['claudeMd']) =>
    parts.flatMap(({ layer, text }) => [from(layer), ...safeText(text.trim()).split('\n').map(indented), '']);
  const settings = Object.entries(view.settingsOrigins);
  const servers = Object.entries(view.mcpOrigins);
  return [
    style('strong', 'CLAUDE.md'),
    ...(view.claudeMd.length === 0 ? ['  none is generated', ''] : texts(view.claudeMd)),
    ...(view.systemPrompt.length === 0 ? [] : [style('strong', 'System prompt'), ...texts(view.systemPrompt)]),
    ...(view.projectInstructions.length === 0 ? [] : [style('strong', 'Instructions of the project')]),
    ...view.projectInstructions.map((path) => `  ${safeLine(path, valueColumnsMax)}${readBy(path)}`),
    ...(view.projectInstructions.length === 0 ? [] : ['']),
    style('strong', 'settings.json'),
    `  permission mode ${view.permissionMode}${view.model === null ? '' : `, model ${safeLine(view.model, 60)}`}`,
    ...(view.untrusted ? [`  untrusted project: only its harmless settings apply  ${from('session')}`] : []),
    ...(view.trusted ? [`  trusted project: its allow rules apply  ${from('session')}`] : []),
    ...view.allowedTools.map((rule) => `  allowed: ${safeLine(rule, valueColumnsMax)}  ${from('session')}`),
    ...settings.map(
      ([path, layer]) => `  ${safeLine(`${path} = ${valueText(view, path)}`, valueColumnsMax)}  ${from(layer)}`,
    ),
    `  hooks.SessionStart  ${from(ownLayer)}`,
    ...(view.files.length === 0 ? [] : heading('Commands, skills, agents and rules')),
    ...view.files.map(({ path, layer }) => `  ${safeLine(path, valueColumnsMax)}  ${from(layer)}`),
    ...(servers.length === 0 ? [] : heading('MCP servers')),
    ...servers.map(([name, layer]) => `  ${safeLine(name, valueColumnsMax)}  ${from(layer)}`),
  ];
}

/** Older versions of claude read CLAUDE.md only. */
function readBy(path: string): string {
  return basename(path) === sharedName ? '  (there is no CLAUDE.md; only newer versions of claude read this file)' : '';
}

function indented(line: string): string {
  return line === '' ? '' : `  ${line}`;
}

/** The value at a path of `settingsOrigins`. Keys may contain dots, so the longest matching key is used. */
function valueText({ settings }: ConfigView, path: string): string {
  const value = valueAt(settings, path);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function valueAt(container: unknown, path: string): unknown {
  if (typeof container !== 'object' || container === null) return undefined;
  const record = container as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(record, path)) return record[path];
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const key = path.slice(0, dot);
    const found = Object.hasOwn(record, key) ? valueAt(record[key], path.slice(dot + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
