/** The machines of a fleet, seen from where groups are run. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { FleetRedis } from '../../hosts/fleet/redis.ts';
import * as registry from '../../hosts/fleet/registry.ts';
import type { Place } from '../place.ts';
import { knownFleet, withRedis } from './init.ts';

export type FleetHost = registry.RegisteredHost;

/** Fails with `not-found` without a fleet, with `timeout` when Redis does not answer. */
export async function listHosts(place: Place, root: string): Promise<Result<FleetHost[]>> {
  const fleet = knownFleet(place, root);
  return fleet.ok ? withRedis(place.world, fleet.value, hostsIn) : fleet;
}

/** A machine hears only a moment later that it is drained. */
export async function hostsIn(redis: FleetRedis): Promise<Result<FleetHost[]>> {
  const hosts = await registry.listHosts(redis);
  if (!hosts.ok) return hosts;
  const drained = await Promise.all(hosts.value.map(({ name }) => registry.isDrained(redis, name)));
  return ok(hosts.value.map((host, index) => ({ ...host, isDrained: drainedNow(host, drained[index]) })));
}

function drainedNow({ isDrained }: FleetHost, asked: Result<boolean> | undefined): boolean {
  return asked?.ok === true ? asked.value : isDrained;
}

/** Nothing was heard of it for longer than it may work alone, so whatever ran there is over. */
export function isLost({ silentMs, leaseMs }: FleetHost): boolean {
  return silentMs > leaseMs;
}

/** The value: the machine as it was. Fails with `not-found` when no machine of that name has joined. */
export async function setDraining(
  place: Place,
  root: string,
  name: string,
  isDraining: boolean,
): Promise<Result<FleetHost>> {
  const fleet = knownFleet(place, root);
  if (!fleet.ok) return fleet;
  return withRedis(place.world, fleet.value, async (redis) => {
    const hosts = await hostsIn(redis);
    if (!hosts.ok) return hosts;
    const host = hosts.value.find((one) => one.name === name);
    if (host === undefined) return unknownHost(name, hosts.value);
    const set = await (isDraining ? registry.drainHost : registry.resumeHost)(redis, name);
    return set.ok ? ok(host) : set;
  });
}

/** Takes it off the list. */
export async function dropHost(place: Place, root: string, name: string): Promise<Result<void>> {
  const fleet = knownFleet(place, root);
  return fleet.ok ? withRedis(place.world, fleet.value, (redis) => registry.forgetHost(redis, name)) : fleet;
}

export function unknownHost(name: string, hosts: readonly { readonly name: string }[]) {
  const known = hosts.map((host) => host.name).join(', ');
  const message = `There is no machine ${JSON.stringify(name)} in the fleet.`;
  if (known !== '') return fail('not-found', message, `There are: ${known}.`);
  return fail('not-found', message, advise('Let one join with', ['host', 'add', 'NAME', '--ssh', 'USER@HOST']));
}
