/** Promises: a slot of a host is taken once, and its lease needs its token. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FleetRedis, Leases } from '../../../src/fleet/redis.ts';
import { drainHost, resumeHost } from '../../../src/fleet/registry.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { makeTempFolder, unwrap } from '../../support/system/rig.ts';

const world = createRealWorld();
const { sealingKey } = newFleetKeys();

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let redis: FleetRedis;
  let leases: Leases;

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path);
    redis = unwrap(await FleetRedis.open(world, { redis: server.url, sealingKey }));
    leases = new Leases(redis, 60_000);
  });
  afterAll(async () => {
    redis.close();
    await server.kill();
    temp.remove();
  });

  test("a host's slots are taken once each, up to their number, and none of a drained host", async () => {
    for (const token of ['a', 'b']) expect(unwrap(await leases.take({ host: 'one', token }, 2))).toBe(true);
    expect(unwrap(await leases.take({ host: 'one', token: 'c' }, 2))).toBe(false);
    expect(unwrap(await leases.take({ host: 'two', token: 'c' }, 2))).toBe(true);
    unwrap(await leases.free({ host: 'one', token: 'a' }));
    unwrap(await drainHost(redis, 'one'));
    expect(unwrap(await leases.take({ host: 'one', token: 'd' }, 2))).toBe(false);
    unwrap(await resumeHost(redis, 'one'));
    expect(unwrap(await leases.take({ host: 'one', token: 'd' }, 2))).toBe(true);
    for (const token of ['b', 'd']) unwrap(await leases.free({ host: 'one', token }));
    unwrap(await leases.free({ host: 'two', token: 'c' }));
    expect(await redis.client.keys('cca:s:*')).toEqual([]);
  });

  test('a lease is renewed only with its token, also by another process that knows it', async () => {
    const lease = { host: 'one', token: 'a' };
    unwrap(await leases.take(lease, 1));
    expect(unwrap(await leases.look([lease]))[0]).toBeLessThanOrEqual(60_000);
    const stranger = { host: 'one', token: 'b' };
    expect(unwrap(await new Leases(redis, 60_000).renew([lease, stranger]))).toEqual(new Set([stranger]));
    const [left, none] = unwrap(await leases.look([lease, stranger]));
    expect(left).toBeGreaterThan(50_000);
    expect(none).toBeNull();
    unwrap(await leases.free(lease));
    expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
  });

  test('an expired lease cannot be renewed, and its slot is free', async () => {
    const lease = { host: 'one', token: 'a' };
    unwrap(await new Leases(redis, 30).take(lease, 1));
    while (unwrap(await leases.look([lease]))[0] !== null) await Bun.sleep(5);
    expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
    const next = { host: 'one', token: 'b' };
    expect(unwrap(await leases.take(next, 1))).toBe(true);
    unwrap(await leases.free(next));
  });

  test('without an answer of Redis the state is unknown, and later everything continues', async () => {
    const lease = { host: 'one', token: 'a' };
    unwrap(await leases.take(lease, 1));
    await server.kill();
    const renewed = await leases.renew([lease]);
    expect(renewed.ok ? '' : renewed.failure.reason).toBe('timeout');
    expect((await leases.take({ host: 'one', token: 'b' }, 1)).ok).toBe(false);
    const connected = Promise.withResolvers<void>();
    redis.onConnect(connected.resolve);
    await server.restart();
    await connected.promise;
    // It had kept nothing.
    expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
    expect(unwrap(await leases.take({ host: 'one', token: 'b' }, 1))).toBe(true);
  });
});
