/**
 * Promises: fleet files of a host are readable by their owner only. Files that others can read, damaged files and
 * files of a newer version are refused in one sentence. Errors in join lines do not show their contents.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { adviceText, shellWord } from '../../../src/core/advice.ts';
import type { Result } from '../../../src/core/failure.ts';
import {
  type FleetConfig,
  fleetPaths,
  type HostConfig,
  joinLine,
  parseJoinLine,
  readAdded,
  readFleet,
  readHost,
  ticketOf,
  writeAdded,
  writeFleet,
  writeHost,
} from '../../../src/fleet/fleet-files.ts';
import { loginNames, loginText, readLogin } from '../../../src/fleet/login-files.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const { files } = createRealWorld();
const keys = newFleetKeys();
const fleet: FleetConfig = { version: 1, redis: 'redis://runner:one@127.0.0.1:6379', ...keys, leaseMs: 60_000 };
const host: HostConfig = { ...ticketOf(fleet), name: 'gpu1', slots: 2, labels: ['gpu'] };
/** Of Redis, and of the two that others must not have. */
const secrets = ['one', 'two', keys.sealingKey, keys.signingKey];

const temp = withTempFolder();
let root = '';

beforeEach(() => {
  root = temp.path;
});

function refusal(result: Result<unknown>): string {
  if (result.ok) throw new Error('It was not refused');
  const { message, next } = result.failure;
  const said = `${message} ${adviceText(next)}`;
  for (const secret of secrets.filter((text) => text.length > 5)) expect(said).not.toContain(secret);
  expect(message).toMatch(/^[A-Z/].*\.$/);
  expect(adviceText(next)).not.toBe('');
  return said;
}

function write(path: string, content: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode });
  chmodSync(path, mode);
}

describe('fleet files', () => {
  test('fleet files are read as they were written, and only by their owner', () => {
    expectOk(writeFleet(files, root, fleet));
    expectOk(writeHost(files, root, host));
    expectOk(writeAdded(files, root, { gpu1: { ssh: 'me@gpu1', program: '/data/host' } }));
    expect(expectOk(readFleet(files, root))).toEqual(fleet);
    expect(expectOk(readHost(files, root))).toEqual(host);
    expect(expectOk(readAdded(files, root))).toEqual({ gpu1: { ssh: 'me@gpu1', program: '/data/host' } });
    const { folder } = fleetPaths(root);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(`${folder}/${name}`).mode & 0o777).toBe(0o600);
  });

  test('without a fleet there are no fleet files', () => {
    expect(expectOk(readFleet(files, root))).toBeUndefined();
    expect(expectOk(readHost(files, root))).toBeUndefined();
    expect(expectOk(readAdded(files, root))).toEqual({});
    expect(loginNames(files, root)).toEqual([]);
  });

  test('CLAUDE_CODE_AGENT_FLEET takes precedence over the stored address', () => {
    expectOk(writeFleet(files, root, fleet));
    expect(expectOk(readFleet(files, root, 'rediss://other:6380'))?.redis).toBe('rediss://other:6380');
    expect(expectOk(readFleet(files, root, ''))?.redis).toBe(fleet.redis);
  });

  test.each([0o640, 0o604, 0o620, 0o666])('fleet files that others can access (%o) are refused', (mode) => {
    write(fleetPaths(root).config, JSON.stringify(fleet), mode);
    expect(refusal(readFleet(files, root))).toContain(`chmod 600 ${shellWord(fleetPaths(root).config)}`);
  });

  test.each([
    ['no JSON', '{'],
    ['an empty file', ''],
    ['another form', '{"version":1}'],
    ['an invalid key', JSON.stringify({ ...fleet, sealingKey: '?' })],
    ['a lease below the minimum', JSON.stringify({ ...fleet, leaseMs: 10 })],
  ])('damaged fleet files are refused: %s', (_, content) => {
    write(fleetPaths(root).config, content);
    expect(refusal(readFleet(files, root))).toContain('is damaged');
  });

  test('fleet files of a newer version are refused with that reason', () => {
    write(fleetPaths(root).host, JSON.stringify({ ...host, version: 2 }));
    expect(refusal(readHost(files, root))).toContain('newer version');
  });

  test('fleet files that are not regular files are refused', () => {
    mkdirSync(fleetPaths(root).config, { recursive: true });
    expect(refusal(readFleet(files, root))).toContain('is no file');
  });
});

