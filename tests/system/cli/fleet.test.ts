/**
 * Promises: `fleet init` accepts only a Redis that loses nothing, names what to change otherwise, and prints only the
 * join line; repeated, it keeps the keys. Hosts are listed and drained by name, and doctor has a fix for each of their
 * problems. Hosts are simulated by their entries in Redis. Not covered: agents (fleet-hosts.test.ts), other versions of
 * Redis.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJoinLine } from '../../../src/fleet/fleet-files.ts';
import { FleetRedis } from '../../../src/fleet/redis.ts';
import { drainHost, registerHost, resumeHost } from '../../../src/fleet/registry.ts';
import { type HostEntry, wireVersion } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { User } from '../../support/cli/user.ts';
import { Repository } from '../../support/git/repository.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { expectOk } from '../../support/system/rig.ts';
import { noteTried } from '../../support/tried.ts';

const world = createRealWorld();

let user: User;

beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

describe('without a fleet', () => {
  test.each(['fleet join-line', 'host list', 'host drain a', 'host forget a', 'doctor --hosts'])('%s', async (line) => {
    const { code, stdout, stderr } = await user.run(...line.split(' '));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      'claude-code-agent: There is no fleet in this data folder. ' +
        'Create one with: claude-code-agent fleet init --redis URL\n',
    );
  });

  test.each([
    [['--redis', 'localhost'], 'begins with rediss:// or redis://'],
    [['--redis', 'redis://redis.example.org:6379'], 'does not encrypt'],
    [['--redis', 'redis://127.0.0.1:1'], 'refuses the connection'],
    [['--redis', 'redis://127.0.0.1:1', '--ca', 'none.pem'], 'does not exist'],
    [['--redis', 'redis://127.0.0.1:1', '--lease', '1'], 'whole number from 2 to 3600'],
    [[], 'A fleet needs a Redis server'],
  ])('fleet init %j creates nothing', async (options, said) => {
    const { code, stdout, stderr } = await user.run('fleet', 'init', ...options);
    expect(code).toBeOneOf([1, 2]);
    expect(stdout).toBe('');
    expect(stderr).toContain(said);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(existsSync(join(user.data, 'fleet'))).toBe(false);
  });

  test('host serve reports that this host has joined no fleet', async () => {
    const { code, stderr } = await user.run('host', 'serve', '--json');
    expect([code, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toContain('This host belongs to no fleet.');
  });

  test('an invalid join line, name, label, slot or login creates nothing', async () => {
    for (const [options, said] of [
      [['cca-join:x'], 'not a complete join line'],
      [['cca-join:x', '--slots', '0'], 'whole number from 1 to 1000'],
    ] as const) {
      const { code, stderr } = await user.run('host', 'join', ...options);
      expect([code, stderr.trim().split('\n').length]).toEqual([2, 1]);
      expect(stderr).toContain(said);
    }
    const piped = await user.runWith({ stdin: 'nothing of the kind\n' }, 'host', 'join', '-');
    expect(piped.stderr).toContain('not a complete join line');
    expect(existsSync(join(user.data, 'fleet'))).toBe(false);
  });
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  let server: RedisServer;
  let place: User;

  beforeAll(async () => {
    place = new User();
    server = await startRedis(place.folder, ['appendonly yes']);
  });
  afterAll(async () => {
    await server.kill();
    place.remove();
  });

  const init = (...more: string[]) => user.run('fleet', 'init', '--redis', server.url, ...more);
  const fleetFile = () => join(user.data, 'fleet', 'fleet.json');

  test('fleet init prints only the join line, and says when hosts must join again', async () => {
    const { code, stdout, stderr } = await init('--lease', '8');
    expect(code).toBe(0);
    const ticket = expectOk(parseJoinLine(stdout));
    expect(stdout.trim().split('\n')).toHaveLength(1);
    expect(ticket).toMatchObject({ redis: server.url, leaseMs: 8_000 });
    expect(statSync(fleetFile()).mode & 0o777).toBe(0o600);
    const { signingKey, sealingKey } = JSON.parse(readFileSync(fleetFile(), 'utf8'));
    expect(stderr).not.toContain(signingKey);
    expect(stderr).not.toContain(sealingKey);
    expect(await user.ok('fleet', 'join-line')).toBe(stdout.trim());
    expect(await user.json('fleet', 'join-line')).toEqual({ joinLine: stdout.trim() });
    expect((await init()).stderr).not.toContain('join again');
    expect((await init('--lease', '9')).stderr).toContain('hosts that have joined must join again');
  });

  test.each([
    ['appendonly', 'no', 'yes', 'appendonly yes'],
    ['maxmemory-policy', 'allkeys-lru', 'noeviction', 'maxmemory-policy noeviction'],
  ])('a Redis with %s %s is refused with its fix', async (name, wrong, right, cure) => {
    const redis = expectOk(
      await FleetRedis.open(world, { redis: server.url, sealingKey: Buffer.alloc(32).toString('base64') }),
    );
    try {
      await redis.client.config('SET', name, wrong);
      const { code, stdout, stderr } = await init();
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain(cure);
      expect(existsSync(fleetFile())).toBe(false);
      await redis.client.config('SET', name, right);
      expect((await init()).code).toBe(0);
    } finally {
      await redis.client.config('SET', name, right);
      redis.close();
    }
  });

  describe('hosts', () => {
    let redis: FleetRedis;
    const otherVersion = { wire: wireVersion + 1, version: '9.9.9', claudeVersion: '2.1.331' };

    beforeEach(async () => {
      const { sealingKey } = expectOk(parseJoinLine((await init('--lease', '8')).stdout));
      redis = expectOk(await FleetRedis.open(world, { redis: server.url, sealingKey }));
      await redis.client.flushall();
    });
    afterEach(() => redis.close());

    async function says(name: string, more: Partial<HostEntry> = {}, silentMs = 0): Promise<void> {
      const seenAt = expectOk(await redis.nowMs()) - silentMs;
      const abilities = { wire: wireVersion, version: '1.2.3', claudeVersion: '2.1.331' };
      const state = { since: seenAt - 60_000, seenAt, isGuarded: true, leaseMs: 8_000 };
      const has = {
        labels: ['gpu'],
        slots: 4,
        used: 1,
        abilities,
        freeDiskBytes: 50_000_000_000,
        login: 'team-a',
      };
      expectOk(await registerHost(redis, { name, ...has, ...state, ...more }));
    }

    test('are none at first', async () => {
      expect(await user.run('host', 'list')).toMatchObject({
        code: 0,
        stderr: 'No host has joined. Add one with: claude-code-agent host add NAME --ssh USER@HOST\n',
      });
      expect(await user.json('host', 'list')).toEqual({ hosts: [] });
      const { code, stderr } = await user.run('host', 'drain', 'gpu1');
      expect([code, stderr.includes('There is no host "gpu1"')]).toEqual([2, true]);
    });

    test('a session for an unknown host is refused with the nearest name', async () => {
      const group = await user.ok('group', 'create', 'auth');
      const add = (...more: string[]) =>
        user.run('session', 'add', group, '--project', user.project('api'), '--prompt', 'Do it.', ...more);
      expect(await add('--host', 'gpu1')).toMatchObject({ code: 2, stdout: '' });
      await says('gpu1');
      await says('mac');
      const refused = 'There is no host "gup1" in the fleet. Did you mean gpu1? There are: gpu1, mac.';
      for (const { code, stderr } of [
        await add('--host', 'gup1'),
        await add('--host', 'gpu1', '--name', 'api').then(() =>
          user.run('session', 'edit', `${group}/api`, '--host', 'gup1'),
        ),
      ])
        expect([code, stderr.trim()]).toEqual([2, `claude-code-agent: ${refused}`]);
      const { sessions } = await user.json<{ sessions: { name: string }[] }>('group', 'show', group);
      expect(sessions).toMatchObject([{ name: 'api' }]);
      // The run tells of a Redis that does not answer.
      user.env.CLAUDE_CODE_AGENT_FLEET = 'redis://127.0.0.1:1';
      expect((await add('--host', 'gup1')).code).toBe(0);
    });

    test('are listed with their properties and states', async () => {
      await says('gpu1');
      await says('old', {}, 61_000);
      await says('quiet', {}, 6_000);
      await says('open', { isGuarded: false, used: 4, labels: [] });
      const table = await user.ok('host', 'list');
      expect(table.split('\n')).toHaveLength(5);
      expect(table).toMatch(/^HOST +STATE +USED +FREE +LOGIN +VERSION +CLAUDE +SEEN +LABELS$/m);
      expect(table).toMatch(/^gpu1 +ready +1 +3 +team-a +1\.2\.3 +2\.1\.331 +\d+s +gpu$/m);
      expect(table).toMatch(/^old +lost /m);
      expect(table).toMatch(/^quiet +silent .* ([6-9]|[1-5]\d)s +gpu$/m);
      expect(table).toMatch(/^open +unguarded +4 +0 /m);
      await says('untold', { refusal: 'claude 2.1.331 was tried.' });
      const listed = await user.run('host', 'list');
      expect(listed.stdout).toMatch(/^untold +refusing /m);
      expect(listed.stderr).toBe('untold: claude 2.1.331 was tried.\n');
      await says('untold', { abilities: otherVersion });
      const other = await user.run('host', 'list');
      expect(other.stdout).toMatch(/^untold +refusing .* 9\.9\.9 /m);
      expect(other.stderr).toStartWith('untold: Its claude-code-agent is incompatible with this one. See: ');
      await says('untold', { loginWarning: 'Not logged in.' });
      expect((await user.run('host', 'list')).stderr).toBe(
        'untold: Sessions may fail there, because its login cannot be used. Not logged in.\n',
      );
      const { hosts } = await user.json<{ hosts: Record<string, unknown>[] }>('host', 'list');
      expect(hosts[0]).toMatchObject({ name: 'gpu1', state: 'ready', slots: 4, used: 1, free: 3, labels: ['gpu'] });
    });

    test('stolen entries inject no escape codes or shell text, and hide no other host', async () => {
      await says('gpu1');
      const evil = '\u001b[2J\u001b]0;owned\u0007\u009b1m\n::error::\u202e; touch owned';
      const abilities = { wire: wireVersion, version: evil, claudeVersion: evil };
      await says('gpu2', { abilities, loginWarning: evil, login: evil, refusal: evil });
      await says('gpu3', { since: 9_000_000_000_000_000 });
      for (const words of [
        ['host', 'list'],
        ['host', 'list', '--json'],
        ['doctor', '--hosts'],
        ['doctor', '--hosts', '--json'],
      ]) {
        const { code, stdout, stderr } = await user.run(...words);
        expect([words, code]).toEqual([words, words[0] === 'doctor' ? 1 : 0]);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them is to be there.
        expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]|^::/m);
        expect(stdout).toContain('gpu1');
        expect(stdout).toContain('gpu2');
        expect(stdout).not.toContain('gpu3');
      }
      // The text to be typed contains none of it.
      const { stdout } = await user.run('doctor', '--hosts');
      expect(stdout).not.toContain('--accept-claude');
      expect(stdout).toContain('--login NAME');
    });

    describe('when no host has what a session requires', () => {
      let group: string;

      beforeEach(async () => {
        const { claudeVersion } = await claudeHere();
        expect(claudeVersion).not.toBe('');
        noteTried(user.data, user.env.CLAUDE_CODE_AGENT_CLAUDE ?? '');
        const project = new Repository(user.project('app'));
        project.commit({ 'a.txt': 'a\n' });
        group = await user.ok('group', 'create', 'labels');
        const session = ['--project', project.folder, '--prompt', 'x', '--isolate', 'worktree'];
        await user.ok('session', 'add', group, ...session, '--name', 'train', '--requires', 'tpu');
        await user.ok('session', 'add', group, ...session, '--name', 'serve', '--requires', 'tpu');
      });
      const lack =
        'Session 001 train is to work on a host with tpu, as 1 more: no host of the fleet has that; the labels ' +
        'there are: gpu. Add one that has it with: claude-code-agent host add NAME --ssh USER@HOST --label tpu';

      test('group plan says so, with the state of the hosts that would fit', async () => {
        expect(await user.run('group', 'plan', group)).toMatchObject({
          stdout: expect.stringContaining('no host has joined the fleet. Add one with: claude-code-agent host add'),
        });
        await says('gpu1');
        expect(await user.run('group', 'plan', group)).toMatchObject({
          stdout: expect.stringContaining(`  ${lack}\n`),
        });
        const { stdout } = await user.run('group', 'plan', group, '--json');
        expect(JSON.parse(stdout)).toMatchObject({ warnings: [lack] });
        await says('tpu1', { labels: ['tpu'] });
        expectOk(await drainHost(redis, 'tpu1'));
        expect((await user.run('group', 'plan', group)).stdout).toContain(
          'tpu1 is drained. Resume it with: claude-code-agent host resume tpu1',
        );
        expectOk(await resumeHost(redis, 'tpu1'));
        expect((await user.run('group', 'plan', group)).stdout).not.toContain('Would wait');
        await says('tpu1', { labels: ['tpu'], abilities: otherVersion });
        expect((await user.run('group', 'plan', group)).stdout).toContain(
          'the claude-code-agent of tpu1 is incompatible with this one. Install this version there with: ' +
            'claude-code-agent host add tpu1 --ssh USER@HOST',
        );
      });
    });

    test('a plan and a workflow for the fleet need no login here', async () => {
      await claudeHere();
      noteTried(user.data, user.env.CLAUDE_CODE_AGENT_CLAUDE ?? '');
      new Repository(user.project('app')).commit({ 'a.txt': 'a\n' });
      const workflow = join(user.folder, 'flow.yaml');
      const session = `{ project: ${JSON.stringify(user.project('app'))}, prompt: x, isolate: worktree }`;
      writeFileSync(workflow, `version: 1\ngroup: { where: fleet }\nsessions:\n  one: ${session}\n`);
      const group = await user.ok('run', workflow, '--detach');
      await user.ok('group', 'pause', group);
      expect((await user.run('group', 'plan', group)).stdout).not.toContain('Missing');
    });

    test('are drained and resumed by name', async () => {
      await says('gpu1');
      expect(await user.ok('host', 'drain', 'gpu1')).toBe(
        'gpu1 takes no more sessions; it finishes 1 session. Undo it with: ' + 'claude-code-agent host resume gpu1',
      );
      expect(await user.ok('host', 'list')).toMatch(/^gpu1 +draining/m);
      expect(await user.json('host', 'resume', 'gpu1')).toEqual({ host: 'gpu1', draining: false });
      expect(await user.ok('host', 'list')).toMatch(/^gpu1 +ready/m);
    });

    test('are forgotten after a confirmation only', async () => {
      await says('gpu1');
      const asked = await user.run('host', 'forget', 'gpu1');
      expect(asked.code).toBe(2);
      expect(asked.stderr).toContain('Remove gpu1 from the fleet, waiting for 1 session there?');
      expect(await user.ok('host', 'list')).toContain('gpu1');
      const forgotten = await user.run('host', 'forget', 'gpu1', '--now', '--yes', '--json');
      expect(JSON.parse(forgotten.stdout)).toEqual({ host: 'gpu1', booked: [] });
      expect(forgotten.stderr).toContain('gpu1 joined by itself and returns while its agent runs. Remove it on');
      expect(await user.json('host', 'list')).toEqual({ hosts: [] });
    });

    test.each<[string, Partial<HostEntry>, number, string]>([
      ['lost', {}, 61_000, 'no heartbeat for 1m'],
      ['silent', {}, 6_000, 'no heartbeat for 6s, so it gets no sessions'],
      ['unguarded', { isGuarded: false }, 0, 'its guard does not run'],
      ['other-lease', { leaseMs: 90_000 }, 0, 'a lease of 1m 30s, but the fleet has 8s'],
      ['full', { freeDiskBytes: 10_000_000 }, 0, 'only 9 MiB are free'],
      ['stuffed', { freeDiskBytes: 400_000_000, isFull: true }, 0, 'on its disk, so it gets no sessions'],
      ['refusing', { refusal: 'claude 2.1.331 was tried.' }, 0, 'it gets no sessions. claude 2.1.331 was tried.'],
      ['no-key', { loginWarning: 'Bad.' }, 0, 'its login cannot be used. Bad.'],
      ['other-version', { abilities: otherVersion }, 0, 'its claude-code-agent 9.9.9 is incompatible'],
      ['busy', { used: 4 }, 0, 'all of its 4 slots are in use'],
    ])('that are %s are reported by doctor with a fix', async (name, more, silentMs, said) => {
      await says(name, more, silentMs);
      const { stdout } = await user.run('doctor', '--hosts', '--json');
      const { checks } = JSON.parse(stdout) as { checks: { message: string; level: string; next: string }[] };
      const finding = checks.find(({ message }) => message.includes(said));
      expect(finding?.message).toStartWith(`${name}: `);
      expect(finding?.level).not.toBe('ok');
      expect(finding?.next).not.toBe('');
    });

    test('healthy hosts get one line each', async () => {
      await says('gpu1', { abilities: { ...(await claudeHere()) } });
      const { code, stdout } = await user.run('doctor', '--hosts');
      expect(stdout).toMatch(/^ok +redis +Redis \d/m);
      expect(stdout).toMatch(/^ok +host +gpu1: 3 of 4 slots free/m);
      expect(code).toBe(0);
    });
  });

  /** As this host would report it. */
  async function claudeHere(): Promise<HostEntry['abilities']> {
    mkdirSync(join(user.folder, 'bin'));
    const claude = join(user.folder, 'bin', 'claude');
    writeFileSync(claude, '#!/bin/sh\necho "2.1.331 (Claude Code)"\n', { mode: 0o755 });
    user.env.CLAUDE_CODE_AGENT_CLAUDE = claude;
    return { wire: wireVersion, version: '1.2.3', claudeVersion: '2.1.331' };
  }
});
