/** Opens the configured fleet for one run. Loaded only when there is a fleet. */
import { ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import { EngineLink } from '../fleet/engine-link.ts';
import { Fleet } from '../fleet/fleet.ts';
import { readFleet } from '../fleet/fleet-files.ts';
import { FleetRedis, type OpenEngine } from '../fleet/redis.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import type { World } from '../system/world.ts';
import type { BookedFact } from '../worker/facts.ts';
import { bookedEvents } from './fact-events.ts';
import { type OpenFleet, RemoteAttempts } from './remote-attempts.ts';

export interface FleetHere {
  readonly root: string;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly openEngine?: OpenEngine;
}

/** Connects a group to the fleet. Fails with `usage` when the Redis configuration cannot work. */
export type LinkFleet = (groupId: GroupId) => Promise<Result<OpenFleet>>;

export function readFleetHere(world: World, here: FleetHere): Result<LinkFleet | null> {
  const { root, callerEnv, packageRoot, openEngine = FleetRedis.open } = here;
  const read = readFleet(world.files, root, callerEnv.CLAUDE_CODE_AGENT_FLEET);
  if (!read.ok || read.value === undefined) return read.ok ? ok(null) : read;
  const config = read.value;
  return ok(async (groupId) => {
    const engine = await openEngine(world, config);
    if (!engine.ok) return engine;
    const link = new EngineLink(world, engine.value, config, groupId);
    const { leaseMs } = config;
    const git = { world, env: callerEnv };
    const localSlots = world.machine.cores;
    return ok((told) => new Fleet(world, link, { groupId, leaseMs, git, packageRoot, localSlots, ...told }));
  });
}

// Records costs that lost hosts report after the group has ended.

/** How long to wait for the reports, in milliseconds. */
const waitMs = 10_000;

export async function recordLateCosts(world: World, writer: GroupWriter, link: LinkFleet): Promise<number> {
  const { state, paths } = writer;
  const before = countUnreported(state);
  const linked = before === 0 ? null : await link(state.group.id);
  if (!linked?.ok) return 0;
  const { promise: over, resolve, reject } = Promise.withResolvers<void>();
  const take = (fact: BookedFact): void => {
    try {
      for (const event of writer.record(bookedEvents(state, fact))) elsewhere.tell(event);
      if (countUnreported(state) === 0) resolve();
    } catch (error) {
      reject(error);
    }
  };
  const elsewhere = new RemoteAttempts(world, {
    openFleet: linked.value,
    paths,
    state: () => state,
    workers: new Map(),
    enqueue: (fact) => {
      if (fact.kind === 'booked') queueMicrotask(() => take(fact));
    },
  });
  const cancel = world.clock.after(waitMs, resolve);
  try {
    elsewhere.begin();
    await over;
  } finally {
    cancel();
    await elsewhere.close();
  }
  return before - countUnreported(state);
}

/** Counts lost attempts whose cost is still held. */
function countUnreported({ sessions }: GroupState): number {
  const lost = [...sessions.values()].flatMap((record) => record.lost ?? []);
  return lost.filter(({ attempt, usage }) => attempt.reservedUsd === undefined || usage.heldUsd !== undefined).length;
}
