/** What the end of the runner needs of the world between it and the machines: a real one is redis-link.ts. */
import type { Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { WishPlace } from './leases.ts';
import type { RegisteredHost } from './registry.ts';
import type { Blob, ToGroup, ToHost } from './wire.ts';

/** Bytes that are too many for a message. Fail as `FleetRedis` does. */
export interface BlobStore {
  putBlob(id: string, bytes: Uint8Array): Promise<Result<Blob>>;
  hasBlob(blob: Blob): Promise<Result<boolean>>;
  getBlob(blob: Blob): Promise<Result<Uint8Array>>;
  dropBlob(blob: Blob): Promise<void>;
}

/** What is to be seen of leases at one moment. */
export interface LeaseLook {
  /** Milliseconds for which each holds if nobody renews it; null where there is none. */
  readonly left: readonly (number | null)[];
  /** Changes with every start of the engine. */
  readonly server: string;
}

export interface FleetLink {
  readonly blobs: BlobStore;
  wish(sessionId: SessionId, labels: readonly string[], priority: number): Promise<Result<WishPlace>>;
  withdraw(place: WishPlace): Promise<void>;
  /** Which of these wishes wait no more and are held by nobody; none of them when the engine does not answer. */
  lostWishes(places: readonly WishPlace[]): Promise<readonly boolean[]>;
  /** In this order for each machine, as often as it takes. */
  send(host: string, message: ToHost): void;
  /**
   * Calls `hear` with all that machines say to the group, in the order in which it came. It comes again, also to a
   * later runner, until `taken` was called.
   */
  listen(hear: (message: ToGroup, taken: () => void) => void): void;
  /** Null when the engine does not answer. */
  look(places: readonly WishPlace[]): Promise<LeaseLook | null>;
  hosts(): Promise<Result<readonly RegisteredHost[]>>;
  /** Sends what is left to be sent, for a few seconds at most, and lets go. */
  close(): Promise<void>;
}
