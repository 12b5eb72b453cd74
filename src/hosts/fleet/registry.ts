/** Which machines there are: each says so itself as often as it renews its leases, and stays until it is forgotten. */
import { ok, type Result } from '../../core/failure.ts';
import type { FleetEngine } from './engine.ts';
import { drainedKey, hostsKey, toHostStream } from './keys.ts';
import type { FleetRedis } from './redis.ts';
import { type HostEntry, hostEntry } from './wire.ts';

export interface RegisteredHost extends HostEntry {
  /** How long ago it said something, by the clock of Redis. */
  readonly silentMs: number;
}

/** Each entry is sealed for the name under which it stands, so none can be put under another one. */
const placeOf = (name: string): string => `${hostsKey}/${name}`;

export function registerHost(engine: FleetEngine, entry: HostEntry): Promise<Result<void>> {
  const sealed = engine.seal.seal(placeOf(entry.name), Buffer.from(JSON.stringify(entry)));
  return engine.setField(hostsKey, entry.name, sealed);
}

/** In the order of their names. What was not written by a machine of the fleet is passed over. */
export async function listHosts(engine: FleetEngine): Promise<Result<RegisteredHost[]>> {
  const now = await engine.nowMs();
  if (!now.ok) return now;
  const all = await engine.fields(hostsKey);
  if (!all.ok) return all;
  const hosts = Object.entries(all.value).flatMap(([name, sealed]) => {
    const entry = parsed(engine.seal.open(placeOf(name), sealed));
    return entry?.name === name ? [{ ...entry, silentMs: Math.max(0, now.value - entry.seenAt) }] : [];
  });
  return ok(hosts.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
}

/** The same as they are now: a machine hears only a moment later that it is to take nothing new. */
export async function hostsNow(engine: FleetEngine): Promise<Result<RegisteredHost[]>> {
  const hosts = await listHosts(engine);
  if (!hosts.ok) return hosts;
  const drained = await engine.members(drainedKey);
  if (!drained.ok) return drained;
  return ok(hosts.value.map((host) => ({ ...host, isDrained: drained.value.includes(host.name) })));
}

/** Nothing was heard of it for longer than it may work alone, so whatever ran there is over. */
export function isLost({ silentMs, leaseMs }: RegisteredHost): boolean {
  return silentMs > leaseMs;
}

/** It grants wishes as soon as it has a free slot. */
export function takesNew(host: RegisteredHost): boolean {
  return !isLost(host) && !host.isDrained && host.isGuarded && host.refusal === undefined && host.isFull !== true;
}

function parsed(bytes: Uint8Array | null): HostEntry | null {
  if (bytes === null) return null;
  try {
    return hostEntry.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    return null;
  }
}

/** What it runs is finished, and it takes nothing new until it is resumed. */
export async function drainHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const added = await redis.ask((client) => client.sadd(drainedKey, name));
  return added.ok ? ok(undefined) : added;
}

export async function resumeHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const removed = await redis.ask((client) => client.srem(drainedKey, name));
  return removed.ok ? ok(undefined) : removed;
}

export async function isDrained(engine: FleetEngine, name: string): Promise<Result<boolean>> {
  const drained = await engine.members(drainedKey);
  return drained.ok ? ok(drained.value.includes(name)) : drained;
}

/** Removes what is known of it, and what was said to it. One that lives comes back by itself. */
export async function forgetHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const removed = await redis.ask(async (client) => {
    await client.hdel(hostsKey, name);
    await client.srem(drainedKey, name);
    await client.unlink(toHostStream(name));
  });
  return removed.ok ? ok(undefined) : removed;
}
