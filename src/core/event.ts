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
  /** Start time in the system's own unit (Linux: field 22 of /proc/PID/stat), as text. */
  readonly startTime: string;
  readonly host: string;
  readonly bootId: string;
}

export interface RunInfo {
  readonly id: string;
  readonly runner: ProcessIdentity;
  /** True when claude talks to the scripted API on loopback. */
  readonly rehearsal?: true;
  /** Absolute path of the rehearsal's script, with which it goes on; absent = the default one. */
  readonly script?: string;
  /** Branches and worktrees of the rehearsal stay when it is over. */
  readonly keep?: true;
  /** What each wave was estimated to cost at most, US dollars; null = unknown. Absent = not needed. */
  readonly quotes?: readonly (number | null)[];
}

/** Why an attempt is made; it decides whether the conversation is continued. */
export type AttemptKind = 'start' | 'resume' | 'retry';

/** A slot of another machine, which was granted to one attempt. The machine does nothing for another token. */
export interface SlotLease {
  readonly host: string;
  readonly token: string;
}

/** How this machine is called where others have names. */
export const thisMachine = 'local';

/** Everything that is known before the process exists; logged before the spawn. */
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
  /** The first of ten ports of the session's own, reserved with its first attempt. */
  readonly portBase?: number;
  readonly place?: SlotLease;
  /** Answers to items of earlier attempts that the conversation lacks. */
  readonly answers?: readonly LeftAnswer[];
}

/** Why we asked a worker to stop. The first cause stays; later ones may only escalate. */
export type StopReason =
  | 'user'
  | 'signal'
  | 'budget'
  | 'error-threshold'
  | 'deleted'
  /** Its share of the money is nearly used up and it is to get a new one. */
  | 'slice'
  /** The disk is nearly full: what it prints and does would get lost. It goes on when there is room again. */
  | 'disk'
  | 'timeout'
  | 'stall'
  /** It waits for a person, and nothing else in it proceeds. */
  | 'waits-for-answer';

export type PauseReason = StopReason | 'interrupted' | 'limit' | 'transient' | 'not-accepted' | 'host-lost';

/** `now` stops running sessions, `drain` lets them finish. */
export type PauseMode = 'now' | 'drain';

/** Something a person should know about a session that does not change its outcome. */
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
    | 'unknown-line'
    | 'other-model'
    | 'odd-figures'
    | 'leftover-processes'
    | 'limit-reached'
    | 'estimated-cost'
    | 'held-cost';
  readonly message: string;
}

export interface MergedRepository {
  readonly repository: string;
  /** The branch that was moved, without `refs/heads/`. */
  readonly into: string;
  /** Full ids of its last commit before and after. */
  readonly from: string;
  readonly to: string;
  readonly sessionIds: readonly SessionId[];
}

/** The session whose work it is; never one that has inherited it itself. */
export interface InheritedFrom {
  readonly groupId: GroupId;
  readonly sessionId: SessionId;
}

/** What came of a conversation of a person with a session. */
export type Conversed = {
  readonly usage: Usage;
  /** The conversations of claude's that it went on in, the present one last; none = it stayed in the one before. */
  readonly claudeSessionIds: readonly string[];
  readonly spoken?: true;
  /** The present conversation begins with nothing of the one before, as after `/clear`. */
  readonly cleared?: true;
};

export type WaveDecision = 'continue' | 'stop';

type SessionFact = { readonly sessionId: SessionId };
type ItemFact = { readonly item: string };
/** The id is also the mark CLAUDE_CODE_AGENT_ATTEMPT of what was started for it. */
type TakeOverFact = SessionFact & { readonly attachmentId: string };
type AttemptFact = SessionFact & { readonly attemptId: string };
type ProcessFact = AttemptFact & { readonly attempt: number; readonly process: ProcessIdentity };

/** Text that was sent to the attempt and not read; the next attempt gets it. */
type Unread = readonly string[];

