/**
 * Slots of hosts for the sessions that request one: taken where one is free, kept until the host has its order, and
 * returned when they are no longer wanted.
 */
import type { SessionId } from '../core/group.ts';
import type { SlotWish } from '../core/plan/decision.ts';
import type { Lease, SlotLeases } from './engine.ts';
import { fittingHosts } from './known-hosts.ts';
import { type RegisteredHost, takesNew } from './registry.ts';
import { type HostAbilities, wireVersion } from './wire.ts';

/** After this a session no longer waits for the host with its files, nor other sessions for it. */
const longWishMs = 5_000;

interface Wanted {
  readonly wish: SlotWish;
  readonly sinceMs: number;
  wasLong?: true;
}

interface Held {
  readonly lease: Lease;
  /** The host does not know of it yet, so the lease is renewed here. */
  isReserved: boolean;
}

export interface Granted {
  readonly place: Lease;
  readonly abilities: HostAbilities;
}

export interface PlacementOptions {
  readonly newId: () => string;
  readonly nowMs: () => number;
  /** The last list of hosts; null = unknown yet. */
  readonly hosts: () => readonly RegisteredHost[] | null;
  readonly onGranted: () => void;
}

export class Placement {
  readonly granted = new Map<SessionId, Granted>();
  readonly #leases: SlotLeases;
  readonly #options: PlacementOptions;
  readonly #wanted = new Map<SessionId, Wanted>();
  readonly #held = new Map<string, Held>();
  readonly #freeing = new Set<Promise<unknown>>();
  #isPlacing = false;
  #isAsked = false;

  constructor(leases: SlotLeases, options: PlacementOptions) {
    this.#leases = leases;
    this.#options = options;
  }

  isLong(sessionId: SessionId): boolean {
    const wanted = this.#wanted.get(sessionId);
    return wanted !== undefined && this.#isLong(wanted);
  }

  #isLong({ sinceMs }: Wanted): boolean {
    return this.#options.nowMs() - sinceMs >= longWishMs;
  }

  /** The present slot requests, the most urgent first. */
  want(wishes: readonly SlotWish[]): void {
    for (const { place } of this.granted.values()) this.release(place);
    this.granted.clear();
    const before = new Map(this.#wanted);
    this.#wanted.clear();
    for (const wish of wishes) {
      const known = before.get(wish.sessionId);
      const isSame = JSON.stringify(known?.wish) === JSON.stringify(wish);
      this.#wanted.set(wish.sessionId, known && isSame ? known : { wish, sinceMs: this.#options.nowMs() });
    }
    void this.place();
  }

  /** The session's attempt has been decided for its slot, so no other session gets it. */
  take(sessionId: SessionId): void {
    this.granted.delete(sessionId);
  }

  /** Its host has received the order, and renews the lease itself. */
  ordered({ token }: Lease): void {
    const held = this.#held.get(token);
    if (held !== undefined) held.isReserved = false;
  }

  /** True when its host knows of it and must be told. */
  release({ token }: Lease): boolean {
    const held = this.#held.get(token);
    this.#held.delete(token);
    if (held?.isReserved !== true) return true;
    const freeing = this.#leases.free(held.lease).finally(() => this.#freeing.delete(freeing));
    this.#freeing.add(freeing);
    return false;
  }

  /** Call every second. True when a session's wait has just become long. */
  tick(): boolean {
    const reserved = [...this.#held.values()].filter(({ isReserved }) => isReserved);
    if (reserved.length > 0) void this.#leases.renew(reserved.map(({ lease }) => lease));
    const long = [...this.#wanted.values()].filter((wanted) => wanted.wasLong !== true && this.#isLong(wanted));
    for (const wanted of long) wanted.wasLong = true;
    void this.place();
    return long.length > 0;
  }

  /** Looks for free slots now. */
  async place(): Promise<void> {
    this.#isAsked = true;
    if (this.#isPlacing) return;
    this.#isPlacing = true;
    while (this.#isAsked) {
      this.#isAsked = false;
      await this.#placeAll();
    }
    this.#isPlacing = false;
  }

  async #placeAll(): Promise<void> {
    const hosts = this.#options.hosts() ?? [];
    const full = new Set<RegisteredHost>();
    for (const [sessionId, wanted] of [...this.#wanted]) {
      for (const host of this.#candidates(hosts, wanted)) {
        if (full.has(host)) continue;
        const lease = { host: host.name, token: `${host.name}:${this.#options.newId()}` };
        const taken = await this.#leases.take(lease, host.slots);
        // If it was taken nevertheless, it is free when its lease ends.
        if (!taken.ok) return;
        if (taken.value) {
          this.#grant(sessionId, wanted, { place: lease, abilities: host.abilities });
          break;
        }
        full.add(host);
      }
    }
  }

  #grant(sessionId: SessionId, wanted: Wanted, granted: Granted): void {
    this.#held.set(granted.place.token, { lease: granted.place, isReserved: true });
    if (this.#wanted.get(sessionId) !== wanted) {
      this.release(granted.place);
      return;
    }
    this.#wanted.delete(sessionId);
    this.granted.set(sessionId, granted);
    this.#options.onGranted();
  }

  /** The host with the most free slots first. A host with the session's files is asked alone for a while. */
  #candidates(hosts: readonly RegisteredHost[], wanted: Wanted): readonly RegisteredHost[] {
    const { needs, prefer } = wanted.wish;
    const open = fittingHosts(hosts, needs).filter((host) => takesNew(host) && host.abilities.wire === wireVersion);
    const preferred = this.#isLong(wanted) ? [] : open.filter(({ name }) => name === prefer);
    const held = Map.groupBy(this.#held.values(), ({ lease }) => lease.host);
    // A host's own figures are some seconds old.
    const free = ({ name, slots, used }: RegisteredHost) => slots - Math.max(used, held.get(name)?.length ?? 0);
    return preferred.length > 0 ? preferred : open.toSorted((a, b) => free(b) - free(a));
  }

  /** Resolves within seconds, with every slot returned that was not ordered. */
  async close(): Promise<void> {
    this.want([]);
    await Promise.all(this.#freeing);
  }
}
