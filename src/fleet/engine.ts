/**
 * What both ends of a fleet need of the engine between them: streams, slots with leases, bytes that are kept for a
 * while, and who is there. The real one is Redis (redis.ts, leases.ts). Whatever is asked is answered or fails within
 * seconds; what was not answered may have been done.
 */
import type { Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import type { Seal } from './seal.ts';
import type { Blob, Wish } from './wire.ts';

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
  /** Calls `action` after each new wish; a hint only. */
  onWish(action: () => void): Promise<void>;
  send(stream: string, messages: readonly Uint8Array[]): Promise<Result<string[]>>;
  /** What comes after that entry (`0` = all), waiting a moment for the first. */
  read(stream: string, after: string): Promise<Result<Entry[]>>;
  have(stream: string, ids: readonly string[]): Promise<Result<boolean[]>>;
  drop(stream: string, ids: readonly string[]): Promise<Result<void>>;
  setField(key: string, field: string, value: Uint8Array): Promise<Result<void>>;
  fields(key: string): Promise<Result<Readonly<Record<string, Uint8Array>>>>;
  members(key: string): Promise<Result<readonly string[]>>;
  /** Changes with every start of the engine. */
  runId(): Promise<Result<string>>;
  /** Milliseconds since 1970 by its clock, which is the same for all machines. */
  nowMs(): Promise<Result<number>>;
  close(): void;
}

export interface WishPlace {
  readonly labelSet: string;
  readonly job: string;
}

/** Nobody but who knows the token can renew or complete it. */
export interface Lease extends WishPlace {
  readonly token: string;
}

export interface TakenWish extends Lease {
  readonly wish: Wish;
}

export interface WishOptions {
  readonly labels: readonly string[];
  readonly priority: number;
  readonly job?: string;
}

export interface SlotLeases {
  wish(wish: Wish, options: WishOptions): Promise<Result<WishPlace>>;
  /** Takes it back; false when somebody holds it, so that it is not free before they let go. */
  withdraw(place: WishPlace): Promise<Result<boolean>>;
  /** The first wish that a machine with these labels can grant, now held under the token; null when there is none. */
  take(labels: readonly string[], token: string): Promise<Result<TakenWish | null>>;
  /** Which of them are held by their tokens no more. Fails without an answer: then that is not known. */
  renew(leases: readonly Lease[]): Promise<Result<ReadonlySet<Lease>>>;
  /** Gives the slot back; false when it was not held under that token any more: then nothing is left of it either. */
  complete(lease: Lease): Promise<Result<boolean>>;
  /** For how many milliseconds each lock holds if nobody renews it; null where there is none. */
  look(places: readonly WishPlace[]): Promise<Result<(number | null)[]>>;
  /** Those that wait no more and that nobody holds: given back, forgotten, or taken by somebody who died. */
  dead<P extends WishPlace>(places: readonly P[]): Promise<Result<ReadonlySet<P>>>;
}

// Names in Redis: all begin with `cca:`, which is all that the users of a fleet may touch there.

/** Of the queues of wishes (leases.ts). */
export const queuePrefix = 'cca';
/** Told whenever there is a new wish. */
export const wishChannel = 'cca:wish';
/** Set of the label sets for which there ever was a wish, as `labelSetOf` writes them. */
export const labelSetsKey = 'cca:label-sets';
/** Hash: the name of a machine → what it says of itself, sealed. */
export const hostsKey = 'cca:hosts';
/** Set of the machines that are to take nothing new. */
export const drainedKey = 'cca:drained';
/** Hash: the name of a machine → its login that was refused, sealed. */
export const refusedLoginsKey = 'cca:refused-logins';

/** What runners say to a machine. */
export const toHostStream = (host: string): string => `cca:h:${host}`;
/** What machines say to the runner of a group. */
export const toGroupStream = (groupId: string): string => `cca:g:${groupId}`;
export const pieceKey = (blob: string, piece: number): string => `cca:b:${blob}:${piece}`;

/** The implicit label of every machine. */
export const hostLabel = (name: string): string => `host=${name}`;

const any = 'any';

export function labelSetOf(labels: readonly string[]): string {
  return labels.length === 0 ? any : [...new Set(labels)].toSorted().join('+');
}

export function labelsOf(labelSet: string): string[] {
  return labelSet === any ? [] : labelSet.split('+');
}

export const queueName = (labelSet: string): string => `slots-${labelSet}`;
