/**
 * What both ends of a fleet need of the engine between them: streams, slots with leases, bytes that are kept for a
 * while, and who is there. The real one is Redis (redis.ts). Whatever is asked is answered or fails within
 * seconds; what was not answered may have been done.
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

/** Does not wait for an answer. Fails with `usage` when the address can never be asked. */
export type OpenEngine = (world: World, address: FleetAddress) => Promise<Result<FleetEngine>>;

export interface Entry {
  readonly id: string;
  /** Null when it was not sealed with the key of the fleet. */
  readonly bytes: Uint8Array | null;
}

/** Bytes that are too many for a message. */
export interface BlobStore {
  /** Kept for an hour; the same id is the same blob. Fails with `usage` when it is too large. */
  putBlob(id: string, bytes: Uint8Array): Promise<Result<Blob>>;
  hasBlob(blob: Blob): Promise<Result<boolean>>;
  /** Fails with `gone` when it is not there any more, else when there is no answer. */
  getBlob(blob: Blob): Promise<Result<Uint8Array>>;
  dropBlob(blob: Blob): Promise<void>;
}

export interface FleetEngine extends BlobStore {
  readonly seal: Seal;
  leases(leaseMs: number): SlotLeases;
  onConnect(action: () => void): void;
  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>>;
  /** What comes after that entry (`0` = all), waiting a moment for the first. */
  read(stream: string, after: string): Promise<Result<Entry[]>>;
  drop(stream: string, ids: readonly string[]): Promise<Result<void>>;
  setField(key: string, field: string, value: Uint8Array): Promise<Result<void>>;
  fields(key: string): Promise<Result<Readonly<Record<string, Uint8Array>>>>;
  members(key: string): Promise<Result<readonly string[]>>;
  /** Changes with every start of the engine. */
  runId(): Promise<Result<string>>;
  /** Milliseconds since 1970 by its clock, which is the same for all hosts. */
  nowMs(): Promise<Result<number>>;
  close(): void;
}

interface Following {
  /** Never throws. */
  readonly hear: (entry: Entry) => void | Promise<void>;
  readonly isClosed: () => boolean;
  readonly pause: () => Promise<void>;
}

/** Hears a stream in its order, and drops what was heard. */
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
    // What is not answered may still be there.
    if (heard.length > 0 && (await engine.drop(stream, heard)).ok) heard = [];
  }
}

/** A slot of a host. Only the holder of the token can renew or free it. */
export interface Lease {
  readonly host: string;
  readonly token: string;
}

export interface SlotLeases {
  /** Takes one of so many slots of the host; false when all are held, or the host is drained. */
  take(lease: Lease, slots: number): Promise<Result<boolean>>;
  /** Which of them are held no more. Fails without an answer: then that is not known. */
  renew(leases: readonly Lease[]): Promise<Result<ReadonlySet<Lease>>>;
  free(lease: Lease): Promise<Result<void>>;
  /** For how many milliseconds each is held without a renewal; null where it is not. */
  look(leases: readonly Lease[]): Promise<Result<(number | null)[]>>;
}

// Names in Redis: all begin with `cca:`, which is all that the users of a fleet may touch there.

/** Hash: the name of a host → what it says of itself, sealed. */
export const hostsKey = 'cca:hosts';
/** Set of the hosts that are to take nothing new. */
export const drainedKey = 'cca:drained';
/** Hash: the name of a host → its login that was refused, sealed. */
export const refusedLoginsKey = 'cca:refused-logins';

/** What runners say to a host. */
export const toHostStream = (host: string): string => `cca:h:${host}`;
/** What hosts say to the runner of a group. */
export const toGroupStream = (groupId: string): string => `cca:g:${groupId}`;
export const pieceKey = (blob: string, piece: number): string => `cca:b:${blob}:${piece}`;
/** Sorted set: the token of each slot that is held → when its lease is over, ms since 1970 by the clock of Redis. */
export const slotsKey = (host: string): string => `cca:s:${host}`;
