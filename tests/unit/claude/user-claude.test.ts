/** Promises: trust, approved servers and the login are those that the user chose in plain claude. */

import { beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { findSettings } from '../../../src/claude/launch/project-settings.ts';
import { isTrusted, loginOf, projectServers, readUserClaude } from '../../../src/claude/launch/user-claude.ts';
import type { JsonObject } from '../../../src/store/json.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { writeTree } from '../../support/git/repository.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();
let home: string;
let app: string;
beforeEach(() => {
  home = temp.path;
  app = join(home, 'work/app');
  mkdirSync(join(app, '.git'), { recursive: true });
});

function user(state: object, settings: object = {}) {
  writeTree(home, { '.claude.json': JSON.stringify(state), '.claude/settings.json': JSON.stringify(settings) });
  return readUserClaude(world, { HOME: home });
}

describe('trust', () => {
  const trusted = { hasTrustDialogAccepted: true };

  test('trust in the project or a folder above applies to all folders below and their worktrees', () => {
    const worktree = join(home, 'elsewhere/app');
    writeTree(worktree, { '.git': `gitdir: ${app}/.git/worktrees/app\n` });
    writeTree(app, { '.git/worktrees/app/commondir': '../..\n', 'packages/sub/file': '' });
    for (const folder of [app, join(home, 'work')]) {
      const one = user({ projects: { [folder]: trusted } });
      const places = [app, join(app, 'packages/sub'), worktree];
      expect(places.map((projectPath) => isTrusted(world, one, { projectPath }))).toEqual([true, true, true]);
      expect(isTrusted(world, one, { projectPath: join(home, 'other') })).toBe(false);
    }
  });

  test('an option grants trust, and the opposite option withdraws it', () => {
    const [none, one] = [user({}), user({ projects: { [app]: trusted } })];
    expect(isTrusted(world, none, { projectPath: app })).toBe(false);
    expect(isTrusted(world, none, { projectPath: app, trust: true })).toBe(true);
    expect(isTrusted(world, one, { projectPath: app, untrusted: true })).toBe(false);
  });
});

describe('servers of a project', () => {
  const named = (...names: string[]) =>
    JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, {}])) });
  const servers = (one: ReturnType<typeof user>, more: object = {}, projectPath = app) => {
    const found = projectServers(world, one, { projectPath, ...more }, findSettings(world, projectPath));
    return [Object.keys(found.approved), found.leftOut];
  };

  test('servers approved in any of claude’s files start', () => {
    writeTree(app, { '.mcp.json': named('a', 'b', 'c') });
    expect(servers(user({}))).toEqual([[], ['a', 'b', 'c']]);
    expect(servers(user({ projects: { [app]: { enabledMcpjsonServers: ['a'] } } }))).toEqual([['a'], ['b', 'c']]);
    expect(servers(user({}, { enabledMcpjsonServers: ['b'] }))).toEqual([['b'], ['a', 'c']]);
    const all = { enableAllProjectMcpServers: true, disabledMcpjsonServers: ['c'] };
    expect(servers(user({}, all))).toEqual([['a', 'b'], []]);
  });

  test('a project can approve its own servers only where it is trusted', () => {
    const settings = JSON.stringify({ enableAllProjectMcpServers: true });
    writeTree(app, { '.mcp.json': named('a'), '.claude/settings.local.json': settings });
    expect(servers(user({}))).toEqual([[], ['a']]);
    expect(servers(user({ projects: { [app]: { hasTrustDialogAccepted: true } } }))).toEqual([['a'], []]);
  });

  test('an option starts servers, but never in an untrusted project', () => {
    writeTree(app, { '.mcp.json': named('a', 'b') });
    const one = user({ projects: { [app]: { disabledMcpjsonServers: ['b'] } } });
    expect(servers(one, { projectMcp: 'all' })).toEqual([['a'], []]);
    expect(servers(one, { projectMcp: 'none' })).toEqual([[], []]);
    expect(servers(one, { projectMcp: 'all', untrusted: true })[0]).toEqual([]);
  });

  test('a package uses the servers of its repository too, and the nearest of the same name', () => {
    writeTree(app, { '.mcp.json': named('root', 'both'), 'packages/sub/.mcp.json': '{"mcpServers":{"both":{"x":1}}}' });
    const sub = join(app, 'packages/sub');
    const found = projectServers(world, user({}), { projectPath: sub, projectMcp: 'all' }, []);
    expect(found.approved).toEqual({ root: {}, both: { x: 1 } } as JsonObject);
  });
});

describe('the login', () => {
  test('a login in the user’s settings takes precedence over the environment', () => {
    const env = { ANTHROPIC_BASE_URL: 'http://gateway', ANTHROPIC_DEFAULT_OPUS_MODEL: 'big', EDITOR: 'vi' };
    user({}, { env });
    const { caller, login } = loginOf(world, {
      HOME: home,
      ANTHROPIC_BASE_URL: 'http://other',
      ANTHROPIC_API_KEY: 'k',
    });
    const { EDITOR: _, ...kept } = env;
    expect(caller).toEqual({ HOME: home, ANTHROPIC_API_KEY: 'k', ...kept });
    expect(login.kind).toBe('api-key');
  });

  test('a login in settings may be a helper; models and other keys alone change nothing', () => {
    user({}, { apiKeyHelper: 'print-key', otelHeadersHelper: 'other' });
    expect(loginOf(world, { HOME: home }).login).toMatchObject({
      kind: 'helper',
      helpers: { apiKeyHelper: 'print-key' },
    });
    user({}, { env: { ANTHROPIC_MODEL: 'opus', AWS_PROFILE: 'mine' } });
    expect(loginOf(world, { HOME: home })).toMatchObject({ caller: { HOME: home }, login: { kind: 'store' } });
    user({}, { env: { CLAUDE_CODE_USE_BEDROCK: '1', AWS_PROFILE: 'mine' } });
    expect(loginOf(world, { HOME: home })).toMatchObject({
      caller: { AWS_PROFILE: 'mine' },
      login: { kind: 'provider' },
    });
  });
});
