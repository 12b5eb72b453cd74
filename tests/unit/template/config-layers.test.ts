/**
 * Promises: config layers are merged in order, every field of SessionConfig applies, and layers with errors are not
 * merged.
 */
import { expect, test } from 'bun:test';
import { type ConfigLayer, type ResolvedConfig, resolveConfig } from '../../../src/template/config-layers.ts';
import { expectOk } from '../../support/system/rig.ts';

const layer = (name: string, files: Record<string, string>): ConfigLayer => ({
  layer: name,
  files: Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text), isText: true })),
});

const layers = [
  layer('shared-config', { 'CLAUDE.md': 'shared', 'settings.json': '{"permissions": {"deny": ["Bash"]}}' }),
  layer('config template a', {
    'CLAUDE.md': 'A',
    'settings.json': '{"model": "opus", "permissions": {"allow": ["Edit", "Bash"]}}',
    'mcp.json': '{"mcpServers": {"db": {"command": "a", "args": ["1"]}, "web": {"url": "x"}}}',
    'commands/check.md': 'check A',
    'skills/x/SKILL.md': 'A',
    'rules/odd': 'a file',
  }),
  layer('config template b', {
    'CLAUDE.md': 'B',
    'mcp.json': '{"mcpServers": {"db": {"command": "b"}}}',
    'commands/check.md': 'check B',
    'rules/odd/deep.md': 'a folder',
  }),
];

const texts = (resolved: ResolvedConfig) =>
  resolved.files.map(({ path, bytes, layer: from }) => `${path} = ${Buffer.from(bytes)} (${from})`);

test('all config layers are merged, the last one wins, and every part knows its layer', () => {
  const resolved = expectOk(resolveConfig(layers, { settingsOverride: { model: 'haiku' } }));
  expect(resolved.claudeMd).toEqual([
    { layer: 'shared-config', text: 'shared' },
    { layer: 'config template a', text: 'A' },
    { layer: 'config template b', text: 'B' },
  ]);
  expect(resolved.settings).toEqual({ model: 'haiku', permissions: { deny: ['Bash'], allow: ['Edit'] } });
  expect(resolved.settingsOrigins).toEqual({
    model: 'session settings',
    'permissions.deny.0': 'shared-config',
    'permissions.allow.0': 'config template a',
  });
  expect(texts(resolved)).toEqual([
    'commands/check.md = check B (config template b)',
    'rules/odd/deep.md = a folder (config template b)',
    'skills/x/SKILL.md = A (config template a)',
  ]);
  expect(resolved.mcp).toEqual({ mcpServers: { db: { command: 'b' }, web: { url: 'x' } } });
  expect(resolved.mcpOrigins).toEqual({ db: 'config template b', web: 'config template a' });
});

test('a session can exclude config layers', () => {
  const config = { generateSettings: false, generateCommands: false, generateMcpConfig: false };
  const resolved = expectOk(resolveConfig(layers, { ...config, settingsOverride: { model: 'x' } }));
  expect(resolved).toMatchObject({ settings: {}, settingsOrigins: {}, files: [], mcp: null, mcpOrigins: {} });
  expect(resolved.claudeMd).toHaveLength(3);
});

test('the session’s own CLAUDE.md replaces that of the last template, never that of shared-config', () => {
  const own = { layer: 'session settings', text: 'own' };
  const named = (count: number) => expectOk(resolveConfig(layers.slice(0, count), { claudeMdText: 'own' })).claudeMd;
  expect(named(3)).toEqual([
    { layer: 'shared-config', text: 'shared' },
    { layer: 'config template a', text: 'A' },
    own,
  ]);
  expect(named(1)).toEqual([{ layer: 'shared-config', text: 'shared' }, own]);
  expect(named(0)).toEqual([own]);
});

test('without config layers the result is empty', () => {
  expect(expectOk(resolveConfig([], {}))).toEqual({
    claudeMd: [],
    settings: {},
    settingsOrigins: {},
    files: [],
    mcp: null,
    mcpOrigins: {},
  });
});

test('every error of a config layer is reported with its layer, and nothing is merged', () => {
  const faulty = [
    layer('shared-config', { 'settings.json': '{"permissions": {"deny": "Bash"}}' }),
    layer('config template a', { 'settings.json': '{"a": }', 'mcp.json': '{}' }),
  ];
  const resolved = resolveConfig(faulty, { settingsOverride: { permissions: null } });
  expect(resolved).toMatchObject({ ok: false, failure: { reason: 'usage' } });
  const message = resolved.ok ? '' : resolved.failure.message;
  expect(message).toContain('shared-config, settings.json: "permissions.deny" is not a list of texts');
  expect(message).toContain('config template a, settings.json: is not JSON: a value is expected');
  expect(message).toContain('session settings: "permissions" is not an object');
  expect(message).toContain('config template a, mcp.json: "mcpServers" is missing');
});
