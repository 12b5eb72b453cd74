/**
 * Promises: with the user of docs/fleet/users.acl, a fleet can do everything it needs in Redis. A stolen password
 * reaches no other key, reads nothing that is sent, and forges nothing. Not covered: deleting the fleet's keys, which
 * it can.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Result } from '../../../src/core/failure.ts';
import { FleetRedis, toHostStream } from '../../../src/fleet/redis.ts';
import { drainHost, forgetHost, listHosts, registerHost, resumeHost } from '../../../src/fleet/registry.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { packageRoot } from '../../../src/system/own-program.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
const { sealingKey } = newFleetKeys();

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let admin: FleetRedis;
  const opened: FleetRedis[] = [];

  async function as(user: string, password: string, key = sealingKey): Promise<FleetRedis> {
    const url = server.url.replace('//', `//${user}:${password}@`);
    const redis = expectOk(await FleetRedis.open(world, { redis: url, sealingKey: key }));
    opened.push(redis);
    return redis;
  }

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path);
    admin = expectOk(await FleetRedis.open(world, { redis: server.url, sealingKey }));
    opened.push(admin);
    const users = readFileSync(join(packageRoot, 'docs', 'fleet', 'users.acl'), 'utf8');
    const [, ...words] = (users.split('\n')[1] ?? '').replace('PASSWORD', 'password').split(' ');
    expect(expectOk(await admin.ask((redis) => redis.call('ACL', 'SETUSER', ...words)))).toBe('OK');
    await admin.client.set('theirs', 'of another program');
    // From here on a user name is required.
    await admin.client.call('ACL', 'SETUSER', 'admin', 'on', '>admin', '~*', '&*', '+@all');
    await admin.client.config('SET', 'requirepass', 'nobody-knows');
  });
  afterAll(async () => {
    for (const redis of opened) redis.close();
    await server.kill();
    temp.remove();
  });

  test('the user of a fleet can do all that a fleet does', async () => {
    const redis = await as('cca', 'password');
    expect(expectOk(await redis.health()).version).not.toBe('');

    const leases = redis.leases(8_000);
    const lease = { host: 'gpu1', token: 'token' };
    expect(expectOk(await leases.take(lease, 1))).toBe(true);
    expect(expectOk(await leases.renew([lease])).size).toBe(0);
    expect(expectOk(await leases.look([lease]))[0]).toBeGreaterThan(0);
    expectOk(await leases.free(lease));

    const stream = toHostStream('gpu1');
    const [id = ''] = expectOk(await redis.send(stream, [Buffer.from('hello')]));
    const [entry] = expectOk(await redis.read(stream, '0'));
    expect(Buffer.from(entry?.bytes ?? []).toString()).toBe('hello');
    expectOk(await redis.drop(stream, [id]));
    const blob = expectOk(await redis.putBlob('blob', Buffer.from('bytes')));
    expect(Buffer.from(expectOk(await redis.getBlob(blob))).toString()).toBe('bytes');
    await redis.dropBlob(blob);

    expectOk(await registerHost(redis, entryOf('gpu1', expectOk(await redis.nowMs()))));
    for (const act of [drainHost, resumeHost, forgetHost]) expectOk(await act(redis, 'gpu1'));
  });

  test("the fleet's password alone reaches no other key", async () => {
    const thief = await as('cca', 'password');
    const refused: readonly string[][] = [
      ['GET', 'theirs'],
      ['SET', 'ours', 'x'],
      ['DEL', 'theirs'],
      ['EVAL', "return redis.call('GET', 'theirs')", '0'],
      ['KEYS', '*'],
      ['FLUSHALL'],
      ['CONFIG', 'GET', '*'],
      ['CONFIG', 'SET', 'dir', '/'],
      ['ACL', 'LIST'],
      ['SHUTDOWN'],
      ['SAVE'],
      ['MONITOR'],
      ['CLIENT', 'LIST'],
      ['CLIENT', 'KILL', 'TYPE', 'normal'],
      ['REPLICAOF', 'NO', 'ONE'],
      ['MIGRATE', '127.0.0.1', '1', 'theirs', '0', '10'],
      ['PUBLISH', 'theirs', 'x'],
    ];
    for (const [command = '', ...words] of refused) {
      const error = await thief.client.call(command, ...words).then(
        (answer) => `answered ${answer}`,
        (thrown: Error) => thrown.message,
      );
      expect([command, ...words, error]).toEqual([
        command,
        ...words,
        expect.stringMatching(/NOPERM|permission|can't access/),
      ]);
    }
    expect(await (await as('admin', 'admin')).client.get('theirs')).toBe('of another program');
  });

  test('a password alone reads nothing that is sent, and its forged entries are ignored', async () => {
    const [owner, thief] = [await as('cca', 'password'), await as('cca', 'password', newFleetKeys().sealingKey)];
    const secret = 'ANTHROPIC_API_KEY in a prompt';
    const stream = toHostStream('gpu2');
    expectOk(await owner.send(stream, [Buffer.from(secret)]));
    const blob = expectOk(await owner.putBlob('secret', Buffer.from(secret)));
    expectOk(await registerHost(owner, entryOf('gpu2', expectOk(await owner.nowMs()))));
    expect(expectOk(await thief.read(stream, '0')).map(({ bytes }) => bytes)).toEqual([null]);
    expect((await thief.getBlob(blob)).ok).toBe(false);
    expect(expectOk(await listHosts(thief))).toEqual([]);
    const seen = await allValues(thief);
    expect(seen.length).toBeGreaterThan(2);
    for (const value of seen) expect(value).not.toContain('ANTHROPIC');
    expect(seen.join()).not.toContain('team-a');

    expectOk(await thief.send(stream, [Buffer.from('do something')]));
    expectOk(await registerHost(thief, entryOf('gpu3', expectOk(await thief.nowMs()))));
    expect(expectOk(await owner.read(stream, '0')).map(({ bytes }) => bytes !== null)).toEqual([true, false]);
    expect(expectOk(await listHosts(owner)).map(({ name }) => name)).toEqual(['gpu2']);
  });

  test.each([
    ['no user', () => server.url],
    ['a wrong password', () => server.url.replace('//', '//cca:wrong@')],
  ])('a client with %s is refused', async (_, url) => {
    const redis = expectOk(await FleetRedis.open(world, { redis: url(), sealingKey }));
    opened.push(redis);
    const asked: Result<unknown> = await redis.health();
    expect(asked.ok ? '' : asked.failure.message).toContain('refuses the user or the password');
  });

  async function allValues(redis: FleetRedis): Promise<string[]> {
    const [, keys] = await redis.client.scan(0, 'MATCH', 'cca:*', 'COUNT', 10_000);
    return Promise.all(
      keys.map(async (key) => {
        const type = await redis.client.type(key);
        if (type === 'string') return String(await redis.client.get(key));
        if (type === 'hash') return JSON.stringify(await redis.client.hgetall(key));
        return type === 'stream' ? JSON.stringify(await redis.client.xrange(key, '-', '+')) : '';
      }),
    );
  }

  function entryOf(name: string, nowMs: number): Parameters<typeof registerHost>[1] {
    const abilities = { wire: 1, version: '1.2.3', claudeVersion: '2.1.331' };
    const state = { since: nowMs, seenAt: nowMs, isGuarded: true, leaseMs: 8_000 };
    return { name, labels: [], slots: 1, used: 0, abilities, ...state };
  }
});
