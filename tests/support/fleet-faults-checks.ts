/** The single faults of a fleet, and the checks after each: all sessions done once, and the books right. */
import { expect } from 'bun:test';
import { join } from 'node:path';
import { roundUsd } from '../../src/core/group.ts';
import { firstMessageUsd } from './books.ts';
import type { NamespacedHost } from './fleet/namespaced-host.ts';
import { FaultyFleet, job, repositories, untilTrue } from './fleet-faults.ts';
import { git } from './git/repository.ts';

export interface FleetFault {
  readonly name: string;
  /** Absent = short, so that a lost host is given up soon. */
  readonly leaseSeconds?: number;
  readonly diskBytes?: number;
  /**
   * Two sessions are in the middle of a tool, one of them on `host`. Resolves when everything that recovers by itself
   * is back; the returned function runs once the group has ended.
   */
  happen(fleet: FaultyFleet, host: NamespacedHost): Promise<void | (() => Promise<void>)>;
}

const agent = / host serve$/;
const claude = / --(?:session-id|resume) /;

function agentsOf(host: NamespacedHost): readonly number[] {
  const pids = host.pids(agent);
  if (pids.length === 0) throw new Error(`no agent runs on ${host.name}`);
  return pids;
}

/** Like `systemctl restart`, or the start of a host. */
function startAgent(host: NamespacedHost): void {
  const program = join(host.sshd.home, '.local/share/claude-code-agent/host/bin/claude-code-agent');
  host.start(program, 'host', 'serve');
}

async function redisAway(fleet: FaultyFleet, seconds: number): Promise<void> {
  await fleet.redis.kill('SIGTERM');
  // One reports later what it does meanwhile; the other is still running when Redis returns.
  fleet.release('five');
  await Bun.sleep(seconds * 1_000);
  await fleet.redis.restart();
  fleet.release('four');
}

export const faults: readonly FleetFault[] = [
  {
    name: 'all processes of a host are killed',
    async happen(fleet, host) {
      await host.switchOff();
      fleet.release('four', 'five');
      return async () => {
        await host.switchOn();
        await fleet.addHost(host);
      };
    },
  },
  {
    name: 'the agent of a host is killed',
    async happen(fleet, host) {
      for (const pid of agentsOf(host)) host.kill(pid);
      fleet.release('four', 'five');
      return async () => {
        if (host.pids(agent).length === 0) startAgent(host);
      };
    },
  },
  {
    name: 'the agent of a host is restarted',
    async happen(fleet, host) {
      for (const pid of agentsOf(host)) {
        host.kill(pid, 'SIGTERM');
        await untilTrue(() => !host.pids(agent).includes(pid), 'the agent has ended');
      }
      if (host.pids(agent).length === 0) startAgent(host);
      fleet.release('four', 'five');
    },
  },
  {
    name: 'the runner is killed and started again',
    async happen(fleet) {
      fleet.runner?.kill('SIGKILL');
      await fleet.end();
      fleet.release('five');
      await fleet.untilDone('five');
      fleet.startRunner();
      fleet.release('four');
    },
  },
  {
    name: 'the network of a host is cut for 60 s',
    async happen(fleet, host) {
      host.cut();
      fleet.release('five');
      await Bun.sleep(60_000);
      host.heal();
      fleet.release('four');
    },
  },
  {
    name: 'Redis is stopped for 10 s',
    leaseSeconds: 60,
    happen: (fleet) => redisAway(fleet, 10),
  },
  {
    name: 'Redis is stopped for 130 s',
    leaseSeconds: 60,
    happen: (fleet) => redisAway(fleet, 130),
  },
  {
    name: 'Redis loses its last seconds',
    async happen(fleet) {
      fleet.copyRedis();
      fleet.release('five');
      await fleet.untilDone('five');
      await fleet.redis.kill();
      fleet.putRedisBack();
      await fleet.redis.restart();
      fleet.release('four');
    },
  },
  {
    name: 'the disk of a host is full',
    diskBytes: 1_200_000_000,
    async happen(fleet, host) {
      host.fillDisk();
      fleet.release('four', 'five');
      return async () => host.emptyDisk();
    },
  },
  {
    name: 'a busy host is forgotten',
    async happen(fleet, host) {
      const forgetting = fleet.user.ok('host', 'forget', host.name, '--yes');
      const stateOf = async () => {
        const { hosts } = await fleet.user.json<{ hosts: { name: string; state: string }[] }>('host', 'list');
        return hosts.find(({ name }) => name === host.name)?.state;
      };
      await untilTrue(async () => (await stateOf()) === 'draining', 'the host is draining');
      fleet.release('four', 'five');
      await forgetting;
    },
  },
];

