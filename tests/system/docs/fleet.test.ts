/**
 * Promises: each entry of docs/fleet-security.md has a test. The files in docs/fleet match what
 * the program writes and requires, and a Redis with that configuration serves a fleet over TLS. Not covered: docker and
 * systemd themselves.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { unitText } from '../../../src/app/fleet/agent-service.ts';
import { parseJoinLine } from '../../../src/fleet/join-line.ts';
import { User } from '../../support/cli/user.ts';
import { packageRoot } from '../../support/cli.ts';
import { isThere } from '../../support/named-tests.ts';
import { freePort, hasRedis, startRedisWith } from '../../support/redis-server.ts';
import { unwrap } from '../../support/system/rig.ts';

const read = (name: string) => readFileSync(join(packageRoot, 'docs', name), 'utf8');
const attackers = (/\n## Who can do what\n([\s\S]*?)\n## Known limits/.exec(read('fleet-security.md'))?.[1] ?? '')
  .split('\n### ')
  .slice(1)
  .map((section) => section.split('\n'));
/** Attacker and entry, as in "A host cannot replay an order". */
const entries = attackers.flatMap(([who, ...lines]) => {
  let verb = '';
  return lines.flatMap((line) => {
    verb = /^It (can|cannot):$/.exec(line)?.[1] ?? verb;
    return line.startsWith('- ') ? [`${who} ${verb} ${line.slice(2)}`] : [];
  });
});

/** The test of each entry: its file, and how its name begins. */
const testOf: Readonly<Record<string, readonly [file: string, begin: string]>> = {
  'A client without a password cannot send anything': ['system/fleet/rights', 'a client with %s'],
  'A client with the password of Redis can delete, delay or repeat messages': [
    'system/fleet/rights',
    'a password alone reads',
  ],
  'A client with the password of Redis can occupy slots': ['system/fleet/security', 'a password alone can take slots'],
  'A client with the password of Redis can start a session a second time elsewhere': [
    'system/fleet/security',
    'a password alone can take slots',
  ],
  'A client with the password of Redis cannot read or forge code, prompts or results': [
    'system/fleet/rights',
    'a password alone reads',
  ],
  'A client with the password of Redis cannot make a host start anything': [
    'system/fleet/agent',
    'an order without an accepted',
  ],
  'A client with the password of Redis cannot pose as a host': ['system/fleet/registry', 'a forged entry'],
  'A client with the password of Redis cannot reach other keys or settings of that Redis': [
    'system/fleet/rights',
    "the fleet's password alone",
  ],
  'A host can do all of the above': ['system/fleet/rights', 'a password alone reads'],
  'A host can read what is sent to other hosts': ['system/fleet/security', 'a host can read'],
  'A host can report false results and costs, also for sessions of other hosts': [
    'system/fleet/security',
    'a host can answer',
  ],
  'A host can use the logins that it holds': ['system/cli/fleet-hosts', 'a group runs on an added host'],
  'A host cannot make another host start anything': ['system/fleet/security', 'a host cannot give'],
  'A host cannot replay an order': ['system/fleet/security', 'a recorded order'],
  'A host cannot exchange the files of an order': ['system/fleet/security', 'the content of an order'],
  'A host cannot change settings, hooks, tools or prompts of claude on your machine': [
    'unit/fleet/hostile-host',
    'the conversation comes',
  ],
  'A host cannot change other branches, tags or the configuration of the repository': [
    'unit/fleet/hostile-host',
    'that come with refs',
  ],
  'A host cannot write into `.git`, or outside the worktree': ['unit/fleet/hostile-host', 'with a folder .git'],
  'A host cannot pass options to git': ['unit/fleet/hostile-host', 'a commit with'],
  'A host cannot send escape codes to your terminal or commands to your shell': [
    'system/cli/fleet',
    'stolen entries inject',
  ],
  'A host cannot fill the log of a group': ['unit/fleet/hostile-host', 'of what a host'],
  'A host cannot get your logins or those of other hosts': ['system/cli/fleet-hosts', 'a group runs on an added host'],
  'A host cannot read a login that you typed while attached': ['unit/fleet/pack', 'what a person'],
  'A session on a host can do all that a host can': ['system/fleet/security', 'a user who'],
  'A session on a host can read what the user of the agent can': ['system/fleet/security', 'a user who'],
  'A person with a join line can do all that a host can': ['unit/fleet/files', 'says all'],
  'A person with a join line cannot run groups': ['unit/fleet/files', 'says all'],
  'A runner can run commands on hosts': ['system/fleet/security', 'a user who'],
  'A runner can read what the user of the agent can': ['system/fleet/security', 'a user who'],
  'A runner cannot write outside the folders of its sessions': ['system/fleet/agent', 'an archive that leads'],
  'A runner cannot start one attempt twice, or without a slot': ['system/fleet/agent', 'a second order'],
  'A runner cannot give orders in the name of another group': ['system/fleet/security', 'an order for another group'],
  'Another user of a host cannot read keys or logins': ['unit/fleet/files', 'are read as'],
  'Another user of a host cannot plant keys': ['unit/fleet/files', 'that others have'],
};

test('fleet security covers every relevant attacker', () => {
  expect(attackers.map(([who]) => who)).toEqual([
    'A client without a password',
    'A client with the password of Redis',
    'A host',
    'A session on a host',
    'A person with a join line',
    'A runner',
    'Another user of a host',
  ]);
});

test('every entry of fleet security has a test, and no test is left over', () => {
  expect(entries.toSorted()).toEqual(Object.keys(testOf).toSorted());
  const gone = Object.entries(testOf).filter(([, [file, begin]]) => !isThere({ file: `tests/${file}.test.ts`, begin }));
  expect(gone).toEqual([]);
});

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
      expect(unwrap(parseJoinLine(stdout))).toMatchObject({ redis: at('PASSWORD'), ca: readFileSync(crt, 'utf8') });
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
