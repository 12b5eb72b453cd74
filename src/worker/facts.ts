/** Facts: what the runner's inbox receives. The loop handles them in order. */
import type { Outcome } from '../claude/outcome.ts';
import type { EventBody, ProcessIdentity, StopReason, Warning } from '../core/event.ts';
import type { Evidence } from '../core/evidence.ts';
import type { SessionFailure } from '../core/failure.ts';
import type { Changes, SessionId, Usage, Workspace } from '../core/group.ts';
import type { ItemRequest } from '../core/item.ts';

export type RunnerSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export type WorkerNews =
  /** The worker process exists. A new one has not received its prompt yet. */
  | { readonly kind: 'spawned'; readonly process: ProcessIdentity }
  | {
      readonly kind: 'identified';
      readonly claudeSessionId: string;
      readonly model?: string;
      readonly claudeVersion?: string;
    }
  /** Its worktree exists. `notes` are for the user. */
  | { readonly kind: 'isolated'; readonly workspace: Workspace; readonly notes: readonly string[] }
  | { readonly kind: 'noticed'; readonly warnings: readonly Warning[] }
  /** The acceptance, which follows the worker's end, has finished. */
  | { readonly kind: 'acceptance-ended'; readonly verdict: AcceptanceVerdict }
  /** The model's first answer. Other sessions may wait for it to share the prompt cache. */
  | { readonly kind: 'answered' }
  /** claude waits for an answer from the user. An adopted worker reports it again. */
  | { readonly kind: 'asked'; readonly request: ItemRequest }
  /** claude no longer waits. */
  | { readonly kind: 'unasked'; readonly requestId: string }
  /** The worker printed a line. */
  | { readonly kind: 'activity' }
  /** Its host is lost. The end of the attempt follows. */
  | { readonly kind: 'host-lost'; readonly host: string; readonly knownUsd: number }
  /** Its lost host has reported the final cost. */
  | { readonly kind: 'booked'; readonly usage: Usage }
  /** All its processes are gone, and its transcript has been read to the end. */
  | {
      readonly kind: 'ended';
      readonly outcome: Outcome;
      readonly usage: Usage;
      readonly progressed: boolean;
      /** Messages that claude did not read. */
      readonly unread: readonly string[];
    };

export type AcceptanceVerdict = { readonly warnings: readonly Warning[] } & (
  | { readonly status: 'accepted'; readonly work?: Changes; readonly evidence?: Evidence }
  | ({ readonly status: 'rejected' } & Rejected)
  /** It passes only with the session's changes of guarded files; a person decides. */
  | { readonly status: 'guard-changed'; readonly request: ItemRequest; readonly evidence: Evidence }
  | { readonly status: 'failed'; readonly failure: SessionFailure }
  | { readonly status: 'stopped'; readonly reason: StopReason | 'host-lost' }
);

export interface Rejected {
  readonly reason: 'not-accepted' | 'not-proven';
  readonly message: string;
  readonly output: string;
  readonly next: string;
  /** Another turn of claude would not help. */
  readonly isFinal?: true;
  readonly evidence?: Evidence;
}

/** The attempt failed because of its login, not its work. */
export function isRefusedLogin(outcome: Outcome): outcome is Extract<Outcome, { status: 'failed' }> {
  return outcome.status === 'failed' && (outcome.reason === 'not-logged-in' || outcome.reason === 'billing');
}

export type WorkerFact = { readonly sessionId: SessionId; readonly attemptId: string } & WorkerNews;

export type BookedFact = Extract<WorkerFact, { readonly kind: 'booked' }>;

/** The attach command and all its processes are gone. */
export interface AttachmentEndFact {
  readonly kind: 'attachment-ended';
  readonly event: EventBody;
}

export type Fact =
  | WorkerFact
  | AttachmentEndFact
  | { readonly kind: 'signal'; readonly signal: RunnerSignal }
  /** A host granted a slot, or the state of hosts has changed. */
  | { readonly kind: 'placed' }
  | { readonly kind: 'wake' }
  | { readonly kind: 'tick' };