export type EventBody =
  | { readonly type: 'group_created'; readonly group: GroupDefinition }
  | { readonly type: 'group_changed'; readonly config: GroupConfig; readonly changed?: readonly string[] }
  /** What the group is, besides its settings, from now on. `changed` as in `session_changed`. */
  | { readonly type: 'group_redefined'; readonly group: GroupDescription; readonly changed: readonly string[] }
  | (SessionFact & { readonly type: 'session_added'; readonly session: SessionDefinition })
  /** The session's settings for later attempts. `changed` names those that are new; absent = not said. */
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
  /** The group is a rehearsal, with this script unless told otherwise; an absolute path, absent = the default one. */
  | { readonly type: 'rehearsal_chosen'; readonly script?: string }
  | { readonly type: 'group_started'; readonly run: RunInfo }
  /** A later run begins; failed sessions named in `retry` become startable again. With `only`, no others start. */
  | {
      readonly type: 'group_resumed';
      readonly run: RunInfo;
      readonly retry: readonly SessionId[];
      readonly only?: readonly SessionId[];
    }
  /** Intent: an attempt is about to be spawned. Said again for the same attempt after a crash that cost nothing. */
  | (SessionFact & { readonly type: 'session_starting'; readonly attempt: AttemptIntent })
  /** Its next attempt starts on another host; `local` is this one, an absent `from`: it has had none. */
  | (SessionFact & { readonly type: 'session_moved'; readonly from?: string; readonly to: string })
  /** The attempt's host is lost. `held`: US dollars that it may have cost besides what is known. */
  | (AttemptFact & { readonly type: 'session_host_lost'; readonly host: string; readonly held: number })
  /** What an attempt on a machine that was lost has cost in all; it replaces what was known and held of it. */
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
  /** A person takes the session over from this process: it is stopped if it runs, and nothing starts it again. */
  | (TakeOverFact & { readonly type: 'session_attaching'; readonly process: ProcessIdentity })
  /** Intent: claude opens for that person; from here on it may cost something, at most this (absent = no cap). */
  | (TakeOverFact & { readonly type: 'session_attached'; readonly reservedUsd?: number })
  /** The person has left, or the process that let them in is gone: the session is the group's again. */
  | (TakeOverFact & { readonly type: 'session_detached' } & Conversed)
  /** Something to know that does not change the outcome; may also come after the session has ended. */
  | (SessionFact & { readonly type: 'session_warning'; readonly warning: Warning })
  | (AttemptFact & { readonly type: 'session_isolated'; readonly workspace: Workspace })
  /** The worker ended and did what it was asked to; now its work is committed and the acceptance command judges it. */
  | (AttemptFact & {
      readonly type: 'session_accepting';
      readonly result: string;
      readonly structured?: unknown;
      readonly usage: Usage;
    })
  /** The attempt ended and did what it was asked to. `usage` is that of the attempt alone. */
  | (AttemptFact & {
      readonly type: 'session_completed';
      readonly result: string;
      readonly structured?: unknown;
      readonly work?: Changes;
      readonly usage: Usage;
      readonly evidence?: Evidence;
    })
  /** The attempt ended without doing so; only a retry goes on. */
  | (AttemptFact & {
      readonly type: 'session_failed';
      readonly reason: SessionFailureReason;
      readonly message: string;
      readonly next: string;
      /** For `not-accepted`: the end of what the acceptance command printed. */
      readonly output?: string;
      readonly usage: Usage;
      readonly unread?: Unread;
      readonly evidence?: Evidence;
    })
  /** The attempt ended before it was done; a resume goes on. */
  | (AttemptFact & {
      readonly type: 'session_paused';
      readonly reason: PauseReason;
      readonly message: string;
      /** ISO 8601: it resumes by itself, but not before. */
      readonly output?: string;
      readonly usage: Usage;
      /** ISO 8601: it goes on by itself, but not before. */
      readonly retryAt?: string;
      /** A tool succeeded in this attempt: the count of tries after a transient failure or a stall starts again. */
      readonly progressed?: true;
      readonly unread?: Unread;
      readonly evidence?: Evidence;
    })
  /**
   * A session that is not running is to be started (again), or is not. `prompt` is said to its next attempt; `fresh` is
   * the id of the new conversation that it begins, `resumeAt` claude's id of the message from which the known one goes
   * on.
   */
  | (SessionFact & {
      readonly type: 'session_queued';
      readonly queued: boolean;
      readonly prompt?: string;
      readonly fresh?: string;
      readonly resumeAt?: string;
    })
  /** All sessions of the wave are over. `accepted`: the number of completed ones. */
  | (SessionFact & { readonly type: 'session_message'; readonly text: string; readonly offset?: number })
  /** The user must decide on the wave. */
  | (AttemptFact & ItemFact & ItemRequest & { readonly type: 'item_opened'; readonly answerBy?: string })
  /** All sessions of the wave are over. `accepted`: the number of completed ones. */
  | { readonly type: 'wave_finished'; readonly wave: number; readonly accepted: number; readonly cost: number }
  /** A person is to decide on the wave. */
  | (ItemFact & {
      readonly type: 'item_opened';
      readonly kind: 'wave';
      readonly wave: number;
      readonly text: string;
      readonly options: readonly string[];
      readonly answerBy?: undefined;
    })
  /** `note` is added to the prompts of all sessions that were not started yet. */
  | {
      readonly type: 'wave_decided';
      readonly wave: number;
      readonly decision: WaveDecision;
      readonly by: 'user' | 'rule';
      readonly note?: string;
    }
  /** `from`: the item whose stored answer is used up by this. */
  | (SessionFact &
      ItemFact & {
        readonly type: 'item_answered';
        readonly by: AnsweredBy;
        readonly answer: ItemAnswer;
        readonly from?: string;
      })
  | (SessionFact & ItemFact & { readonly type: 'item_withdrawn' })
  /** No progress for `silentMs` milliseconds: first noticed, then it is interrupted and resumed. */
  | (AttemptFact & {
      readonly type: 'session_stalled';
      readonly step: 'notice' | 'interrupt';
      readonly silentMs: number;
    })
  /** Once: the share `warningThreshold` of the budget is used. Amounts in US dollars. */
  | { readonly type: 'budget_warning'; readonly usage: number; readonly limit: number }
  /** The budget does not allow a further start (or, with `continued`, would not have). */
  | {
      readonly type: 'budget_exceeded';
      readonly action: 'stopped' | 'paused' | 'continued';
      readonly usage: number;
      readonly limit: number;
    }
  /** Once: the share `warningThreshold` of the session's own cap is used. */
  | (SessionFact & { readonly type: 'session_budget_warning'; readonly usage: number; readonly limit: number })
  /** Its own cap does not let the session go on; the group does. `stopped`: as a failure of the group. */
  | (SessionFact & {
      readonly type: 'session_budget_exceeded';
      readonly action: 'stopped' | 'paused';
      readonly usage: number;
      readonly limit: number;
    })
  /** Intent: nothing new starts and all sessions are being stopped, or left to finish; absent mode = now. */
  | { readonly type: 'group_pausing'; readonly reason: StopReason; readonly mode?: PauseMode }
  /** Every process of the group was halted where it stood; at `until` (ISO 8601) it becomes a pause. */
  | { readonly type: 'group_frozen'; readonly until: string }
  | { readonly type: 'group_thawed' }
  /** The run is over and can be resumed. `message` is a full sentence; `groupAdvice` finds the next step. */
  | { readonly type: 'limit_reached'; readonly resetsAt: string; readonly limitType?: string }
  /** The first session after the reset got an answer; the others follow. */
  | { readonly type: 'limit_lifted' }
  /** The run is over and can be resumed. `message` is a full sentence; `groupAdvice` finds what helps. */
  | { readonly type: 'group_paused'; readonly reason: string; readonly message: string }
  | { readonly type: 'group_completed' }
  /** The work of these sessions is now part of the named branches. */
  | { readonly type: 'group_failed'; readonly reason: string; readonly message: string }
  /** Held money (Usage.heldUsd) was spent or freed. `usage`: of all ended attempts, without anything held. */
  | (SessionFact & { readonly type: 'session_cost_settled'; readonly usage: Usage })
  /** The answer to a request of another process; `message` is empty on success. */
  | { readonly type: 'group_merged'; readonly merged: readonly MergedRepository[] }
  | (SessionFact & { readonly type: 'session_cleaned' })
  | { readonly type: 'group_archived' }
  /** The answer to a request of another process; `message` is empty when it was done. */
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

/** The events that `--output json` prints (docs/reference/codes.md), some by another name; the others are internal. */
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
