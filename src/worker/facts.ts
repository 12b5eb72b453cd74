/** What the world tells the runner. Callbacks only put facts into its inbox; the loop takes them at its own pace. */
import type { Outcome } from '../claude/outcome.ts';
import type { EventBody, ProcessIdentity, StopReason, Warning } from '../core/event.ts';
import type { SessionFailure } from '../core/failure.ts';
import type { Changes, SessionId, Usage, Workspace } from '../core/group.ts';
import type { ItemRequest } from '../core/item.ts';

export type RunnerSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export type WorkerNews =
  /** The worker process exists (or was found again); a new one has not been given its prompt yet. */
  | { readonly kind: 'spawned'; readonly process: ProcessIdentity }
  | {
      readonly kind: 'identified';
      readonly claudeSessionId: string;
      readonly model?: string;
      readonly claudeVersion?: string;
    }
  /** Its worktree exists; `notes` are sentences for people. */
  | { readonly kind: 'isolated'; readonly workspace: Workspace; readonly notes: readonly string[] }
  /** What a person should know of it, before its worker exists. */
  | { readonly kind: 'noticed'; readonly warnings: readonly Warning[] }
  /** Its work was judged, after the worker was gone. */
  | { readonly kind: 'judged'; readonly verdict: AcceptanceVerdict }
  /** The model answered for the first time; others may have waited for that. */
  | { readonly kind: 'answered' }
  /** claude waits for a person; an adopted worker says so again. */
  | { readonly kind: 'asked'; readonly request: ItemRequest }
  /** It waits no longer. */
  | { readonly kind: 'unasked'; readonly requestId: string }
  /** The worker said something; what it does now may look different. */
  | { readonly kind: 'activity' }
  /** Nothing is heard of its machine any more; its end follows. */
  | { readonly kind: 'host-lost'; readonly host: string; readonly knownUsd: number }
  /** Its machine, which had been lost, has told all of it. */
  | { readonly kind: 'booked'; readonly usage: Usage }
  /** The process is gone, its transcript read to the end, and nothing of it is left. */
  | {
      readonly kind: 'ended';
      readonly outcome: Outcome;
      readonly usage: Usage;
      readonly progressed: boolean;
      /** What was said to it that claude did not read. */
      readonly unread: readonly string[];
    };

export type AcceptanceVerdict = { readonly warnings: readonly Warning[] } & (
  | { readonly status: 'accepted'; readonly work?: Changes }
  /** The command failed; `message` is a sentence, `output` the end of what it printed. */
  | { readonly status: 'rejected'; readonly message: string; readonly output: string; readonly logFile: string }
  | { readonly status: 'failed'; readonly failure: SessionFailure }
  | { readonly status: 'stopped'; readonly reason: StopReason | 'host-lost' }
);

/** Who pays for it was refused, which says nothing about its work. */
export function isRefusedLogin(outcome: Outcome): outcome is Extract<Outcome, { status: 'failed' }> {
  return outcome.status === 'failed' && (outcome.reason === 'not-logged-in' || outcome.reason === 'billing');
}

export type WorkerFact = { readonly sessionId: SessionId; readonly attemptId: string } & WorkerNews;

export type BookedFact = Extract<WorkerFact, { readonly kind: 'booked' }>;

/** The command through which a person had a session is gone, and so is what it had started. */
export interface AttachFact {
  readonly kind: 'left-by-person';
  readonly event: EventBody;
}

export type Fact =
  | WorkerFact
  | AttachFact
  | { readonly kind: 'signal'; readonly signal: RunnerSignal }
  /** A slot of another machine was granted, or what is known of machines has changed. */
  | { readonly kind: 'placed' }
  /** There may be a new request. */
  | { readonly kind: 'wake' }
  /** A fixed time has passed. */
  | { readonly kind: 'tick' };
