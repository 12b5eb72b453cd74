/** The list of hosts: each writes its own entry as often as it renews its leases, and stays until it is forgotten. */
import type { z } from 'zod';
import { ok, type Result } from '../core/failure.ts';
import { parseJson } from '../store/json.ts';
import type { FleetEngine, FleetRedis } from './redis.ts';
import { drainedKey, hostsKey, refusedLoginsKey, slotsKey, toHostStream } from './redis.ts';
import { type HostEntry, hostEntry, type RefusedLogin, refusedLogin, wireVersion } from './wire.ts';

export interface RegisteredHost extends HostEntry {
  /** It must take no new sessions. */
  readonly isDrained: boolean;
  /** Time since its last report, by the clock of Redis. */
  readonly silentMs: number;
  /** Its present login was refused: claude's message. */
  readonly loginTrouble?: string;
}

/** Each entry is sealed for its own name, so none can be moved to another one. */
const placeOf = (name: string): string => `${hostsKey}/${name}`;
const refusedPlaceOf = (name: string): string => `${refusedLoginsKey}/${name}`;

export function registerHost(engine: FleetEngine, entry: HostEntry): Promise<Result<void>> {
  const sealed = engine.seal.seal(placeOf(entry.name), Buffer.from(JSON.stringify(entry)));
  return engine.setField(hostsKey, entry.name, sealed);
}

/** Sorted by name. Entries not written by a host of the fleet are ignored. */
export async function listHosts(engine: FleetEngine): Promise<Result<RegisteredHost[]>> {
  const now = await engine.nowMs();
  if (!now.ok) return now;
  const all = await engine.fields(hostsKey);
  if (!all.ok) return all;
  const refused = await engine.fields(refusedLoginsKey);
  if (!refused.ok) return refused;
  const drained = await engine.members(drainedKey);
  if (!drained.ok) return drained;
  const hosts = Object.entries(all.value).flatMap(([name, sealed]) => {
    const entry = parsed(hostEntry, engine.seal.open(placeOf(name), sealed));
    if (entry?.name !== name) return [];
    const silentMs = Math.max(0, now.value - entry.seenAt);
    const host = { ...entry, silentMs, isDrained: drained.value.includes(name) };
    const refusal = refused.value[name];
    const opened = refusal === undefined ? null : engine.seal.open(refusedPlaceOf(name), refusal);
    return [withLogin(host, parsed(refusedLogin, opened))];
  });
  return ok(hosts.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
}

/** It has been silent for longer than it may work alone, so everything that ran there is over. */
export function isLost({ silentMs, leaseMs }: RegisteredHost): boolean {
  return silentMs > leaseMs;
}

/** How often a host reports and renews its leases. */
export const heartbeatMs = (leaseMs: number): number => Math.floor(Math.min(5_000, leaseMs / 6));

/** It has missed two heartbeats. */
export function isSilent({ silentMs, leaseMs }: RegisteredHost): boolean {
  return silentMs > Math.max(2.5 * heartbeatMs(leaseMs), Math.min(5_000, leaseMs / 2));
}

/** Its program understands the orders of this one. */
export function isCompatible({ abilities }: RegisteredHost): boolean {
  return abilities.wire === wireVersion;
}

export function takesNew(host: RegisteredHost): boolean {
  const isRefusing = host.refusal !== undefined || host.loginTrouble !== undefined || !isCompatible(host);
  const isWell = !isRefusing && host.isFull !== true;
  return !isSilent(host) && !host.isDrained && host.isGuarded && isWell;
}

function parsed<T>(shape: z.ZodType<T>, bytes: Uint8Array | null): T | null {
  return bytes === null ? null : (shape.safeParse(parseJson(Buffer.from(bytes).toString())).data ?? null);
}

/** Its login counts as refused until it changes; without a key any login does. */
export function withLogin<H extends HostEntry>(host: H, refused: RefusedLogin | null): H & { loginTrouble?: string } {
  const isSame = refused !== null && (refused.key === undefined || refused.key === host.abilities.loginKey);
  return isSame ? { ...host, loginTrouble: refused.trouble } : host;
}

export function refuseLogin(engine: FleetEngine, name: string, refused: RefusedLogin): Promise<Result<void>> {
  const sealed = engine.seal.seal(refusedPlaceOf(name), Buffer.from(JSON.stringify(refused)));
  return engine.setField(refusedLoginsKey, name, sealed);
}

export async function drainHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const added = await redis.ask((client) => client.sadd(drainedKey, name));
  return added.ok ? ok(undefined) : added;
}

/** It takes sessions again, even with a login that was refused. */
export async function resumeHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const removed = await redis.ask(async (client) => {
    await client.srem(drainedKey, name);
    await client.hdel(refusedLoginsKey, name);
  });
  return removed.ok ? ok(undefined) : removed;
}

/** Removes its entry and the messages to it. A live host returns by itself. */
export async function forgetHost(redis: FleetRedis, name: string): Promise<Result<void>> {
  const removed = await redis.ask(async (client) => {
    await client.hdel(hostsKey, name);
    await client.srem(drainedKey, name);
    await client.hdel(refusedLoginsKey, name);
    await client.unlink(toHostStream(name), slotsKey(name));
  });
  return removed.ok ? ok(undefined) : removed;
}
