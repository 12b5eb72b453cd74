/**
 * Promises: a host with a refused login affects only itself. Its session continues on another host, it gets no more
 * work until its login changes or the user allows it, and a group pauses only when no host is left.
 */
import { afterEach, expect, test } from 'bun:test';
import { readGroupProgress } from '../../../src/app/watch/live-view.ts';
import { listHosts, resumeHost, takesNew } from '../../../src/fleet/registry.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { until } from '../../support/cli.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import { type FleetGround, type GroundOptions, openGround } from '../../support/fleet-ground.ts';
import type { SessionSketch } from '../../support/group-fixture.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

let ground: FleetGround;
withRig();
afterEach(async () => {
  await ground.close();
});

const fleetTest = test.if(hasRedis);
const longFleetTest = test.if(hasRedis);

async function open(sketches: readonly SessionSketch[], options: Partial<GroundOptions> = {}): Promise<void> {
  const config = { where: 'fleet', maxConcurrentSessions: 10, ...options.config } as const;
  ground = await openGround(sketches, { machines: { one: {} }, env: rig.env, ...options, config });
}

async function begin(name: string): Promise<Invocation> {
  const fake = await rig.nextFor(ground.group.claudeId(name));
  await fake.prompt();
  await fake.init();
  return fake;
}

const machineOf = ({ hello }: Invocation): string => /\/machine (\w+)\//.exec(hello.cwd)?.[1] ?? '';

/** As claude behaves without a valid login. */
async function refuse(fake: Invocation): Promise<void> {
  await fake.print(resultLine(0, { is_error: true, result: 'Not logged in · Please run /login', modelUsage: {} }));
  fake.exit(1);
}

const pausedOf = (name: string) =>
  ground.group
    .events()
    .flatMap((event) => (event.type === 'session_paused' && event.sessionId === ground.group.id(name) ? [event] : []));

longFleetTest('the session goes on elsewhere, and the host starts no more', async () => {
  await open([{ name: 'a' }, { name: 'b' }, { name: 'c', after: ['a'] }]);
  const run = ground.group.run(rig.env);
  const [first, second] = [await begin('a'), await begin('b')];
  await refuse(first);
  const paused = await run.event('session_paused');
  const message = expect.stringMatching(
    /Not logged in.* The host one starts no more sessions until its login changes\.$/,
  );
  expect(paused).toMatchObject({ reason: 'interrupted', message });
  ground.addMachine('two', {});
  const again = await begin('a');
  expect(machineOf(again)).toBe('two');
  const redis = await ground.redis();
  // It may have taken the session before it reported its guard.
  let taking: string[] = [];
  while (taking.join() !== 'two') {
    const hosts = await listHosts(redis);
    if (hosts.ok) taking = hosts.value.filter(takesNew).map(({ name }) => name);
  }
  redis.close();
  // Watching processes see the state of the hosts.
  const { paths } = ground.group;
  const seen = () => readGroupProgress(createRealWorld(), paths.progress, ground.group.state()).fleet;
  const shown = { up: 1, refusing: 1, lost: 0, drained: 0, slots: 4 };
  await until(() => Bun.deepMatch(shown, seen() ?? {}));
  // Sessions that run there may still complete.
  await second.succeed();
  await again.succeed();
  const last = await begin('c');
  expect(machineOf(last)).toBe('two');
  await last.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

longFleetTest('a group for which no host is left pauses and names them; a person lets it go on', async () => {
  await open([{ name: 'a' }], { machines: { one: {}, two: {} } });
  const run = ground.group.run(rig.env);
  const tried = new Set<string>();
  for (let round = 1; round <= 2; round += 1) {
    const fake = await begin('a');
    tried.add(machineOf(fake));
    await refuse(fake);
  }
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect([...tried].toSorted()).toEqual(['one', 'two']);
  const { reason, message } = ground.group.state();
  expect([reason, message]).toEqual(['no-host', expect.stringContaining('the login was refused on one and two.')]);
  // Nothing was fixed: nothing starts.
  const before = rig.invocations.length;
  expect(await ground.group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(rig.invocations.length).toBe(before);
  const redis = await ground.redis();
  await resumeHost(redis, 'two');
  redis.close();
  const later = ground.group.run(rig.env);
  const fake = await begin('a');
  expect(machineOf(fake)).toBe('two');
  await fake.succeed();
  expect(await later.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(pausedOf('a')).toHaveLength(2);
});

fleetTest('a login that is refused here pauses the group', async () => {
  await open([{ name: 'a' }], { config: { where: 'any' }, machines: {} });
  const run = ground.group.run(rig.env);
  await refuse(await begin('a'));
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(ground.group.state()).toMatchObject({ reason: 'needs-person' });
});
