/**
 * All events of events.jsonl. The log is the truth: reducing it rebuilds the state and every meta.json. Events contain
 * whole values, never differences.
 */
import type { Evidence } from './evidence.ts';
import type { SessionFailureReason } from './failure.ts';
import type {
  Changes,
  GroupConfig,
  GroupDefinition,
  GroupDescription,
  GroupId,
  SessionDefinition,
  SessionId,
  Usage,
  Workspace,
} from './group.ts';
import type { AnsweredBy, ItemAnswer, ItemRequest, LeftAnswer } from './item.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the system's unit (Linux: field 22 of /proc/PID/stat), as text. */
  readonly startTime: string;
  readonly host: string;
  readonly bootId: string;
}

export interface RunInfo {
  readonly id: string;
  readonly runner: ProcessIdentity;
  /** True when claude talks to the scripted API on loopback. */
  readonly rehearsal?: true;
  /** Absolute path of the rehearsal's script, which later runs reuse; absent = the default one. */
  readonly script?: string;
  /** Keep branches and worktrees of the rehearsal afterwards. */
  readonly keep?: true;
  /** The estimated maximum cost of each wave, US dollars; null = unknown. Absent = not needed. */
  readonly quotes?: readonly (number | null)[];
}

/** Why an attempt is made; decides whether the conversation is continued. */
export type AttemptKind = 'start' | 'resume' | 'retry';

/** A slot of another host, granted to one attempt. The host accepts no other token. */
export interface SlotLease {
  readonly host: string;
  readonly token: string;
}

/** The name of this machine where hosts have names. */
export const thisMachine = 'local';

/** Everything known before the process exists; logged before the spawn. */
export interface AttemptIntent {
  /** Random; also the value of the mark CLAUDE_CODE_AGENT_ATTEMPT in the worker's environment. */
  readonly id: string;
  readonly number: number;
  readonly kind: AttemptKind;
  /** Bytes of transcript.jsonl before this attempt. */
  readonly offset: number;
  /** This attempt's `--max-budget-usd`; absent = no cap. */
  readonly reservedUsd?: number;
  /** It works in a worktree of its own; decided for the first attempt, the same for all. */
  readonly isolated?: true;
  /** The first of the session's ten ports, reserved with its first attempt. */
  readonly portBase?: number;
  readonly place?: SlotLease;
  /** Answers to items of earlier attempts that the conversation lacks. */
  readonly answers?: readonly LeftAnswer[];
}

/** Why we asked a worker to stop. The first cause is kept; later ones may only escalate. */
export type StopReason =
  | 'user'
  | 'signal'
  | 'budget'
  | 'error-threshold'
  | 'deleted'
  /** Its reserved share is nearly spent, and it is to get a top-up. */
  | 'top-up'
  /** The disk is nearly full, so its output would be lost. It resumes when there is space. */
  | 'disk'
  | 'timeout'
  | 'stall'
  /** It waits for an answer, and nothing else in it proceeds. */
  | 'waits-for-answer';

export type PauseReason = StopReason | 'interrupted' | 'limit' | 'transient' | Rejecting | 'host-lost';

/** What came of the acceptance; after `guard-changed` a person decides. */
type Rejecting = 'not-accepted' | 'not-proven' | 'guard-changed';

/** `now` stops running sessions, `drain` lets them finish. */
export type PauseMode = 'now' | 'drain';

/** Information about a session for the user that does not change its outcome. */
export interface Warning {
  readonly code:
    | 'context-lost'
    | 'conversation-cut'
    | 'denied-tools'
    | 'hook-missing'
    | 'hook-failed'
    | 'mcp-server'
    | 'claude-reports'
    | 'no-changes'
    | 'open-tasks'
    | 'workspace'
    | 'malformed-lines'
    | 'empty-result'
    | 'unfinished-answer'
    | 'unknown-end'
    | 'other-model'
    | 'leftover-processes'
    | 'limit-reached'
    | 'estimated-cost'
    | 'held-cost'
    | 'guarded-files'
    | 'flaky-check';
  readonly message: string;
}

