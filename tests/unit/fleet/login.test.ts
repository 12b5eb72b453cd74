/** Promises: a session of another user gets only the login that its order names, from a private file. */
import { beforeEach, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupId } from '../../../src/core/group.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { environmentFor, loginKey } from '../../../src/fleet/login-files.ts';
import type { Order } from '../../../src/fleet/wire.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const { files } = createRealWorld();
const agentEnv = {
  ...{ PATH: '/bin', HTTPS_PROXY: 'http://proxy', ANTHROPIC_API_KEY: 'of-the-agent', GH_TOKEN: 'kept' },
  ...{ CLAUDE_CODE_USE_BEDROCK: '1', ANTHROPIC_BASE_URL: 'http://of-the-agent', CLAUDE_CONFIG_DIR: '/of-the-agent' },
};
const temp = withTempFolder();

beforeEach(() => {
  mkdirSync(fleetPaths(temp.path).logins, { recursive: true });
});

const login = (name: string, text: string, mode = 0o600): void => {
  const path = join(fleetPaths(temp.path).logins, `${name}.env`);
  writeFileSync(path, text);
  chmodSync(path, mode);
};

function environment(ownLogin?: string) {
  const paths = sessionPaths(groupPaths(temp.path, groupId as GroupId), sid(1));
  const order = { attemptId: 'a', untrusted: false } as Order;
  return environmentFor(files, { root: temp.path, agentEnv, ownLogin, order, paths, programs: '/opt/bin' });
}

test('the named login replaces all logins of the agent, and other variables of the host stay', () => {
  login('team-a', '# of team a\nCLAUDE_CODE_OAUTH_TOKEN=of-team-a\n');
  const made = environment('team-a');
  const env = made.ok ? made.value : {};
  expect(env).toMatchObject({ CLAUDE_CODE_OAUTH_TOKEN: 'of-team-a', HTTPS_PROXY: 'http://proxy', GH_TOKEN: 'kept' });
  expect(env.PATH).toBe('/bin:/opt/bin');
  expect(JSON.stringify(env)).not.toContain('of-the-agent');
  expect(env.CLAUDE_CODE_USE_BEDROCK).toBeUndefined();
});

test('without a name the session gets the agent’s own login', () => {
  const made = environment();
  expect(made.ok && made.value.ANTHROPIC_API_KEY).toBe('of-the-agent');
});

test.each([
  ['a missing login', 'team-b', 'The host has no login "team-b".'],
  ['a name that leads to another file', '../host', 'The host has no login "../host".'],
  ['a login file that others can read', 'open', 'other users of this host may read it'],
  ['an empty login', 'empty', 'names no variable'],
])('%s is refused in one sentence that does not show its contents', (_, name, sentence) => {
  login('open', 'ANTHROPIC_API_KEY=secret\n', 0o644);
  login('empty', '# secret\n');
  const made = environment(name);
  expect(made.ok ? '' : made.failure.reason).toBe('not-logged-in');
  expect(made.ok ? '' : made.failure.message).toContain(sentence);
  expect(JSON.stringify(made)).not.toContain('secret');
});

test('the fingerprint of a login changes with its contents, and an unreadable login has one too', () => {
  const store = join(temp.path, '.claude', '.credentials.json');
  mkdirSync(join(temp.path, '.claude'));
  const key = (from: typeof files) =>
    loginKey(from, { root: temp.path, agentEnv: { HOME: temp.path }, ownLogin: undefined }, 'salt');
  const names = ['first', 'second'].map((text) => {
    writeFileSync(store, text);
    return key(files);
  });
  const unreadable = Object.assign(Object.create(files), {
    readText: () => {
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
    },
  });
  expect(new Set([...names, key(unreadable)]).size).toBe(3);
});