describe('login files', () => {
  const path = () => `${fleetPaths(root).logins}/team-a.env`;

  test('a login file has lines of NAME=value, blank lines and comments', () => {
    const variables = { ANTHROPIC_API_KEY: 'a=b "c" #d', ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' };
    write(path(), `# of the team\n\nexport ${loginText(variables)}`);
    expect(expectOk(readLogin(files, root, 'team-a'))).toEqual(variables);
    expect(loginNames(files, root)).toEqual(['team-a']);
  });

  test('a missing login file is refused, and so is a name that leads elsewhere', () => {
    write(`${root}/fleet/secret.env`, 'A=b\n');
    for (const name of ['team-b', '../secret', '/etc/passwd', '']) {
      expect(expectOk(readLogin(files, root, name))).toBeUndefined();
    }
  });

  test.each([
    ['a line that is no variable', 'ANTHROPIC_API_KEY=x\nsecret-of-mine\n', 'Line 2'],
    ['nothing', '# empty\n', 'names no variable'],
  ])('a bad login file is refused without showing its contents: %s', (_, content, said) => {
    write(path(), content);
    const message = refusal(readLogin(files, root, 'team-a'));
    expect(message).toContain(said);
    expect(message).not.toContain('secret-of-mine');
  });

  test('a login file that others can read is refused', () => {
    write(path(), 'A=b\n', 0o644);
    expect(refusal(readLogin(files, root, 'team-a'))).toContain('chmod 600');
  });
});

describe('join lines', () => {
  const whole = { ...fleet, ca: 'PEM', insecure: false };
  const line = joinLine(ticketOf(whole));
  const made = (ticket: object) => `cca-join:${Buffer.from(JSON.stringify(ticket)).toString('base64url')}`;

  test('a join line has everything that a host needs, and no login', () => {
    const ticket = expectOk(parseJoinLine(` ${line}\n`));
    expect(ticket).toEqual(ticketOf(whole));
    expect(ticket.redis).toBe(whole.redis);
    expect(ticket.runnerKeys).toEqual([keys.publicKey]);
    const said = Buffer.from(line.slice('cca-join:'.length), 'base64url').toString();
    expect(said).not.toContain(keys.signingKey);
    expect(line).toMatch(/^cca-join:[\w-]+$/);
  });

  test.each([
    ['nothing', '', 'not a complete join line'],
    ['other text', 'redis://127.0.0.1:6379', 'not a complete join line'],
    ['a wrapped line', `${line.slice(0, 60)}\n${line.slice(60)}`, 'one line, in quotes'],
    ['a truncated line', line.slice(0, -20), 'not a complete join line'],
    ['JSON that is no object', made([1]), 'not a complete join line'],
    ['a line of a newer version', made({ ...ticketOf(whole), version: 2 }), 'newer version'],
    ['no key', made({ ...ticketOf(whole), sealingKey: undefined }), 'not a complete join line'],
    ['a short key', made({ ...ticketOf(whole), sealingKey: 'AAAA' }), 'not a complete join line'],
    ['no trusted client', made({ ...ticketOf(whole), runnerKeys: [] }), 'not a complete join line'],
    ['no address', made({ ...ticketOf(whole), redis: 'two' }), 'address of Redis'],
    ['another host without encryption', made({ ...ticketOf(whole), redis: 'redis://h:two@r:1' }), 'encrypt'],
  ])('a bad join line is refused in one sentence: %s', (_, bad, said) => {
    expect(refusal(parseJoinLine(bad))).toContain(said);
  });
});