export interface MergedRepository {
  readonly repository: string;
  /** The branch that moved, without `refs/heads/`. */
  readonly into: string;
  /** Full ids of its last commit before and after. */
  readonly from: string;
  readonly to: string;
  readonly sessionIds: readonly SessionId[];
}

/** The session that did the work; never one that inherited it itself. */
export interface InheritedFrom {
  readonly groupId: GroupId;
  readonly sessionId: SessionId;
}

/** The result of a user's attached conversation. */
export type Conversed = {
  readonly usage: Usage;
  /** claude's conversation ids afterwards, the present one last; empty = it stayed in the same one. */
  readonly claudeSessionIds: readonly string[];
  readonly spoken?: true;
  /** The present conversation contains nothing of the one before, as after `/clear`. */
  readonly cleared?: true;
};

export type WaveDecision = 'continue' | 'stop';

type SessionFact = { readonly sessionId: SessionId };
type ItemFact = { readonly item: string };
/** The id is also the mark CLAUDE_CODE_AGENT_ATTEMPT of its processes. */
type TakeOverFact = SessionFact & { readonly attachmentId: string };
type AttemptFact = SessionFact & { readonly attemptId: string };
type ProcessFact = AttemptFact & { readonly attempt: number; readonly process: ProcessIdentity };

/** Text that was sent to the attempt and not read; the next attempt gets it. */
type Unread = readonly string[];

