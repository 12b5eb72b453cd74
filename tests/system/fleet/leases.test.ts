/** Promises: a slot of a host is taken once, and its lease needs its token. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FleetRedis, type SlotLeases } from '../../../src/fleet/redis.ts';
import { drainHost, resumeHost } from '../../../src/fleet/registry.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
const { sealingKey } = newFleetKeys();

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let redis: FleetRedis;
  let leases: SlotLeases;

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path);
    redis = expectOk(await FleetRedis.open(world, { redis: server.url, sealingKey }));
    leases = redis.leases(60_000);
  });
  afterAll(async () => {
    redis.close();
    await server.kill();
    temp.remove();
  });

  test("a host's slots are taken once each, up to their number, and none of a drained host", async () => {
    for (const token of ['a', 'b']) expect(expectOk(await leases.take({ host: 'one', token }, 2))).toBe(true);
    expect(expectOk(await leases.take({ host: 'one', token: 'c' }, 2))).toBe(false);
    expect(expectOk(await leases.take({ host: 'two', token: 'c' }, 2))).toBe(true);
    expectOk(await leases.free({ host: 'one', token: 'a' }));
    expectOk(await drainHost(redis, 'one'));
    expect(expectOk(await leases.take({ host: 'one', token: 'd' }, 2))).toBe(false);
    expectOk(await resumeHost(redis, 'one'));
    expect(expectOk(await leases.take({ host: 'one', token: 'd' }, 2))).toBe(true);
    for (const token of ['b', 'd']) expectOk(await leases.free({ host: 'one', token }));
    expectOk(await leases.free({ host: 'two', token: 'c' }));
    expect(await redis.client.keys('cca:s:*')).toEqual([]);
  });

  test('a lease is renewed only with its token, also by another process that knows it', async () => {
    const lease = { host: 'one', token: 'a' };
    expectOk(await leases.take(lease, 1));
    expect(expectOk(await leases.look([lease]))[0]).toBeLessThanOrEqual(60_000);
    const stranger = { host: 'one', token: 'b' };
    expect(expectOk(await redis.leases(60_000).renew([lease, stranger]))).toEqual(new Set([stranger]));
    const [left, none] = expectOk(await leases.look([lease, stranger]));
    expect(left).toBeGreaterThan(50_000);
    expect(none).toBeNull();
    expectOk(await leases.free(lease));
    expect(expectOk(await leases.renew([lease]))).toEqual(new Set([lease]));
  });

  test('an expired lease cannot be renewed, and its slot is free', async () => {
    const lease = { host: 'one', token: 'a' };
    expectOk(await redis.leases(30).take(lease, 1));
    while (expectOk(await leases.look([lease]))[0] !== null) await Bun.sleep(5);
    expect(expectOk(await leases.renew([lease]))).toEqual(new Set([lease]));
    const next = { host: 'one', token: 'b' };
    expect(expectOk(await leases.take(next, 1))).toBe(true);
    expectOk(await leases.free(next));
  });

  test('without an answer of Redis the state is unknown, and later everything continues', async () => {
    const lease = { host: 'one', token: 'a' };
    expectOk(await leases.take(lease, 1));
    await server.kill();
    const renewed = await leases.renew([lease]);
    expect(renewed.ok ? '' : renewed.failure.reason).toBe('timeout');
    expect((await leases.take({ host: 'one', token: 'b' }, 1)).ok).toBe(false);
    const connected = Promise.withResolvers<void>();
    redis.onConnect(connected.resolve);
    await server.restart();
    await connected.promise;
    // It had kept nothing.
    expect(expectOk(await leases.renew([lease]))).toEqual(new Set([lease]));
    expect(expectOk(await leases.take({ host: 'one', token: 'b' }, 1))).toBe(true);
  });
});
