/** `fleet init`, and the list of hosts, on a machine that runs groups. */

import { advise, type CommandLine } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nearest } from '../../core/nearest.ts';
import {
  type FleetConfig,
  fleetPaths,
  joinLine,
  readAdded,
  readFleet,
  readHost,
  ticketOf,
  writeFleet,
} from '../../fleet/fleet-files.ts';
import { checkAddress, type FleetAddress, FleetRedis, type RedisHealth, withoutPassword } from '../../fleet/redis.ts';
import * as registry from '../../fleet/registry.ts';
import { newFleetKeys } from '../../fleet/seal.ts';
import type { World } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';

export interface FleetInitOptions {
  readonly redis: string;
  readonly leaseMs?: number | undefined;
  readonly ca?: string | undefined;
  readonly insecure?: boolean | undefined;
}

export interface MadeFleet {
  readonly joinLine: string;
  /** False if the fleet already existed; its keys do not change. */
  readonly isNew: boolean;
  /** The join line changed, so hosts must join again. */
  readonly isChanged: boolean;
  readonly redis: string;
  readonly version: string;
  readonly leaseMs: number;
  readonly file: string;
}

const usualLeaseMs = 60_000;

/** Writes nothing if Redis is unsuitable. */
export async function makeFleet(
  context: AppContext,
  root: string,
  given: FleetInitOptions,
): Promise<Result<MadeFleet>> {
  const { world } = context;
  const before = readFleet(world.files, root);
  if (!before.ok) return before;
  const insecure = given.insecure === true;
  const url = checkAddress({ redis: given.redis, insecure });
  if (!url.ok) return url;
  const ca = given.ca === undefined ? ok(before.value?.ca) : readCertificate(context, given.ca);
  if (!ca.ok) return ca;
  const trust = { ...defined({ ca: ca.value }), ...(insecure ? { insecure } : {}) };
  const { sealingKey, signingKey, publicKey } = before.value ?? newFleetKeys();
  const config: FleetConfig = {
    version: 1,
    redis: given.redis,
    sealingKey,
    signingKey,
    publicKey,
    leaseMs: given.leaseMs ?? before.value?.leaseMs ?? usualLeaseMs,
    ...trust,
  };
  const health = await withRedis(world, config, (redis) => redis.health());
  const checked = health.ok ? checkRedis(health.value) : health;
  if (!health.ok || !checked.ok) return checked as Result<never>;
  const written = writeFleet(world.files, root, config);
  if (!written.ok) return written;
  return ok({
    joinLine: joinLine(ticketOf(config)),
    isNew: before.value === undefined,
    isChanged: before.value !== undefined && joinLine(ticketOf(before.value)) !== joinLine(ticketOf(config)),
    redis: withoutPassword(given.redis),
    version: health.value.version,
    leaseMs: config.leaseMs,
    file: fleetPaths(root).config,
  });
}

export async function withRedis<T>(
  world: World,
  address: FleetAddress,
  questions: (redis: FleetRedis) => Promise<Result<T>>,
): Promise<Result<T>> {
  const opened = await FleetRedis.open(world, address);
  if (!opened.ok) return opened;
  try {
    return await questions(opened.value);
  } finally {
    opened.value.close();
  }
}

export function joinLineOf(context: AppContext, root: string): Result<string> {
  const config = knownFleet(context, root);
  return config.ok ? ok(joinLine(ticketOf(config.value))) : config;
}

export function knownFleet({ world, env }: AppContext, root: string): Result<FleetConfig> {
  const config = readFleet(world.files, root, env.CLAUDE_CODE_AGENT_FLEET);
  if (!config.ok) return config;
  if (config.value !== undefined) return ok(config.value);
  const host = readHost(world.files, root);
  if (host.ok && host.value !== undefined) {
    const message = `This machine is the host ${host.value.name} of a fleet and runs no groups on it.`;
    return fail('not-found', message, 'Use the machine on which the fleet was created.');
  }
  return fail('not-found', 'There is no fleet in this data folder.', {
    sentence: 'Create one with',
    commands: [['fleet', 'init', '--redis', 'URL']],
  });
}

function readCertificate({ world, cwd }: AppContext, path: string): Result<string> {
  const absolute = path.startsWith('/') ? path : `${cwd}/${path}`;
  const next = 'Give --ca the PEM file of the authority that signed the certificate of Redis.';
  const found = lookAt(world.files, absolute);
  if (!found.ok) return fail('usage', `${briefPath(absolute)} ${found.trouble}.`, next);
  const text = tryPath(() => world.files.readText(absolute));
  const isPem = text.ok && text.value?.includes('-----BEGIN CERTIFICATE-----') === true;
  return isPem ? ok(text.value as string) : fail('usage', `${briefPath(absolute)} contains no PEM certificate.`, next);
}

// A fleet needs a Redis that keeps all data when its memory is full and across a restart.

/** Older versions are no longer maintained. */
const oldest = '6.2';

export function checkRedis({ version, isAppendOnly, evictionPolicy }: RedisHealth): Result<void> {
  if (!Bun.semver.satisfies(version, `>=${oldest}`)) {
    const next = `Install Redis ${oldest} or later, or Valkey.`;
    return fail('usage', `Redis ${version} is too old for a fleet.`, next);
  }
  if (evictionPolicy !== 'noeviction') {
    const message = `This Redis would forget slots in use when it is full (maxmemory-policy ${evictionPolicy}).`;
    const next =
      'Set "maxmemory-policy noeviction" in redis.conf, or now: redis-cli CONFIG SET maxmemory-policy noeviction';
    return fail('usage', message, next);
  }
  if (isAppendOnly) return ok(undefined);
  const message = 'After a restart, this Redis would not know which slots are in use (appendonly no).';
  const next = 'Set "appendonly yes" in redis.conf, or now: redis-cli CONFIG SET appendonly yes';
  return fail('usage', message, next);
}

// Lists and drains the hosts of a fleet.

export type FleetHost = registry.RegisteredHost;
export const { isCompatible, isLost, isSilent } = registry;
export { describeHosts } from '../../fleet/known-hosts.ts';

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

/** Updates a host or its login. The destination of a host that was added from here is known. */
export function updateCommand(context: AppContext, root: string, name: string): CommandLine {
  const isKnown = addedHosts(context, root).some(([added]) => added === name);
  return ['host', 'add', name, ...(isKnown ? [] : ['--ssh', 'USER@HOST'])];
}

/** Names and ssh destinations of the hosts that were added from this machine. */
export function addedHosts({ world }: AppContext, root: string): (readonly [string, string])[] {
  const added = readAdded(world.files, root);
  return added.ok ? Object.entries(added.value).map(([name, { ssh }]) => [name, ssh] as const) : [];
}
