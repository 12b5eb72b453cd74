/** Facts for the runner. Callbacks only put them into its inbox; the loop handles them in order. */
import type { Outcome } from '../claude/outcome.ts';
import type { EventBody, ProcessIdentity, StopReason, Warning } from '../core/event.ts';
import type { Evidence } from '../core/evidence.ts';
import type { SessionFailure } from '../core/failure.ts';
import type { Changes, SessionId, Usage, Workspace } from '../core/group.ts';
import type { ItemRequest } from '../core/item.ts';

export type RunnerSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export type WorkerNews =
  /** The worker process exists (or was found again); a new one has not received its prompt yet. */
  | { readonly kind: 'spawned'; readonly process: ProcessIdentity }
  | {
      readonly kind: 'identified';
      readonly claudeSessionId: string;
      readonly model?: string;
      readonly claudeVersion?: string;
    }
  /** Its worktree exists; `notes` are sentences for the user. */
  | { readonly kind: 'isolated'; readonly workspace: Workspace; readonly notes: readonly string[] }
  /** Warnings for the user before its worker exists. */
  | { readonly kind: 'noticed'; readonly warnings: readonly Warning[] }
  /** The verdict of the acceptance, after the worker was gone. */
  | { readonly kind: 'judged'; readonly verdict: AcceptanceVerdict }
  /** The model's first answer; other sessions may have waited for it. */
  | { readonly kind: 'answered' }
  /** claude waits for an answer of the user; an adopted worker reports it again. */
  | { readonly kind: 'asked'; readonly request: ItemRequest }
  /** It no longer waits. */
  | { readonly kind: 'unasked'; readonly requestId: string }
  /** The worker printed a line; its shown activity may have changed. */
  | { readonly kind: 'activity' }
  /** Its host no longer reports; the end of the attempt follows. */
  | { readonly kind: 'host-lost'; readonly host: string; readonly knownUsd: number }
  /** Its lost host has reported everything. */
  | { readonly kind: 'booked'; readonly usage: Usage }
  /** The process is gone, its transcript read to the end, and none of its processes is left. */
  | {
      readonly kind: 'ended';
      readonly outcome: Outcome;
      readonly usage: Usage;
      readonly progressed: boolean;
      /** Messages to it that claude did not read. */
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

/** A check failed. */
export interface Rejected {
  readonly reason: 'not-accepted' | 'not-proven';
  /** A sentence. */
  readonly message: string;
  /** The end of what the command printed. */
  readonly output: string;
  /** The next step for a person. */
  readonly next: string;
  /** Another turn of claude would not help. */
  readonly isFinal?: true;
  readonly evidence?: Evidence;
}

/** Its login was refused, which says nothing about its work. */
export function isRefusedLogin(outcome: Outcome): outcome is Extract<Outcome, { status: 'failed' }> {
  return outcome.status === 'failed' && (outcome.reason === 'not-logged-in' || outcome.reason === 'billing');
}

export type WorkerFact = { readonly sessionId: SessionId; readonly attemptId: string } & WorkerNews;

export type BookedFact = Extract<WorkerFact, { readonly kind: 'booked' }>;

/** The attach command is gone, with all processes it started. */
export interface AttachFact {
  readonly kind: 'left-by-person';
  readonly event: EventBody;
}

export type Fact =
  | WorkerFact
  | AttachFact
  | { readonly kind: 'signal'; readonly signal: RunnerSignal }
  /** A slot of another host was granted, or the known state of hosts has changed. */
  | { readonly kind: 'placed' }
  /** There may be a new request. */
  | { readonly kind: 'wake' }
  /** A fixed time has passed. */
  | { readonly kind: 'tick' };
