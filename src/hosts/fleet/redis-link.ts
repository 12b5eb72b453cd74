/** The link to the machines through Redis. */
import { ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { World } from '../../world/world.ts';
import type { FleetConfig } from './fleet-files.ts';
import { toGroupStream, toHostStream } from './keys.ts';
import { Leases, type WishPlace } from './leases.ts';
import type { FleetLink, LeaseLook } from './link.ts';
import { FleetRedis } from './redis.ts';
import { listHosts, type RegisteredHost } from './registry.ts';
import { Signer } from './seal.ts';
import { type ToGroup, type ToHost, toGroup, wireVersion } from './wire.ts';

const againMs = 500;
const closeMsMax = 5_000;
const atOnce = 64;

/** Fails with `usage` when the address of Redis cannot be used. Does not wait for an answer. */
export async function openRedisLink(world: World, config: FleetConfig, groupId: string): Promise<Result<FleetLink>> {
  const redis = await FleetRedis.open(world, config);
  return redis.ok ? ok(new RedisLink(world, redis.value, config, groupId)) : redis;
}

class RedisLink implements FleetLink {
  readonly blobs: FleetRedis;
  readonly #world: World;
  readonly #redis: FleetRedis;
  readonly #leases: Leases;
  readonly #signer: Signer;
  readonly #groupId: string;
  readonly #unsent = new Map<string, ToHost[]>();
  readonly #sending = new Map<string, Promise<void>>();
  #taken: string[] = [];
  #isClosed = false;

  constructor(world: World, redis: FleetRedis, { leaseMs, signingKey }: FleetConfig, groupId: string) {
    this.#world = world;
    this.#redis = redis;
    this.blobs = redis;
    this.#leases = new Leases(world, redis, leaseMs);
    this.#signer = new Signer(signingKey);
    this.#groupId = groupId;
  }

  wish(sessionId: SessionId, labels: readonly string[], priority: number): Promise<Result<WishPlace>> {
    return this.#leases.wish({ groupId: this.#groupId, sessionId, wire: wireVersion }, { labels, priority });
  }

  async withdraw(place: WishPlace): Promise<void> {
    // What stays is offered to us, and given back then.
    await this.#leases.withdraw(place);
  }

  async lostWishes(places: readonly WishPlace[]): Promise<readonly boolean[]> {
    const lost = await this.#leases.lost(places);
    return lost.ok ? lost.value : places.map(() => false);
  }

  send(host: string, message: ToHost): void {
    const unsent = this.#unsent.get(host) ?? [];
    this.#unsent.set(host, unsent);
    unsent.push(message);
    if (!this.#sending.has(host)) this.#sending.set(host, this.#sendAll(host, unsent));
  }

  async #sendAll(host: string, unsent: ToHost[]): Promise<void> {
    const stream = toHostStream(host);
    while (unsent.length > 0) {
      const part = unsent.slice(0, atOnce);
      const sent = await this.#redis.send(
        stream,
        part.map((message) => this.#signer.sign(stream, JSON.stringify(message))),
      );
      if (sent.ok) unsent.splice(0, part.length);
      else if (this.#isClosed) break;
      else await this.#pause();
    }
    this.#sending.delete(host);
  }

  listen(hear: (message: ToGroup, taken: () => void) => void): void {
    void this.#listen(hear);
  }

  async #listen(hear: (message: ToGroup, taken: () => void) => void): Promise<void> {
    const stream = toGroupStream(this.#groupId);
    for (let after = '0'; !this.#isClosed; ) {
      const read = await this.#redis.read(stream, after);
      if (this.#isClosed) return;
      if (!read.ok) {
        await this.#pause();
        continue;
      }
      for (const { id, bytes } of read.value) {
        after = id;
        const taken = (): void => this.#drop(id);
        const message = parsed(bytes);
        // Of another version, or of nobody: nobody here would ever take it.
        if (message === null) taken();
        else hear(message, taken);
      }
    }
  }

  #drop(id: string): void {
    this.#taken.push(id);
    if (this.#taken.length === 1) this.#world.clock.after(0, () => void this.#dropAll());
  }

  async #dropAll(): Promise<void> {
    const ids = this.#taken;
    this.#taken = [];
    const dropped = await this.#redis.drop(toGroupStream(this.#groupId), ids);
    // One that stays is heard again by a later runner, who knows it then.
    if (!dropped.ok && !this.#isClosed) for (const id of ids) this.#drop(id);
  }

  async look(places: readonly WishPlace[]): Promise<LeaseLook | null> {
    const left = await this.#leases.look(places);
    const server = await this.#redis.ask((redis) => redis.info('server'));
    if (!left.ok || !server.ok) return null;
    return { left: left.value, server: /^run_id:(\w+)/m.exec(server.value)?.[1] ?? '' };
  }

  hosts(): Promise<Result<readonly RegisteredHost[]>> {
    return listHosts(this.#redis);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(againMs, resolve);
    });
  }

  async close(): Promise<void> {
    const sent = Promise.all([...this.#sending.values()]);
    const late = new Promise<void>((resolve) => {
      this.#world.clock.after(closeMsMax, resolve);
    });
    await Promise.race([sent, late]);
    await Promise.race([this.#dropAll(), late]);
    this.#isClosed = true;
    this.#redis.close();
  }
}

function parsed(bytes: Uint8Array | null): ToGroup | null {
  try {
    return bytes === null ? null : toGroup.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    return null;
  }
}
