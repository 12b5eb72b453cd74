/** The runner's connection to the hosts, implemented over the engine. */
import type { Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import type { FleetConfig } from './fleet-files.ts';
import type { BlobStore, Entry, FleetEngine, SlotLeases } from './redis.ts';
import { follow, toGroupStream, toHostStream } from './redis.ts';
import { listHosts, type RegisteredHost, refuseLogin } from './registry.ts';
import { Signer } from './seal.ts';
import { type RefusedLogin, type ToGroup, type ToHost, unpacked } from './wire.ts';

const againMs = 500;
const closeMsMax = 5_000;
const atOnce = 64;

export type FleetLink = Pick<EngineLink, keyof EngineLink>;

export class EngineLink {
  readonly blobs: BlobStore;
  readonly slots: SlotLeases;
  readonly #world: World;
  readonly #engine: FleetEngine;
  readonly #signer: Signer;
  readonly #groupId: string;
  readonly #unsent = new Map<string, ToHost[]>();
  readonly #sending = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(world: World, engine: FleetEngine, { leaseMs, signingKey }: FleetConfig, groupId: string) {
    this.#world = world;
    this.#engine = engine;
    this.blobs = engine;
    this.slots = engine.leases(leaseMs);
    this.#signer = new Signer(signingKey);
    this.#groupId = groupId;
  }

  /** In this order for each host, with retries. */
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
      const sent = await this.#engine.send(
        stream,
        part.map((message) => this.#signer.sign(stream, JSON.stringify(message))),
      );
      if (sent.ok) unsent.splice(0, part.length);
      else if (this.#isClosed) break;
      else await this.#pause();
    }
    this.#sending.delete(host);
  }

  /** Calls `action` whenever the engine reconnects; it may have lost the last messages. */
  onConnect(action: () => void): void {
    this.#engine.onConnect(action);
  }

  /** Delivers the hosts' messages to the group, in order. Lost messages are repeated by the host. */
  listen(hear: (message: ToGroup) => void): void {
    const take = ({ bytes }: Entry) => {
      const message = bytes === null ? null : unpacked(bytes);
      if (message !== null) hear(message);
    };
    const [isClosed, pause] = [() => this.#isClosed, () => this.#pause()];
    void follow(this.#engine, toGroupStream(this.#groupId), { hear: take, isClosed, pause });
  }

  refuseLogin(host: string, refused: RefusedLogin): Promise<Result<void>> {
    return refuseLogin(this.#engine, host, refused);
  }

  hosts(): Promise<Result<readonly RegisteredHost[]>> {
    return listHosts(this.#engine);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(againMs, resolve);
    });
  }

  /** Sends pending messages, for a few seconds at most, and closes. */
  async close(): Promise<void> {
    const sent = Promise.all([...this.#sending.values()]);
    const late = new Promise<void>((resolve) => {
      this.#world.clock.after(closeMsMax, resolve);
    });
    await Promise.race([sent, late]);
    this.#isClosed = true;
    this.#engine.close();
  }
}
