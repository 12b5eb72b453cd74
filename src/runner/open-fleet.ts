/** Opens the configured fleet for one run. Loaded only when there is a fleet. */
import { ok, type Result } from '../core/failure.ts';
import type { GroupId } from '../core/group.ts';
import { openEngineLink } from '../fleet/engine-link.ts';
import { Fleet } from '../fleet/fleet.ts';
import { readFleet } from '../fleet/fleet-files.ts';
import type { OpenEngine } from '../fleet/redis.ts';
import { FleetRedis } from '../fleet/redis.ts';
import type { World } from '../system/world.ts';
import type { OpenFleet } from './remote-attempts.ts';

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
    const link = await openEngineLink(world, config, groupId, openEngine);
    if (!link.ok) return link;
    const { leaseMs } = config;
    const git = { world, env: callerEnv };
    const localSlots = world.machine.cores;
    return ok((told) => new Fleet(world, link.value, { groupId, leaseMs, git, packageRoot, localSlots, ...told }));
  });
}
