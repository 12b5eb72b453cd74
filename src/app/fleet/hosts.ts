/** Lists and drains the hosts of a fleet. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nearest } from '../../core/nearest.ts';
import { readAdded } from '../../fleet/fleet-files.ts';
import { describeHosts } from '../../fleet/known-hosts.ts';
import * as registry from '../../fleet/registry.ts';
import type { AppContext } from '../app-context.ts';
import { knownFleet, withRedis } from './init.ts';

export type FleetHost = registry.RegisteredHost;
export const { isLost, isSilent } = registry;
export { describeHosts };

/** Fails with `not-found` without a fleet, and with `timeout` if Redis does not answer. */
export async function fleetHosts(context: AppContext, root: string): Promise<Result<FleetHost[]>> {
  const fleet = knownFleet(context, root);
  return fleet.ok ? withRedis(context.world, fleet.value, registry.listHosts) : fleet;
}

/** Returns the host as it was before. */
export async function setDraining(
  context: AppContext,
  root: string,
  name: string,
  isDraining: boolean,
): Promise<Result<FleetHost>> {
  const fleet = knownFleet(context, root);
  if (!fleet.ok) return fleet;
  return withRedis(context.world, fleet.value, async (redis) => {
    const hosts = await registry.listHosts(redis);
    if (!hosts.ok) return hosts;
    const host = hosts.value.find((one) => one.name === name);
    if (host === undefined) return unknownHost(name, hosts.value);
    const set = await (isDraining ? registry.drainHost : registry.resumeHost)(redis, name);
    return set.ok ? ok(host) : set;
  });
}

/** Fails with `not-found` if hosts are known and none has this name; a Redis that does not answer is no reason to. */
export async function checkHostName(context: AppContext, root: string, name: string): Promise<Result<unknown>> {
  const hosts = await fleetHosts(context, root);
  return hosts.ok && !hosts.value.some((host) => host.name === name) ? unknownHost(name, hosts.value) : ok(undefined);
}

export function unknownHost(name: string, hosts: readonly { readonly name: string }[]) {
  const names = hosts.map((host) => host.name);
  const message = `There is no host ${JSON.stringify(name)} in the fleet.`;
  const near = nearest(name, names);
  const meant = near === undefined ? '' : `Did you mean ${near}? `;
  if (names.length > 0) return fail('not-found', message, `${meant}There are: ${names.join(', ')}.`);
  return fail('not-found', message, advise('Add one with', ['host', 'add', 'NAME', '--ssh', 'USER@HOST']));
}

/** Names and ssh destinations of the hosts that were added from this machine. */
export function addedHosts({ world }: AppContext, root: string): (readonly [string, string])[] {
  const added = readAdded(world.files, root);
  return added.ok ? Object.entries(added.value).map(([name, { ssh }]) => [name, ssh] as const) : [];
}
