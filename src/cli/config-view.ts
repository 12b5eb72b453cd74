/** `session show --config`: what a session really gets, each part with the layer that it comes from. */
import { instructions } from '../claude/instructions.ts';
import { ok, type Result } from '../core/failure.ts';
import type { Style } from '../report/format.ts';
import { safeLine, safeText } from '../report/terminal-text.ts';
import { ownInstructions } from '../runner/attempt-setup.ts';
import { frozenTemplates, generatedConfig } from '../runner/generated-config.ts';
import { sessionPaths } from '../store/paths.ts';
import { fillPrompt } from '../template/knowledge.ts';
import type { Context } from './context.ts';
import type { LoadedSession } from './resolve.ts';

/** The layer of what this program adds by itself. */
const ownLayer = 'claude-code-agent';
const valueColumnsMax = 200;

interface Origin {
  readonly layer: string;
}

export interface ConfigView {
  readonly claudeMd: readonly (Origin & { readonly text: string })[];
  readonly settings: Readonly<Record<string, unknown>>;
  /** Dotted path of each value to its layer. */
  readonly settingsOrigins: Readonly<Record<string, string>>;
  /** Commands, skills, agents and rules. */
  readonly files: readonly (Origin & { readonly path: string; readonly bytes: number })[];
  readonly mcpServers: Readonly<Record<string, unknown>>;
  readonly mcpOrigins: Readonly<Record<string, string>>;
}

/** Computed anew as for the next attempt. Fails as that attempt would. */
export function configView({ world }: Context, { state, record, paths, sessionId }: LoadedSession): Result<ConfigView> {
  const { definition } = record;
  const generated = generatedConfig(world, frozenTemplates(world, paths), state.group, definition);
  if (!generated.ok) return generated;
  const { claudeMd, settings, settingsOrigins, files, mcp, mcpOrigins } = generated.value;
  const { prompt } = fillPrompt(definition, state, sessionPaths(paths, sessionId).inputs);
  const own = ownInstructions(state, record, prompt);
  return ok({
    claudeMd: [...(own.own ? [{ layer: ownLayer, text: instructions(own) }] : []), ...claudeMd],
    settings,
    settingsOrigins,
    files: files.map(({ path, bytes, layer }) => ({ path, bytes: bytes.length, layer })),
    mcpServers: (mcp?.mcpServers ?? {}) as Readonly<Record<string, unknown>>,
    mcpOrigins,
  });
}

export function configLines(view: ConfigView, style: Style): string[] {
  const heading = (text: string) => ['', style('strong', text)];
  const from = (layer: string) => style('dim', `(${safeLine(layer, 80)})`);
  const settings = Object.entries(view.settingsOrigins);
  const servers = Object.entries(view.mcpOrigins);
  return [
    style('strong', 'CLAUDE.md'),
    ...view.claudeMd.flatMap(({ layer, text }) => [
      from(layer),
      ...safeText(text.trim()).split('\n').map(indented),
      '',
    ]),
    style('strong', 'settings.json'),
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

function indented(line: string): string {
  return line === '' ? '' : `  ${line}`;
}

/** The value at a path of `settingsOrigins`; keys may hold dots themselves, so the longest key that fits is taken. */
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