/** Each waits a moment for newly started hosts. */
const bookingsMax = 6;

/** Attempts whose host was lost and has not reported their cost since its return. */
function unbooked({ events }: FaultyFleet): readonly string[] {
  const booked = new Set(events.flatMap((event) => (event.type === 'session_booked' ? [event.attemptId] : [])));
  const lost = events.flatMap((event) => (event.type === 'session_host_lost' ? [event.attemptId] : []));
  return lost.filter((attemptId) => !booked.has(attemptId));
}

/** Runs the job during the fault. Throws with the whole history when a check fails. */
export async function expectJobDone(program: string, fault: FleetFault, bigBytes: number): Promise<void> {
  const { leaseSeconds = 15, diskBytes } = fault;
  const fleet = await FaultyFleet.open(program, { leaseSeconds, bigBytes, ...(diskBytes ? { diskBytes } : {}) });
  try {
    await fleet.begin();
    await fleet.untilHeld();
    const healing = fault.happen(fleet, fleet.hostOf('four'));
    await Promise.race([healing, fleet.end()]);
    const bring = await healing;
    expect((await fleet.end()).code).toBe(0);
    await bring?.();
    for (let more = 0; more < bookingsMax && unbooked(fleet).length > 0; more += 1) {
      fleet.startRunner();
      expect((await fleet.end()).code).toBe(0);
    }
    await expectAllOnce(fleet);
  } catch (error) {
    throw new Error(`${fault.name}\n${fleet.story()}`, { cause: error });
  } finally {
    await fleet.close();
  }
}

async function expectAllOnce(fleet: FaultyFleet): Promise<void> {
  const { state, events, accepted, api } = fleet;
  expect(state.status).toBe('completed');
  const names = job.map(([name]) => name).toSorted();
  const done = events.flatMap((event) => (event.type === 'session_completed' ? [event.sessionId] : []));
  expect(done.toSorted()).toEqual([...state.sessions.keys()].toSorted());
  expect(accepted.toSorted()).toEqual(names);
  expect(unbooked(fleet)).toEqual([]);
  expectBooks(fleet);
  for (const host of fleet.hosts) {
    await untilTrue(() => host.isOff || host.pids(claude).length === 0, 'no claude is left');
  }
  expect(api.problems).toEqual([]);
  await fleet.user.ok('group', 'merge', fleet.group);
  const commits = repositories.flatMap((name) =>
    git(fleet.user.project(name), 'log', '--no-merges', '--format=%s', '--extended-regexp', '--grep=^[a-z]+ [12]$')
      .split('\n')
      .filter((line) => line !== ''),
  );
  expect(commits.toSorted()).toEqual(names.flatMap((name) => [`${name} 1`, `${name} 2`]).toSorted());
}

/** The possible further cost of a killed claude is held, at most one message each. */
function expectBooks({ state, events, api }: FaultyFleet): void {
  const { costUsd, heldUsd = 0 } = state.usage;
  const asked = api.served.total.costUsd;
  const attempts = events.filter(({ type }) => type === 'session_starting').length;
  expect(heldUsd).toBeLessThanOrEqual((attempts - job.length) * firstMessageUsd);
  expect(roundUsd(costUsd - heldUsd)).toBeLessThanOrEqual(roundUsd(asked));
  expect(roundUsd(costUsd)).toBeGreaterThanOrEqual(roundUsd(asked));
  expect(state.reservedUsd).toBeCloseTo(0, 9);
}
