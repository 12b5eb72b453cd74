/** Promises: a host is known by its own entry only, and entries inserted by others are ignored. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FleetRedis } from '../../../src/fleet/redis.ts';
import { drainHost, forgetHost, listHosts, registerHost, resumeHost } from '../../../src/fleet/registry.ts';
import { newFleetKeys, Seal } from '../../../src/fleet/seal.ts';
import type { HostEntry } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let redis: FleetRedis;

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path);
    redis = expectOk(await FleetRedis.open(world, { redis: server.url, sealingKey: newFleetKeys().sealingKey }));
  });
  afterAll(async () => {
    redis.close();
    await server.kill();
    temp.remove();
  });

  const entry = async (name: string): Promise<HostEntry> => {
    const seenAt = expectOk(await redis.nowMs());
    const abilities = { wire: 1, version: '1.2.3', claudeVersion: '2.1.331' };
    const state = { since: seenAt - 1_000, seenAt, isGuarded: true, leaseMs: 8_000 };
    return { name, labels: ['gpu'], slots: 4, used: 1, abilities, ...state };
  };

  test('all hosts are listed by name, each with the time since its last sign of life', async () => {
    const [b, a] = [await entry('b'), await entry('a')];
    expectOk(await registerHost(redis, { ...b, seenAt: b.seenAt - 60_000 }));
    expectOk(await registerHost(redis, a));
    const hosts = expectOk(await listHosts(redis));
    expect(hosts.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(hosts[0]).toMatchObject(a);
    expect(hosts[1]?.silentMs).toBeGreaterThanOrEqual(60_000);
    expect((await redis.client.hgetBuffer('cca:hosts', 'a'))?.includes('team-a')).toBe(false);
  });

  test('a forged entry, or one moved to another name, is ignored', async () => {
    expectOk(await registerHost(redis, await entry('a')));
    await redis.client.hset('cca:hosts', 'c', (await redis.client.hgetBuffer('cca:hosts', 'a')) ?? '');
    // A host's complete entry, but unsealed, or sealed with another key, or for another name.
    const made = Buffer.from(JSON.stringify(await entry('d')));
    const strangers = new Seal(newFleetKeys().sealingKey, world.random);
    for (const bytes of [made, strangers.seal('cca:hosts/d', made), redis.seal.seal('cca:hosts/a', made)]) {
      await redis.client.hset('cca:hosts', 'd', Buffer.from(bytes));
      expect(expectOk(await listHosts(redis)).map(({ name }) => name)).toEqual(['a', 'b']);
    }
  });

  const isDrained = async (name: string) =>
    expectOk(await listHosts(redis)).some((host) => host.name === name && host.isDrained);

  test('a host is drained, resumed and forgotten', async () => {
    expectOk(await registerHost(redis, await entry('e')));
    expectOk(await drainHost(redis, 'e'));
    expect(await isDrained('e')).toBe(true);
    expectOk(await resumeHost(redis, 'e'));
    expect(await isDrained('e')).toBe(false);
    expectOk(await drainHost(redis, 'e'));
    expectOk(await redis.send('cca:h:e', [Buffer.from('hello')]));
    expectOk(await forgetHost(redis, 'e'));
    expect(await isDrained('e')).toBe(false);
    expect(expectOk(await listHosts(redis)).map(({ name }) => name)).not.toContain('e');
    expect(await redis.client.exists('cca:h:e')).toBe(0);
  });
});
