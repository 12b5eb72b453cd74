/**
 * Promises: the cells of the table in docs/fleet.md that no other test holds: what a machine of the fleet that was
 * stolen, and who may run groups, can do and cannot. Not covered: other users of the same machine (files.test.ts).
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readHost } from '../../../src/hosts/fleet/fleet-files.ts';
import { fleetPaths } from '../../../src/hosts/fleet/fleet-paths.ts';
import { toGroupStream, toHostStream } from '../../../src/hosts/fleet/keys.ts';
import { FleetRedis } from '../../../src/hosts/fleet/redis.ts';
import { newFleetKeys, Signer } from '../../../src/hosts/fleet/seal.ts';
import { order } from '../../../src/hosts/fleet/wire.ts';
import { FleetRig, world } from '../../support/fleet-rig.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { until, unwrap } from '../../world/rig.ts';

test('an order has no room for a login', () => {
  const names = Object.keys(order.shape);
  expect(names).toContain('login');
  for (const name of ['env', 'environment', 'variables']) expect(names).not.toContain(name);
  const given = { attemptId: 'a', attempt: 1, groupId: 'g', sessionId: 's', args: [], cwd: '.', untrusted: false };
  const blob = { id: 'b', pieces: 1, size: 1 };
  const work = { repository: 'abc', base: 'x', baseBundle: blob, head: 'x', snapshot: 'x', branch: 'b' };
  const parsed = order.parse({ ...given, files: blob, work, login: 'team-a', env: { ANTHROPIC_API_KEY: 'secret' } });
  expect(parsed.login).toBe('team-a');
  expect(JSON.stringify(parsed)).not.toContain('secret');
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  let rig: FleetRig;

  beforeEach(async () => {
    rig = await FleetRig.open({ leaseMs: 8_000 });
    rig.startAgent();
  });
  afterEach(() => rig.close());

  /** Whoever has all that the machine keeps. */
  async function stolen(): Promise<FleetRedis> {
    return unwrap(
      await FleetRedis.open(world, unwrap(readHost(world.files, rig.root)) ?? { redis: '', sealingKey: '' }),
    );
  }

  test('a machine can read what is sent to another', async () => {
    const stream = toHostStream('two');
    unwrap(await rig.redis.send(stream, [Buffer.from('a prompt for the machine two')]));
    const thief = await stolen();
    const [entry] = unwrap(await thief.read(stream, '0'));
    thief.close();
    expect(Buffer.from(entry?.bytes ?? []).toString()).toBe('a prompt for the machine two');
  });

  test('a machine can answer for another', async () => {
    const thief = await stolen();
    const news = { say: 'ran', id: 'x', exitCode: 0, signal: null, timedOut: false, output: 'made up' };
    const answer = { kind: 'attempt', host: 'two', token: 'two:1:of-others', attemptId: 'of-others', n: 1, news };
    unwrap(await thief.send(toGroupStream(rig.group), [Buffer.from(JSON.stringify(answer))]));
    thief.close();
    expect(await rig.hear('of-others', 'ran')).toMatchObject({ output: 'made up' });
  });

  test('a machine cannot give orders to another', async () => {
    const { token } = await rig.offer();
    const wanted = await rig.makeOrder({ script: 'touch ../../started' });
    const message = { kind: 'slot', token, groupId: wanted.groupId, n: 1, command: { do: 'order', order: wanted } };
    // All of its keys are the runner's public one, and what it signs with one of its own is no runner's.
    const host = unwrap(readHost(world.files, rig.root));
    expect(JSON.stringify(host)).not.toContain(rig.keys.signingKey);
    const stream = toHostStream('one');
    const thief = await stolen();
    const made = new Signer(newFleetKeys().signingKey).sign(stream, JSON.stringify(message));
    unwrap(await thief.send(stream, [made, Buffer.from(JSON.stringify(message))]));
    thief.close();
    await until(() => rig.told().split('no runner that this machine accepts has signed it').length >= 2);
    expect(existsSync(join(rig.paths().folder, '..', 'started'))).toBe(false);
    expect(rig.living(wanted.attemptId)).toEqual([]);
  });

  test('whoever runs groups can read the logins', async () => {
    const { logins } = fleetPaths(rig.root);
    mkdirSync(logins, { recursive: true });
    writeFileSync(join(logins, 'team-a.env'), 'ANTHROPIC_API_KEY=of-the-machine\n', { mode: 0o600 });
    const { attemptId } = await rig.start({ script: `cat '${logins.replaceAll("'", "'\\''")}/team-a.env'` });
    await rig.hear(attemptId, 'ended');
    expect(rig.printed(attemptId)).toContain('of-the-machine');
  });
});
