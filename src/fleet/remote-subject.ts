/** What an attempt on another machine is about, and how it is spoken to. */
import type { Place } from '../core/event.ts';
import type { SessionDefinition, Workspace } from '../core/group.ts';
import type { Git } from '../git/git.ts';
import type { AttemptSubject } from '../worker/host.ts';
import type { BlobStore } from './engine.ts';
import type { WorkShipper } from './ship-work.ts';
import type { SlotCommand } from './wire.ts';

export interface RemoteSubject extends AttemptSubject {
  readonly groupId: string;
  readonly place: Place;
  /** Of the session, from 1. */
  readonly number: number;
  /** Bytes of the transcript before it. */
  readonly offset: number;
  readonly definition: SessionDefinition;
  /** It is waited for, however long its machine is lost. */
  readonly waits: boolean;
  /** Undefined while it has no worktree. */
  readonly workspace: () => Workspace | undefined;
  readonly packageRoot: string;
  readonly git: Git;
  readonly blobs: BlobStore;
  readonly shipper: WorkShipper;
}

/** Says something about one slot. */
export interface Sender {
  say(command: SlotCommand): void;
  /** The machine has heard what an earlier runner said, up to this number. */
  goOnFrom(lastN: number): void;
  /** Asks the machine what it has of the group. */
  hello(): void;
  later(ms: number, action: () => void): void;
}
