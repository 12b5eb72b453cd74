/** Promises: a wish is granted once, held by its token alone, and never done again by BullMQ itself. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FleetRedis, Leases } from '../../../src/fleet/redis.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import type { Wish } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { makeTempFolder, unwrap } from '../../support/system/rig.ts';

const world = createRealWorld();
const { sealingKey } = newFleetKeys();
const wish = (sessionId: string): Wish => ({ groupId: 'g', sessionId, wire: 1 });
const normal = { labels: [], priority: 5 };

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let redis: FleetRedis;
  let leases: Leases;

  const again = async (leaseMs: number): Promise<Leases> => new Leases(world, redis, leaseMs);

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path);
    redis = unwrap(await FleetRedis.open(world, { redis: server.url, sealingKey }));
    leases = await again(60_000);
  });
  afterAll(async () => {
    redis.close();
    await server.kill();
    temp.remove();
  });

  test('who fits best takes first what is most urgent, and each wish goes to one of them', async () => {
    unwrap(await leases.wish(wish('late'), { labels: [], priority: 9 }));
    unwrap(await leases.wish(wish('soon'), { labels: [], priority: 1 }));
    unwrap(await leases.wish(wish('gpu'), { labels: ['node20', 'gpu'], priority: 9 }));
    expect(unwrap(await leases.waiting())).toContainEqual({ labels: ['gpu', 'node20'], count: 1 });
    expect(unwrap(await leases.waiting())).toContainEqual({ labels: [], count: 2 });
    const plain = unwrap(await leases.take(['host=a'], 'a:1'));
    expect(plain).toMatchObject({ wish: wish('soon'), token: 'a:1', labelSet: 'any' });
    const first = unwrap(await leases.take(['gpu', 'node20', 'host=b'], 'b:1'));
    expect(first?.wish.sessionId).toBe('gpu');
    const second = unwrap(await leases.take(['gpu', 'node20', 'host=b'], 'b:2'));
    expect(second?.wish.sessionId).toBe('late');
    expect(unwrap(await leases.take(['gpu', 'node20', 'host=b'], 'b:3'))).toBeNull();
    for (const lease of [plain, first, second])
      expect(lease !== null && unwrap(await leases.complete(lease))).toBe(true);
    expect(await redis.client.keys('cca:slots-*:*-*')).toEqual([]);
  });

  test('a lease is renewed and completed with its token alone, also by another process that knows it', async () => {
    const place = unwrap(await leases.wish(wish('one'), normal));
    const lease = unwrap(await leases.take([], 'a:1'));
    if (lease === null) throw new Error('nothing to take');
    expect(lease.job).toBe(place.job);
    const other = await again(60_000);
    const stranger = { ...lease, token: 'b:1' };
    expect(unwrap(await other.renew([lease]))).toEqual(new Set());
    expect(unwrap(await other.renew([stranger]))).toEqual(new Set([stranger]));
    expect(unwrap(await other.complete(stranger))).toBe(false);
    expect(unwrap(await leases.look([place]))[0]).toBeGreaterThan(50_000);
    expect(unwrap(await leases.withdraw(place))).toBe(false);
    expect(unwrap(await leases.stateOf(place))).toBe('taken');
    expect(unwrap(await other.complete(lease))).toBe(true);
    expect(unwrap(await leases.stateOf(place))).toBe('gone');
    expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
  });

  test.each(['whoever had it', 'whoever wished'])(
    'a lease that is over is given to nobody by itself, and %s clears it away',
    async (who) => {
      const place = unwrap(await leases.wish(wish('one'), normal));
      const short = await again(30);
      const lease = unwrap(await short.take([], 'a:1'));
      if (lease === null) throw new Error('nothing to take');
      while (unwrap(await leases.look([place]))[0] !== null) await Bun.sleep(5);
      expect(unwrap(await leases.take([], 'b:1'))).toBeNull();
      expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
      expect(unwrap(await leases.stateOf(place))).toBe('taken');
      if (who === 'whoever wished') expect(unwrap(await leases.withdraw(place))).toBe(true);
      else expect(unwrap(await leases.complete(lease))).toBe(false);
      expect(unwrap(await leases.stateOf(place))).toBe('gone');
    },
  );

  test('without an answer nothing is known, and afterwards everything goes on', async () => {
    unwrap(await leases.wish(wish('one'), normal));
    const lease = unwrap(await leases.take([], 'a:1'));
    if (lease === null) throw new Error('nothing to take');
    await server.kill();
    const renewed = await leases.renew([lease]);
    expect(renewed.ok ? '' : renewed.failure.reason).toBe('timeout');
    const fresh = await again(60_000);
    expect((await fresh.wish(wish('two'), normal)).ok).toBe(false);
    const connected = Promise.withResolvers<void>();
    redis.onConnect(connected.resolve);
    await server.restart();
    await connected.promise;
    // It had kept nothing.
    expect(unwrap(await leases.renew([lease]))).toEqual(new Set([lease]));
    unwrap(await fresh.wish(wish('two'), normal));
    expect(unwrap(await fresh.take([], 'b:1'))?.wish.sessionId).toBe('two');
  });
});
