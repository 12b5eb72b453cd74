/**
 * Promises: the entries of docs/fleet-security.md that no other test covers: what a stolen host and a user
 * who may run groups can and cannot do. Not covered: other users of the same host (files.test.ts).
 */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fleetPaths, readHost } from '../../../src/fleet/fleet-files.ts';
import { FleetRedis, toGroupStream, toHostStream } from '../../../src/fleet/redis.ts';
import { newFleetKeys, Signer } from '../../../src/fleet/seal.ts';
import { type Blob, order } from '../../../src/fleet/wire.ts';
import { FleetRig, fleetWorld } from '../../support/fleet-rig.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { eventually, expectOk } from '../../support/system/rig.ts';

test('an order has no room for a login', () => {
  const names = Object.keys(order.shape);
  for (const name of ['login', 'env', 'environment']) expect(names).not.toContain(name);
  const given = { attemptId: 'a', attempt: 1, groupId: 'g', sessionId: 's', args: [], cwd: '.', untrusted: false };
  const blob = { id: 'b', pieces: 1, size: 1, digest: 'a'.repeat(64) };
  const commit = 'a'.repeat(40);
  const work = { repository: 'abc', head: commit, snapshot: commit, branch: 'b', settings: [] };
  const secret = { ANTHROPIC_API_KEY: 'secret', CCA_SESSION: 'api' };
  const parsed = order.parse({ ...given, files: blob, work, login: 'team-a', env: secret, variables: secret });
  expect(JSON.stringify(parsed)).not.toContain('secret');
  expect(parsed.variables).toEqual({ CCA_SESSION: 'api' });
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  let rig: FleetRig;

  beforeEach(async () => {
    rig = await FleetRig.open({ leaseMs: 8_000 });
    rig.startAgent();
  });
  afterEach(() => rig.close());

  /** A thief with everything that the host stores. */
  async function stolen(): Promise<FleetRedis> {
    return expectOk(
      await FleetRedis.open(
        fleetWorld,
        expectOk(readHost(fleetWorld.files, rig.root)) ?? { redis: '', sealingKey: '' },
      ),
    );
  }

  test('a host can read what is sent to another', async () => {
    const stream = toHostStream('two');
    expectOk(await rig.redis.send(stream, [Buffer.from('a prompt for the host two')]));
    const thief = await stolen();
    const [entry] = expectOk(await thief.read(stream, '0'));
    thief.close();
    expect(Buffer.from(entry?.bytes ?? []).toString()).toBe('a prompt for the host two');
  });

  test('a host can answer for another', async () => {
    const thief = await stolen();
    const news = { say: 'ran', id: 'x', exitCode: 0, timedOut: false, output: 'made up' };
    const answer = { kind: 'attempt', host: 'two', token: 'two:1:of-others', attemptId: 'of-others', news };
    expectOk(await thief.send(toGroupStream(rig.group), [Buffer.from(JSON.stringify(answer))]));
    thief.close();
    expect(await rig.hear('of-others', 'ran')).toMatchObject({ output: 'made up' });
  });

  test('a host cannot give orders to another', async () => {
    const token = await rig.takeSlot();
    const wanted = await rig.makeOrder({ script: 'touch ../../started' });
    const message = { kind: 'slot', token, groupId: wanted.groupId, command: { do: 'order', order: wanted } };
    // Its only runner key is the public one, and a signature by a key of its own is not accepted.
    const host = expectOk(readHost(fleetWorld.files, rig.root));
    expect(JSON.stringify(host)).not.toContain(rig.keys.signingKey);
    const stream = toHostStream('one');
    const thief = await stolen();
    const made = new Signer(newFleetKeys().signingKey).sign(stream, JSON.stringify(message));
    expectOk(await thief.send(stream, [made, Buffer.from(JSON.stringify(message))]));
    thief.close();
    await eventually(() => rig.told().split('no runner that this host accepts has signed it').length >= 2);
    expect(existsSync(join(rig.paths().folder, '..', 'started'))).toBe(false);
    expect(rig.living(wanted.attemptId)).toEqual([]);
  });

  test('the content of an order cannot be replaced by another host', async () => {
    const ordered = (prompt: string) =>
      rig.makeOrder({
        script: 'cat ../prompt.md',
        files: [{ path: 'prompt.md', isText: true, data: Buffer.from(prompt).toString('base64') }],
      });
    const [mine, evil] = [await ordered('of the runner'), await ordered('of the thief!')];
    expect(evil.files.size).toBe(mine.files.size);
    const thief = await stolen();
    const bytes = Buffer.from(expectOk(await thief.getBlob(evil.files)));
    const key = `cca:b:${mine.files.id}:0`;
    await thief.client.set(key, thief.seal.seal(key, bytes));
    thief.close();
    const token = await rig.takeSlot();
    await rig.say(token, { do: 'order', order: mine });
    expect(await rig.hear(mine.attemptId, 'refused')).toMatchObject({ failure: { reason: 'gone' } });
    expect(rig.printed(mine.attemptId)).toBe('');
    expect(existsSync(rig.paths().prompt)).toBe(false);

    const second = await rig.takeSlot();
    const { digest: _, ...unsealed } = evil.files;
    await rig.say(second, { do: 'order', order: { ...evil, files: unsealed as Blob } });
    await eventually(() => rig.told().includes('this version does not understand it'));
    expect(rig.living(evil.attemptId)).toEqual([]);
  });

  test('a recorded order starts nothing again, on the same host or another', async () => {
    const stream = toHostStream('one');
    const { token, attemptId, order: ordered } = await rig.start({ script: 'echo x >>../../starts' });
    const starts = join(rig.paths().folder, '..', 'starts');
    await rig.hear(attemptId, 'ended');
    const message = { kind: 'slot', token, groupId: ordered.groupId, command: { do: 'order', order: ordered } };
    const thief = await stolen();
    // As the runner signed it, visible to a thief with Redis and the sealing key.
    const signed = new Signer(rig.keys.signingKey).sign(stream, JSON.stringify(message));
    const replay = async (): Promise<void> => void expectOk(await thief.send(stream, [signed]));
    await replay();
    await rig.killAgent();
    await replay();
    rig.startAgent();
    // With the slot still held it is a repetition; without it there is none.
    await rig.say(token, { do: 'run', id: 'after', command: 'true', timeoutMs: 20_000 });
    await rig.hear(attemptId, 'ran');
    await rig.say(token, { do: 'release' });
    await eventually(() => rig.slotFolders().length === 0);
    await replay();
    await eventually(() => rig.told().includes('it was done before'));
    // An order signed for another host is invalid here.
    const other = new Signer(rig.keys.signingKey).sign(toHostStream('two'), JSON.stringify(message));
    expectOk(await thief.send(stream, [other]));
    await eventually(() => rig.told().includes('no runner that this host accepts has signed it'));
    thief.close();
    expect(readFileSync(starts, 'utf8')).toBe('x\n');
  });

  test("an order for another group than its sender's starts nothing", async () => {
    const token = await rig.takeSlot();
    const wanted = await rig.makeOrder({ script: 'touch ../../started' });
    const command = { do: 'order', order: wanted };
    await rig.sendSigned({ kind: 'slot', token, groupId: '20260101-000000-other', command });
    await eventually(() => rig.told().includes('is for another group'));
    expect(rig.living(wanted.attemptId)).toEqual([]);
    expect(existsSync(join(rig.paths().folder, '..', 'started'))).toBe(false);
  });

  test('a password alone can take slots and present a lease to some hosts only', async () => {
    const thief = expectOk(
      await FleetRedis.open(fleetWorld, { redis: rig.server.url, sealingKey: newFleetKeys().sealingKey }),
    );
    const lease = { host: 'one', token: 'of nobody' };
    expect(expectOk(await thief.leases(rig.leaseMs).take(lease, 2))).toBe(true);
    await thief.client.zrem('cca:s:one', lease.token);
    expect(expectOk(await rig.leases.look([lease]))).toEqual([null]);
    await thief.client.zadd('cca:s:one', Date.now() + rig.leaseMs, lease.token);
    expect(expectOk(await rig.leases.renew([lease])).size).toBe(0);
    thief.close();
  });

  test('a user who runs groups can read the logins, as every session there can, and what its agent keeps', async () => {
    const { logins, host } = fleetPaths(rig.root);
    mkdirSync(logins, { recursive: true });
    writeFileSync(join(logins, 'team-a.env'), 'ANTHROPIC_API_KEY=of-the-machine\n', { mode: 0o600 });
    const quoted = [join(logins, 'team-a.env'), host].map((path) => `'${path.replaceAll("'", "'\\''")}'`);
    const { attemptId } = await rig.start({ script: `cat ${quoted.join(' ')}` });
    await rig.hear(attemptId, 'ended');
    expect(rig.printed(attemptId)).toContain('of-the-machine');
    expect(rig.printed(attemptId)).toContain(rig.keys.sealingKey);
  });
});
