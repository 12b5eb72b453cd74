/**
 * Promises: the files in docs/fleet match what the program writes and requires, and a Redis with that configuration
 * serves a fleet over TLS. Not covered: docker and systemd themselves.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { unitText } from '../../../src/app/fleet/agent-service.ts';
import { parseJoinLine } from '../../../src/fleet/fleet-files.ts';
import { User } from '../../support/cli/user.ts';
import { checkoutRoot } from '../../support/cli.ts';
import { freePort, hasRedis, startRedisWith } from '../../support/redis-server.ts';
import { expectOk } from '../../support/system/rig.ts';

const read = (name: string) => readFileSync(join(checkoutRoot, 'docs', name), 'utf8');
test('the unit is what host join writes', () => {
  const place = { env: { PATH: '/usr/local/bin:/usr/bin:/bin' }, packageRoot: '/usr/local' };
  const shown = read('fleet/claude-code-agent-host.service').replace(/^(?:#.*\n)+/, '');
  expect(unitText(place)).toBe(shown);
});

test('a unit contains what the agent needs, with every special character escaped, and no login', () => {
  const env = {
    PATH: '/a b:/c%d',
    CLAUDE_CODE_AGENT_HOME: '/data"x"\\y',
    CLAUDE_CODE_AGENT_ATTEMPT: 'mark',
    CLAUDE_CODE_AGENT_FLEET: 'rediss://user:secret@r',
    ANTHROPIC_API_KEY: 'secret',
    CLAUDE_CODE_OAUTH_TOKEN: 'secret',
  };
  const text = unitText({ env, packageRoot: '/opt/$x' });
  expect(text).toContain('Environment="PATH=/a b:/c%%d"\nEnvironment="CLAUDE_CODE_AGENT_HOME=/data\\"x\\"\\\\y"\n');
  expect(text).toContain('ExecStart="/opt/$$x/bin/claude-code-agent" host serve\n');
  expect(text).not.toMatch(/secret|mark/);
});

test('the compose file runs Redis with that configuration', () => {
  const { services } = parse(read('fleet/compose.yaml'));
  expect(services.redis.command).toBe('redis-server /etc/redis/redis.conf');
  expect(services.redis.volumes.slice(0, 3)).toEqual([
    './redis.conf:/etc/redis/redis.conf:ro',
    './users.acl:/etc/redis/users.acl:ro',
    './tls:/etc/redis/tls:ro',
  ]);
  expect(services.redis.ports).toEqual(['6380:6380']);
});

test.skipIf(!hasRedis || Bun.which('openssl') === null)(
  'a Redis of that configuration serves a fleet over TLS',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cca-tls-'));
    const user = new User();
    const port = await freePort();
    mkdirSync(join(folder, 'tls'));
    const [key, crt] = [join(folder, 'tls', 'redis.key'), join(folder, 'tls', 'redis.crt')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    const made = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      crt,
      ...subject,
    ];
    expect(Bun.spawnSync(['openssl', ...made], { stderr: 'ignore' }).success).toBe(true);
    const config = read('fleet/redis.conf')
      .replaceAll('/etc/redis/', `${folder}/`)
      .replace('dir /data', `dir ${folder}`)
      .replace('6380', String(port));
    writeFileSync(join(folder, 'users.acl'), read('fleet/users.acl'));
    writeFileSync(join(folder, 'redis.conf'), `${config}\nbind 127.0.0.1\n`);
    const stop = await startRedisWith(folder, 'redis.conf');
    try {
      const at = (password: string) => `rediss://cca:${password}@localhost:${port}`;
      const untrusted = await user.run('fleet', 'init', '--redis', at('PASSWORD'));
      expect([untrusted.code, untrusted.stderr.includes('--ca')]).toEqual([2, true]);
      const options = ['--redis', at('PASSWORD'), '--ca', crt];
      const { code, stdout, stderr } = await user.run('fleet', 'init', ...options);
      expect([code, stderr.includes('ACL SETUSER')]).toEqual([0, false]);
      expect(expectOk(parseJoinLine(stdout))).toMatchObject({ redis: at('PASSWORD'), ca: readFileSync(crt, 'utf8') });
      expect(await user.json('host', 'list')).toEqual({ hosts: [] });
      const wrong = await user.run('fleet', 'init', '--redis', at('wrong'), '--ca', crt);
      expect([wrong.code, wrong.stderr.includes('refuses the user or the password')]).toEqual([2, true]);
    } finally {
      await stop();
      user.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
