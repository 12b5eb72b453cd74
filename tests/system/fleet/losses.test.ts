/** Promises: whichever process dies, nothing starts twice, no output is lost, and nothing runs without a lease. */
import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isOver, readLeases, uptimeMs, writeLeases } from '../../../src/fleet/agent/guard.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { FleetRig, fleetWorld, isAlive } from '../../support/fleet-rig.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { eventually } from '../../support/system/rig.ts';

const speaks = `echo '{"type":"assistant"}'`;
const echo = 'while read -r line; do [ "$line" = end ] && exit 3; echo "heard $line"; done';
/** Records each start where the next attempt sees it, and prints its pid. */
const works = `echo start >>../../starts; ${speaks}; echo "pid $$"; ${echo}`;

test('a lease expires if it is not renewed in time, or if Redis reports its end', () => {
  const lease = { renewedAt: 1_000, leaseMs: 500 };
  expect([1_000, 1_499, 1_500, 9_000].map((uptime) => isOver(lease, uptime))).toEqual([false, false, true, true]);
  expect(isOver({ ...lease, renewedAt: -1 }, 0)).toBe(true);
});

describe.skipIf(!hasRedis)('with redis-server', () => {
  let rig: FleetRig;

  const starts = (): string[] =>
    readFileSync(join(rig.paths().folder, '..', 'starts'), 'utf8')
      .trim()
      .split('\n');
  const lease = () => readLeases(fleetWorld, fleetPaths(rig.root))[0];

  /** The default is long enough for an agent to restart on a busy machine. Tests of an expired lease pass less. */
  const open = async (leaseMs = 12_000): Promise<void> => {
    rig = await FleetRig.open({ leaseMs, redis: ['appendonly yes', 'appendfsync always'] });
    rig.startAgent();
  };
  afterEach(() => rig.close());

  test('a killed agent restarts with the same token: nothing is lost or started again', async () => {
    await open();
    const { token, attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    for (const word of ['one', 'two']) {
      await rig.killAgent();
      await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: word });
      rig.startAgent();
      await eventually(() => rig.printed(attemptId).includes(`heard ${word}\n`));
    }
    expect(isAlive(pid)).toBe(true);
    await rig.killAgent();
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    rig.startAgent();
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ fenced: false, leftover: false });
    expect(rig.printed(attemptId)).toBe(`{"type":"assistant"}\npid ${pid}\nheard one\nheard two\n`);
    expect(starts()).toHaveLength(1);
    await rig.say(token, { do: 'release' });
    await eventually(() => rig.slotFolders().length === 0);
  });

  test('the end of an attempt without an agent is reported by the next agent, and kept until its release', async () => {
    await open();
    const { token, attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    await rig.killAgent();
    process.kill(pid, 'SIGKILL');
    await eventually(() => !isAlive(pid));
    rig.startAgent();
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ status: { kind: 'unknown' }, fenced: false });
    await rig.killAgent();
    const before = rig.heard.length;
    rig.startAgent();
    await rig.sendSigned({ kind: 'hello', groupId: rig.group, asker: 'me' });
    const here = await eventually(() => rig.heard.slice(before).find((one) => one.kind === 'here'));
    expect(here).toMatchObject({ attempts: [{ token }] });
    expect(starts()).toHaveLength(1);
  });

  test('after an agent is killed during preparation, the next one prepares again and starts once', async () => {
    await open();
    const setUps = join(rig.temp.path, 'set-ups');
    const command = `echo "$$" >>"$HOME/../set-ups"; [ -e "$HOME/../ready" ] || exec sleep 1000`;
    const { attemptId } = await rig.start({ script: works, change: { setup: { command, timeoutMs: 900_000 } } });
    const pid = await eventually(() => existsSync(setUps) && Number(readFileSync(setUps, 'utf8')));
    await rig.killAgent();
    writeFileSync(join(rig.temp.path, 'ready'), '');
    rig.startAgent();
    await rig.pidOf(attemptId, 'pid');
    expect(isAlive(pid)).toBe(false);
    expect(readFileSync(setUps, 'utf8').trim().split('\n')).toHaveLength(2);
    expect(starts()).toHaveLength(1);
  });

  test('if no agent renews the lease, the guard ends the attempt, and the next agent reports it', async () => {
    await open(3_000);
    const script = `trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo "tool $!"; ${works}`;
    const { attemptId } = await rig.start({ script });
    const [tool, pid] = [await rig.pidOf(attemptId, 'tool'), await rig.pidOf(attemptId, 'pid')];
    await rig.killAgent();
    const renewedAt = lease()?.renewedAt ?? 0;
    await eventually(() => !isAlive(pid) && !isAlive(tool));
    expect(uptimeMs(fleetWorld.files) - renewedAt).toBeGreaterThanOrEqual(rig.leaseMs);
    expect(rig.living(attemptId)).toEqual([]);
    rig.startAgent();
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ fenced: true });
    expect(starts()).toHaveLength(1);
  });

  test('while Redis does not answer, the host ends attempts without a lease and reports it later', async () => {
    await open(3_000);
    const { attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    await rig.server.kill();
    await eventually(() => !isAlive(pid));
    await rig.server.restart();
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ fenced: true });
    // The guard sends an interrupt first, which the script echoes.
    expect(rig.printed(attemptId)).toStartWith(`{"type":"assistant"}\npid ${pid}\nheard {`);
  });

  test('a lease unknown to Redis expires at once', async () => {
    await open();
    const { attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    const [lock = ''] = await rig.redis.client.keys('cca:s:*');
    await rig.redis.client.del(lock);
    await eventually(() => !isAlive(pid));
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ fenced: true });
    await eventually(() => lease() === undefined);
  });

  test('killing and quickly restarting Redis changes nothing', async () => {
    await open();
    const { token, attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    for (const word of ['one', 'two', 'three']) {
      await rig.server.kill();
      await rig.server.restart();
      await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: word });
      await eventually(() => rig.printed(attemptId).includes(`heard ${word}\n`));
    }
    await rig.say(token, { do: 'write', id: crypto.randomUUID(), lines: 'end' });
    expect(await rig.hear(attemptId, 'ended')).toMatchObject({ status: { kind: 'exited', code: 3 }, fenced: false });
    expect(rig.printed(attemptId)).toBe(`{"type":"assistant"}\npid ${pid}\nheard one\nheard two\nheard three\n`);
    expect(starts()).toHaveLength(1);
  });

  test('a killed guard is restarted, and without a guard nothing is accepted or started', async () => {
    await open();
    const token = await rig.takeSlot();
    await rig.killAgent();
    await rig.killGuards();
    rig.startAgent({ TEST_NO_GUARD: '1' });
    const order = await rig.makeOrder({ script: works });
    const seen = guardUptime() ?? 0;
    await eventually(() => uptimeMs(fleetWorld.files) > seen + 5_000);
    await rig.say(token, { do: 'order', order });
    expect(await rig.hear(order.attemptId, 'refused')).toMatchObject({ failure: { reason: 'other-host' } });
    await rig.killAgent();
    rig.startAgent();
    const guard = await eventually(() => rig.guardPid());
    await rig.killGuard();
    await eventually(() => rig.guardPid() !== null && rig.guardPid() !== guard);
  });

  test('the guard ends no attempt with a valid lease, and none with a lease from another boot', async () => {
    await open();
    const { attemptId } = await rig.start({ script: works });
    const pid = await rig.pidOf(attemptId, 'pid');
    const known = lease();
    if (known === undefined) throw new Error('no lease was recorded');
    await rig.killAgent();
    const paths = fleetPaths(rig.root);
    // As after a reboot of the host: its uptimes have no meaning here.
    writeFileSync(paths.leases, JSON.stringify({ bootId: 'another', leases: [{ ...known, renewedAt: 0 }] }));
    const looked = guardUptime() ?? 0;
    await eventually(() => (guardUptime() ?? 0) > looked + 1_000);
    expect(isAlive(pid)).toBe(true);
    writeLeases(fleetWorld, paths, [{ ...known, leaseMs: 900_000 }]);
    const again = guardUptime() ?? 0;
    await eventually(() => (guardUptime() ?? 0) > again + 1_000);
    expect(isAlive(pid)).toBe(true);
    // After a sleep the uptime of a host is later. An earlier renewal has the same effect.
    writeLeases(fleetWorld, paths, [{ ...known, leaseMs: 900_000, renewedAt: uptimeMs(fleetWorld.files) - 900_000 }]);
    await eventually(() => !isAlive(pid));
  });

  const guardUptime = (): number | null => {
    const text = fleetWorld.files.readText(fleetPaths(rig.root).guard);
    return text === null ? null : (JSON.parse(text) as { uptime: number }).uptime;
  };
});