export type EventBody =
  | { readonly type: 'group_created'; readonly group: GroupDefinition }
  | { readonly type: 'group_changed'; readonly config: GroupConfig; readonly changed?: readonly string[] }
  /** A new description of the group. `changed` as in `session_changed`. */
  | { readonly type: 'group_redefined'; readonly group: GroupDescription; readonly changed: readonly string[] }
  | (SessionFact & { readonly type: 'session_added'; readonly session: SessionDefinition })
  /** The session's settings for later attempts. `changed` names the new ones; absent = unknown. */
  | (SessionFact & {
      readonly type: 'session_changed';
      readonly session: SessionDefinition;
      readonly changed?: readonly string[];
    })
  /** The session was completed in the group from which this one was copied; it costs nothing here. */
  | (SessionFact & {
      readonly type: 'session_inherited';
      readonly from: InheritedFrom;
      readonly result: string;
      readonly structured?: unknown;
      readonly work?: Changes;
      readonly isolated: boolean;
      readonly workspace?: Workspace;
      readonly mergedInto?: string;
    })
  | (SessionFact & { readonly type: 'session_removed' })
  /** The group is a rehearsal, with this script by default; an absolute path, absent = the default one. */
  | { readonly type: 'rehearsal_chosen'; readonly script?: string }
  | { readonly type: 'group_started'; readonly run: RunInfo }
  /** A later run starts; failed sessions named in `retry` become startable again. With `only`, no others start. */
  | {
      readonly type: 'group_resumed';
      readonly run: RunInfo;
      readonly retry: readonly SessionId[];
      readonly only?: readonly SessionId[];
    }
  /** Intent: an attempt is about to be spawned. Repeated for the same attempt after a crash that cost nothing. */
  | (SessionFact & { readonly type: 'session_starting'; readonly attempt: AttemptIntent })
  /** Its next attempt starts on another host; `local` is this one, an absent `from`: it had none. */
  | (SessionFact & { readonly type: 'session_moved'; readonly from?: string; readonly to: string })
  /** The attempt's host is lost. `held`: US dollars that it may have cost besides what is known. */
  | (AttemptFact & { readonly type: 'session_host_lost'; readonly host: string; readonly held: number })
  /** The total cost of an attempt on a lost host; it replaces what was known and held. */
  | (AttemptFact & { readonly type: 'session_booked'; readonly usage: Usage })
  | (ProcessFact & { readonly type: 'session_started' })
  /** The worker process of an attempt after a pause or interruption exists. */
  | (ProcessFact & { readonly type: 'session_resumed' })
  | (ProcessFact & { readonly type: 'session_retrying' })
  | (ProcessFact & { readonly type: 'session_adopted' })
  | (AttemptFact & {
      readonly type: 'session_identified';
      readonly claudeSessionId: string;
      readonly model?: string;
      readonly claudeVersion?: string;
    })
  /** Intent: the worker is asked to stop. */
  | (AttemptFact & { readonly type: 'session_stopping'; readonly reason: StopReason })
  /** A user attaches to the session from this process: it is stopped if it runs, and nothing starts it again. */
  | (TakeOverFact & { readonly type: 'session_attaching'; readonly process: ProcessIdentity })
  /** Intent: claude opens for the user; from here on it may cost something, at most this (absent = no cap). */
  | (TakeOverFact & { readonly type: 'session_attached'; readonly reservedUsd?: number })
  /** The user detached, or the attach command is gone: the session returns to the group. */
  | (TakeOverFact & { readonly type: 'session_detached' } & Conversed)
  /** Information that does not change the outcome; may also come after the session has ended. */
  | (SessionFact & { readonly type: 'session_warning'; readonly warning: Warning })
  | (AttemptFact & { readonly type: 'session_isolated'; readonly workspace: Workspace })
  /** The worker ended with a success; now its work is committed and the acceptance command runs. */
  | (AttemptFact & {
      readonly type: 'session_accepting';
      readonly result: string;
      readonly structured?: unknown;
      readonly usage: Usage;
    })
  /** The attempt ended with a success. `usage` is that of the attempt alone. */
  | (AttemptFact & {
      readonly type: 'session_completed';
      readonly result: string;
      readonly structured?: unknown;
      readonly work?: Changes;
      readonly usage: Usage;
      readonly evidence?: Evidence;
    })
  /** The attempt failed; only a retry continues. */
  | (AttemptFact & {
      readonly type: 'session_failed';
      readonly reason: SessionFailureReason;
      readonly message: string;
      readonly next: string;
      /** For `not-accepted`: the end of the acceptance command's output. */
      readonly output?: string;
      readonly usage: Usage;
      readonly unread?: Unread;
      readonly evidence?: Evidence;
    })
  /** The attempt ended before it was done; a resume continues. */
  | (AttemptFact & {
      readonly type: 'session_paused';
      readonly reason: PauseReason;
      readonly message: string;
      /** For `not-accepted`: the end of the acceptance command's output. */
      readonly output?: string;
      readonly usage: Usage;
      /** ISO 8601: it resumes by itself, but not before. */
      readonly retryAt?: string;
      /** A tool succeeded in this attempt: the count of retries after a transient failure or a stall starts again. */
      readonly progressed?: true;
      readonly unread?: Unread;
      readonly evidence?: Evidence;
    })
  /**
   * A waiting session is to be started (again), or held back. `prompt` is sent to its next attempt; `fresh` is the id
   * of the new conversation, `resumeAt` claude's id of the message from which the known one continues.
   */
  | (SessionFact & {
      readonly type: 'session_queued';
      readonly queued: boolean;
      readonly prompt?: string;
      readonly fresh?: string;
      readonly resumeAt?: string;
    })
  /** A further message of the user, for the running or the next attempt. `offset`: bytes of transcript.jsonl then. */
  | (SessionFact & { readonly type: 'session_message'; readonly text: string; readonly offset?: number })
  /** claude waits for an answer. `item` is the same id for every reader of claude's request. */
  | (AttemptFact & ItemFact & ItemRequest & { readonly type: 'item_opened'; readonly answerBy?: string })
  /** All sessions of the wave are over. `accepted`: the number of completed ones. */
  | { readonly type: 'wave_finished'; readonly wave: number; readonly accepted: number; readonly cost: number }
  /** The user must decide on the wave. */
  | (ItemFact & {
      readonly type: 'item_opened';
      readonly kind: 'wave';
      readonly wave: number;
      readonly text: string;
      readonly options: readonly string[];
      readonly answerBy?: undefined;
    })
  /** `note` is added to the prompts of all sessions that have not started. */
  | {
      readonly type: 'wave_decided';
      readonly wave: number;
      readonly decision: WaveDecision;
      readonly by: 'user' | 'rule';
      readonly note?: string;
    }
  /** `from`: the item whose stored answer is used for this one. */
  | (SessionFact &
      ItemFact & {
        readonly type: 'item_answered';
        readonly by: AnsweredBy;
        readonly answer: ItemAnswer;
        readonly from?: string;
      })
  | (SessionFact & ItemFact & { readonly type: 'item_withdrawn' })
  /** No progress for `silentMs` milliseconds: first reported, then it is interrupted and resumed. */
  | (AttemptFact & {
      readonly type: 'session_stalled';
      readonly step: 'notice' | 'interrupt';
      readonly silentMs: number;
    })
  /** Once: the share `warningThreshold` of the budget is spent. Amounts in US dollars. */
  | { readonly type: 'budget_warning'; readonly usage: number; readonly limit: number }
  /** The budget does not allow a further start (or, with `continued`, would not have). */
  | {
      readonly type: 'budget_exceeded';
      readonly action: 'stopped' | 'paused' | 'continued';
      readonly usage: number;
      readonly limit: number;
    }
  /** Once: the share `warningThreshold` of the session's own cap is spent. */
  | (SessionFact & { readonly type: 'session_budget_warning'; readonly usage: number; readonly limit: number })
  /** The session's own cap is exhausted; the group continues. `stopped`: as a failure of the group. */
  | (SessionFact & {
      readonly type: 'session_budget_exceeded';
      readonly action: 'stopped' | 'paused';
      readonly usage: number;
      readonly limit: number;
    })
  /** Intent: nothing new starts and all sessions are being stopped, or left to finish; absent mode = now. */
  | { readonly type: 'group_pausing'; readonly reason: StopReason; readonly mode?: PauseMode }
  /** Every process of the group was halted; at `until` (ISO 8601) it becomes a pause. */
  | { readonly type: 'group_frozen'; readonly until: string }
  | { readonly type: 'group_thawed' }
  /** A limit of the login: nothing starts before `resetsAt` (ISO 8601), then one session first. */
  | { readonly type: 'limit_reached'; readonly resetsAt: string; readonly limitType?: string }
  /** The first session after the reset got an answer; the others follow. */
  | { readonly type: 'limit_lifted' }
  /** The run is over and can be resumed. `message` is a full sentence; `groupAdvice` finds the next step. */
  | { readonly type: 'group_paused'; readonly reason: string; readonly message: string }
  | { readonly type: 'group_completed' }
  /** The run is over and needs a retry. `message` is a full sentence. */
  | { readonly type: 'group_failed'; readonly reason: string; readonly message: string }
  /** Held money (Usage.heldUsd) was spent or freed. `usage`: of all ended attempts, without held money. */
  | (SessionFact & { readonly type: 'session_cost_settled'; readonly usage: Usage })
  /** The work of these sessions is now part of the named branches. */
  | { readonly type: 'group_merged'; readonly merged: readonly MergedRepository[] }
  | (SessionFact & { readonly type: 'session_cleaned' })
  | { readonly type: 'group_archived' }
  /** The answer to a request of another process; `message` is empty on success. */
  | {
      readonly type: 'request_answered';
      readonly requestId: string;
      readonly done: boolean;
      readonly message: string;
      readonly sessionId?: SessionId;
    };

/** One line of events.jsonl. `at` is ISO 8601, UTC; `seq` counts from 1 without gaps. */
export type GroupEvent = { readonly seq: number; readonly at: string; readonly groupId: GroupId } & EventBody;

export type EventType = EventBody['type'];

/** The events of `--output json` (docs/reference/codes.md), some under another name; the others are internal. */
export const publicEventTypes: ReadonlySet<string> = new Set([
  'session_changed',
  'group_changed',
  'group_redefined',
  'group_started',
  'session_started',
  'session_progress',
  'session_completed',
  'session_failed',
  'session_paused',
  'session_resumed',
  'session_retrying',
  'session_stalled',
  'session_parked',
  'item_opened',
  'item_answered',
  'item_withdrawn',
  'wave_finished',
  'wave_decided',
  'session_host_lost',
  'session_moved',
  'session_booked',
  'session_adopted',
  'budget_warning',
  'budget_exceeded',
  'session_budget_warning',
  'session_budget_exceeded',
  'limit_reached',
  'limit_lifted',
  'group_paused',
  'group_resumed',
  'group_completed',
  'group_failed',
  'group_archived',
]);
