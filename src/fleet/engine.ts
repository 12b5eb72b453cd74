/**
 * What both ends of a fleet need of the engine between them: streams, slots with leases, temporary blobs, and the list
 * of hosts. The real one is Redis (redis.ts). Every call answers or fails within seconds; a failed call may still have
 * taken effect.
 */
import type { Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import type { Seal } from './seal.ts';
import type { Blob } from './wire.ts';

export interface FleetAddress {
  readonly redis: string;
  readonly sealingKey: string;
  readonly ca?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** Does not wait for a connection. Fails with `usage` when the address can never work. */
export type OpenEngine = (world: World, address: FleetAddress) => Promise<Result<FleetEngine>>;

export interface Entry {
  readonly id: string;
  /** Null when it was not sealed with the fleet's key. */
  readonly bytes: Uint8Array | null;
}

/** Data too large for a message. */
export interface BlobStore {
  /** Kept for an hour; the same id is the same blob. Fails with `usage` when it is too large. */
  putBlob(id: string, bytes: Uint8Array): Promise<Result<Blob>>;
  hasBlob(blob: Blob): Promise<Result<boolean>>;
  /** Fails with `gone` when it no longer exists, otherwise when there is no answer. */
  getBlob(blob: Blob): Promise<Result<Uint8Array>>;
  dropBlob(blob: Blob): Promise<void>;
}

export interface FleetEngine extends BlobStore {
  readonly seal: Seal;
  leases(leaseMs: number): SlotLeases;
  onConnect(action: () => void): void;
  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>>;
  /** Entries after that one (`0` = all); waits a moment for the first. */
  read(stream: string, after: string): Promise<Result<Entry[]>>;
  drop(stream: string, ids: readonly string[]): Promise<Result<void>>;
  setField(key: string, field: string, value: Uint8Array): Promise<Result<void>>;
  fields(key: string): Promise<Result<Readonly<Record<string, Uint8Array>>>>;
  members(key: string): Promise<Result<readonly string[]>>;
  /** Milliseconds since 1970 by its clock, which all hosts share. */
  nowMs(): Promise<Result<number>>;
  close(): void;
}

interface Following {
  /** Never throws. */
  readonly hear: (entry: Entry) => void | Promise<void>;
  readonly isClosed: () => boolean;
  readonly pause: () => Promise<void>;
}

/** Receives a stream in order, and drops handled entries. */
export async function follow(engine: FleetEngine, stream: string, { hear, isClosed, pause }: Following): Promise<void> {
  let heard: string[] = [];
  for (let after = '0'; !isClosed(); ) {
    const read = await engine.read(stream, after);
    if (isClosed()) return;
    if (!read.ok) {
      await pause();
      continue;
    }
    for (const entry of read.value) {
      await hear(entry);
      after = entry.id;
      heard.push(entry.id);
    }
    // Without an answer the entries may still be there.
    if (heard.length > 0 && (await engine.drop(stream, heard)).ok) heard = [];
  }
}

/** A slot of a host. Only the holder of the token can renew or free it. */
export interface Lease {
  readonly host: string;
  readonly token: string;
}

export interface SlotLeases {
  /** Takes one of the host's slots; false when all are held, or the host is drained. */
  take(lease: Lease, slots: number): Promise<Result<boolean>>;
  /** The leases that are no longer held. Fails without an answer: then it is unknown. */
  renew(leases: readonly Lease[]): Promise<Result<ReadonlySet<Lease>>>;
  free(lease: Lease): Promise<Result<void>>;
  /** Remaining milliseconds of each lease without a renewal; null for one that is not held. */
  look(leases: readonly Lease[]): Promise<Result<(number | null)[]>>;
}

// Names in Redis: all begin with `cca:`, the only prefix that the users of a fleet may access.

/** Hash: host name → its sealed entry. */
export const hostsKey = 'cca:hosts';
/** Set of hosts that must take no new sessions. */
export const drainedKey = 'cca:drained';
/** Hash: host name → its refused login, sealed. */
export const refusedLoginsKey = 'cca:refused-logins';

/** Messages of runners to a host. */
export const toHostStream = (host: string): string => `cca:h:${host}`;
/** Messages of hosts to the runner of a group. */
export const toGroupStream = (groupId: string): string => `cca:g:${groupId}`;
export const pieceKey = (blob: string, piece: number): string => `cca:b:${blob}:${piece}`;
/** Sorted set: token of each held slot → end of its lease, ms since 1970 by the clock of Redis. */
export const slotsKey = (host: string): string => `cca:s:${host}`;
