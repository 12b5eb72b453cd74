/** Promises: streams and blobs through a real Redis are complete, sealed and bounded; every refusal has a sentence. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { checkAddress, FleetRedis, withoutPassword } from '../../../src/fleet/redis.ts';
import { newFleetKeys } from '../../../src/fleet/seal.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { hasRedis, type RedisServer, startRedis } from '../../support/redis-server.ts';
import { expectOk, makeTempFolder } from '../../support/system/rig.ts';

const world = createRealWorld();
const { sealingKey } = newFleetKeys();
const bytes = (text: string) => Buffer.from(text);

describe.skipIf(!hasRedis)('with redis-server', () => {
  let temp: ReturnType<typeof makeTempFolder>;
  let server: RedisServer;
  let redis: FleetRedis;

  beforeAll(async () => {
    temp = makeTempFolder();
    server = await startRedis(temp.path, ['appendonly yes', 'appendfsync always']);
    redis = expectOk(await FleetRedis.open(world, { redis: server.url, sealingKey }));
  });
  afterAll(async () => {
    redis.close();
    await server.kill();
    temp.remove();
  });

  test('a stream is read in order by any reader, and dropped once it is acknowledged', async () => {
    const ids = expectOk(await redis.send('cca:g:x', [bytes('one'), bytes('two')]));
    const entries = expectOk(await redis.read('cca:g:x', '0'));
    expect(entries.map((entry) => Buffer.from(entry.bytes ?? []).toString())).toEqual(['one', 'two']);
    expect(entries.map(({ id }) => id)).toEqual(ids);
    expectOk(await redis.drop('cca:g:x', ids));
    expect(expectOk(await redis.read('cca:g:x', '0'))).toEqual([]);
    // No key of a group stays for ever.
    expect(await redis.client.ttl('cca:g:x')).toBeGreaterThan(3_600);
  });

  test('data in Redis is unreadable, and data inserted by others is detected', async () => {
    expectOk(await redis.send('cca:h:one', [bytes('a secret prompt')]));
    expectOk(await redis.putBlob('b', bytes('a secret file')));
    const held = JSON.stringify([
      await redis.client.xrange('cca:h:one', '-', '+'),
      (await redis.client.getBuffer('cca:b:b:0'))?.toString('latin1'),
    ]);
    expect(held).not.toContain('secret');
    const [moved] = await redis.client.xrangeBuffer('cca:h:one', '-', '+');
    await redis.client.xadd('cca:h:two', '*', 'm', moved?.[1]?.[1] ?? '');
    await redis.client.xadd('cca:h:two', '*', 'm', 'made up');
    expect(expectOk(await redis.read('cca:h:two', '0')).map((entry) => entry.bytes)).toEqual([null, null]);
  });

  test('a blob of many pieces returns unchanged, may be stored again, and is gone when dropped', async () => {
    const large = Buffer.alloc(2_500_000, 'abc');
    const blob = expectOk(await redis.putBlob('large', large));
    expect(blob).toMatchObject({ id: 'large', pieces: 3, size: 2_500_000 });
    expect(expectOk(await redis.putBlob('large', large))).toEqual(blob);
    expect(Buffer.from(expectOk(await redis.getBlob(blob))).equals(large)).toBe(true);
    expect(await redis.client.ttl('cca:b:large:2')).toBeGreaterThan(3_000);
    await redis.client.del('cca:b:large:1');
    const got = await redis.getBlob(blob);
    expect(got.ok ? '' : got.failure.reason).toBe('gone');
    await redis.dropBlob(blob);
    expect(await redis.client.exists('cca:b:large:0')).toBe(0);
  });

  test('without Redis every call fails soon, and the next one after its return succeeds', async () => {
    expectOk(await redis.send('cca:g:kept', [bytes('kept')]));
    const connected = Promise.withResolvers<void>();
    await server.kill();
    const away = await redis.send('cca:g:kept', [bytes('lost')]);
    expect(away.ok ? '' : away.failure.reason).toBe('timeout');
    redis.onConnect(connected.resolve);
    await server.restart();
    await connected.promise;
    const entries = expectOk(await redis.read('cca:g:kept', '0'));
    expect(entries.map((entry) => Buffer.from(entry.bytes ?? []).toString())).toEqual(['kept']);
  });

  test('a refused login is reported with the reason', async () => {
    const locked = await startRedis(`${temp.path}/locked`, ['requirepass secret']);
    const [host] = [`127.0.0.1:${locked.port}`];
    const sentence = async (url: string): Promise<string> => {
      const opened = expectOk(await FleetRedis.open(world, { redis: url, sealingKey }));
      const asked = await opened.nowMs();
      opened.close();
      return asked.ok ? 'let in' : asked.failure.message;
    };
    try {
      expect(await sentence(`redis://${host}`)).toBe(`Redis at ${host} refuses the user or the password.`);
      expect(await sentence(`redis://:wrong@${host}`)).toBe(`Redis at ${host} refuses the user or the password.`);
      expect(await sentence(`redis://:secret@${host}`)).toBe('let in');
      expect(await sentence(`rediss://:secret@${host}`)).toContain(`Redis at ${host}`);
    } finally {
      await locked.kill();
    }
    expect(await sentence(`redis://${host}`)).toBe(`Redis at ${host} refuses the connection.`);
  });
});

test('nothing is sent unencrypted to another host without --insecure', () => {
  for (const redis of ['rediss://a:b@redis.corp:6380', 'redis://127.0.0.1:1', 'redis://localhost', 'redis://[::1]:1']) {
    expect(checkAddress({ redis }).ok).toBe(true);
  }
  const refused = checkAddress({ redis: 'redis://a:secret@redis.corp:6379' });
  expect(refused.ok ? '' : refused.failure.message).toBe(
    'Redis at redis.corp:6379 is another host, and redis:// does not encrypt what is sent to it.',
  );
  expect(checkAddress({ redis: 'redis://redis.corp', insecure: true }).ok).toBe(true);
  for (const redis of ['', 'redis', 'http://127.0.0.1', 'redis:///socket'])
    expect(checkAddress({ redis }).ok).toBe(false);
});

test('a password is not shown', () => {
  expect(withoutPassword('rediss://cca:secret@redis:6380')).toBe('rediss://cca@redis:6380');
});
