/**
 * Promises, with the real claude on machines that only a network joins: one that is switched off in the middle of a
 * tool has its session go on elsewhere between 20 and 30 seconds after its lease; one that loses Redis alone, and still
 * reaches the model, stops by itself before that.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { attemptMark } from '../../../src/claude/launch/environment.ts';
import { readLeases, uptimeMs } from '../../../src/fleet/agent/lease-file.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { expectServed } from '../../support/books.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { type CuttableProxy, startProxy } from '../../support/cuttable-proxy.ts';
import { type FleetGround, type Machine, openGround } from '../../support/fleet-ground.ts';
import type { RunningGroup } from '../../support/group-fixture.ts';
import { hasRooms, openRooms, type Rooms } from '../../support/network-rooms.ts';
import { hasRedis } from '../../support/redis-server.ts';

const networkTest = test.if(hasRedis && hasRooms);
const leaseMs = 8_000;
const stepsMax = 300;

let rooms: Rooms;
let api: ScriptedApi;
/** The way to it from the rooms. */
let door: CuttableProxy;
let ground: FleetGround;
/** Which machine asked, and when. */
let asked: { readonly from: string; readonly atMs: number }[];
let isEnough: boolean;

const uptime = (): number => uptimeMs(ground.group.world.files);
const of = (machine: string) => asked.filter(({ from }) => from === machine);

beforeEach(async () => {
  rooms = openRooms(2);
  [asked, isEnough] = [[], false];
  let from = '';
  const call: Step = { text: 'On.', tool: 'Bash', input: { command: 'echo once >> work.txt; sleep 0.5' } };
  const steps = Array<Step>(stepsMax).fill(call);
  api = startScriptedApi({
    script: { version: 1, sessions: { '*': { steps }, enough: { steps: [{ text: 'Done.' }] } } },
    nameOf: (_, path) => {
      from = path.split('/')[1] ?? '';
      return isEnough ? 'enough' : undefined;
    },
    onRequest: () => asked.push({ from, atMs: uptime() }),
  });
  const [first, second] = rooms.addresses;
  door = await startProxy(api.port, first);
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice };
  ground = await openGround([{ name: 'a', fields }], {
    leaseMs,
    machines: {},
    env: { ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() },
    redis: [`bind 127.0.0.1 ${second}`, 'protected-mode no'],
    config: { where: 'fleet', maxBudgetUsd: 5 },
  });
});
afterEach(async () => {
  await ground.close();
  door.close();
  await api.stop();
  rooms.close();
});

function machineIn(index: 0 | 1, name: string): Machine {
  const [first, second] = rooms.addresses;
  return ground.addMachine(name, {
    redisAddress: second,
    within: rooms.rooms[index]?.within ?? [],
    env: { ANTHROPIC_BASE_URL: `http://${first}:${door.port}/${name}` },
  });
}

const attempts = (): readonly string[] =>
  ground.group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));

/** Works on the first machine, in the middle of a tool, with a checkpoint; the second one is there. */
async function begin(): Promise<{ readonly run: RunningGroup; readonly one: Machine }> {
  const one = machineIn(0, 'one');
  const run = ground.group.run({});
  await until(() => of('one').length >= 4);
  machineIn(1, 'two');
  return { run, one };
}

/** Uptime at which its lease was renewed last. */
const renewedAt = (machine: Machine): number =>
  readLeases(ground.group.world, fleetPaths(machine.root))[0]?.renewedAt ?? 0;

async function finish(run: RunningGroup): Promise<void> {
  isEnough = true;
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(api.problems).toEqual([]);
  expect(attempts()).toHaveLength(2);
  await until(() => attempts().every((id) => ground.group.world.processes.findMarked(attemptMark, id).length === 0));
}

networkTest(
  'one that is switched off in the middle of a tool',
  async () => {
    const { run, one } = await begin();
    rooms.rooms[0]?.unplug();
    const offAt = uptime();
    await one.burn(attempts());
    const lastAt = renewedAt(one);
    expect(await run.event('session_host_lost')).toMatchObject({ host: 'one' });
    await until(() => of('two').length > 0);
    const { atMs = 0 } = of('two')[0] ?? {};
    expect(atMs - lastAt).toBeGreaterThanOrEqual(leaseMs + 20_000);
    expect(atMs - offAt).toBeLessThanOrEqual(leaseMs + 30_000);
    await finish(run);
  },
  180_000,
);

networkTest(
  'one that is cut off from Redis alone, and is found again later',
  async () => {
    const { run } = await begin();
    const [, redis] = rooms.addresses;
    rooms.rooms[0]?.lose(redis);
    const lostAt = uptime();
    await run.event('session_host_lost');
    await until(() => of('two').length >= 2);
    // It was ended there when its lease was over; what it had begun to ask by then may have come a moment later.
    const last = of('one').at(-1)?.atMs ?? 0;
    expect(last).toBeGreaterThan(lostAt);
    expect(last).toBeLessThan(of('two')[0]?.atMs ?? 0);
    expect(last - lostAt).toBeLessThan(leaseMs + 13_000);
    rooms.rooms[0]?.find(redis);
    await run.event('session_booked');
    await finish(run);
    // The first was ended where it stood.
    expectServed(ground.group.state().usage, api.served.total.costUsd, 1);
  },
  180_000,
);
