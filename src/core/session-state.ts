/** The state of one session at run time: a part of GroupState, changed by reduce-session.ts. */
import type { AttemptIntent, InheritedFrom, PauseReason, ProcessIdentity, StopReason, Warning } from './event.ts';
import type { Evidence } from './evidence.ts';
import type { SessionFailure } from './failure.ts';
import { type Changes, roundUsd, type SessionDefinition, type Usage, type Workspace } from './group.ts';
import { sessionUuid } from './id.ts';
import type { Item } from './item.ts';

export interface Attempt extends AttemptIntent {
  readonly startedAt: string;
  process?: ProcessIdentity;
  /** True once claude identified itself; before that it has cost nothing. */
  identified: boolean;
  /** The first cause for which it was asked to stop. */
  stopping?: StopReason;
  /** When it was asked to stop, ISO 8601. */
  stoppingAt?: string;
  /** When its process was started, and when its worker had ended, ISO 8601. */
  spawnedAt?: string;
  acceptingAt?: string;
  /** The model that the user chose after the start. */
  model?: string;
  /** Its worker's usage, once the worker is gone and the work is being accepted. */
  accepting?: Usage;
  isLost?: true;
}

/** An attempt on a lost host, until its cost is known. */
export interface LostAttempt {
  readonly attempt: Attempt;
  /** As counted now, including the held amount. */
  readonly usage: Usage;
}

/** A user is attached to the session, or about to be. */
export interface Attachment {
  readonly id: string;
  readonly process: ProcessIdentity;
  /** ISO 8601. */
  readonly since: string;
  /** It would be running without the attachment, and resumes after the detach. */
  readonly goesOn: boolean;
  /** When claude opened for the user, ISO 8601. */
  openedAt?: string;
  /** What the user may spend there, US dollars; absent = no cap. */
  reservedUsd?: number;
}

/** Stops without a request, after which the session resumes by itself. */
const autoResumedStops: ReadonlySet<StopReason> = new Set(['top-up', 'disk', 'stall', 'waits-for-answer']);

/** Whether the session resumes by itself after such a stop, unless the user holds it back. */
export function autoResumesAfter(reason: StopReason): boolean {
  return autoResumedStops.has(reason);
}

export interface Rejection {
  readonly message: string;
  readonly output: string;
  readonly answer?: SessionResult;
}

export interface SessionResult {
  readonly result: string;
  readonly structured?: unknown;
}

/** The state of a session. Each member has only what exists in that status. */
export type SessionState =
  | { readonly status: 'pending' }
  | { readonly status: 'running'; readonly attempt: Attempt }
  | { readonly status: 'paused'; readonly reason: PauseReason; readonly message: string }
  | ({ readonly status: 'completed'; readonly work?: Changes } & SessionResult)
  | { readonly status: 'failed'; readonly failure: SessionFailure };

export interface SessionRecord {
  /** With the group's shared settings. */
  definition: SessionDefinition;
  /** As the user wrote it; absent if the group has no shared settings. */
  own?: SessionDefinition;
  /** Notes that wave decisions added to its prompt. */
  notes?: readonly string[];
  state: SessionState;
  /** True when the session is to start as soon as its dependencies and the slots allow. */
  queued: boolean;
  /** Not to be started before this time, ms since 1970. */
  notBeforeMs?: number;
  attempts: number;
  transients: number;
  /** Transient failures since the user last requested a start, whatever progress was made in between. */
  transientsInAll?: number;
  /** The last attempt's prompt is in the conversation, but the model has never seen it. */
  promptUnsent?: true;
  /** Messages to the running attempt in order; the position identifies the message to claude. */
  told?: string[];
  /** Consecutive interruptions because it made no progress. */
  stalls: number;
  /** The same since the user last requested a start, whatever progress was made in between. */
  stallsInAll?: number;
  /** Interruptions because the disk was nearly full. */
  diskPauses?: number;
  /** Present while a user is attached, see plan/attachment.ts. */
  takenOver?: Attachment;
  spokenWith?: true;
  /** The attached user cleared its conversation: it continues with an empty one. */
  cleared?: true;
  taskChanged?: true;
  /** claude's id of the message from which the next attempt continues; absent = the last one. */
  resumeAt?: string;
  /** All its items, oldest first. */
  items?: readonly Item[];
  /** Messages of the user that no attempt has received yet. */
  messages: string[];
  usage: Usage;
  /** The last notice about its own cap, since that was set. */
  budgetSaid?: 'warned' | 'exceeded';
  /** Part of that sum. */
  lost?: readonly LostAttempt[];
  /** Host of the last attempt, or of the next one if it will be another. */
  host?: string;
  claudeSessionIds: string[];
  /** The model that claude reported; passed again on every later attempt. */
  model?: string;
  warnings: Warning[];
  /** Whether it works in a worktree; decided with the first attempt. */
  isolated?: boolean;
  /** The first of its ten reserved ports. */
  portBase?: number;
  /** Present once the worktree was created, absent again once it is gone. */
  workspace?: Workspace;
  /** The worktree was created again since the model last answered in it, see Workspace.remadeAt. */
  unaware?: true;
  /** claude's answer, while only acceptance is left. */
  finished?: SessionResult;
  rejections?: number;
  rejection?: Rejection;
  /** Its work was done in another group, on a branch of that group. */
  inherited?: InheritedFrom;
  mergedInto?: string;
  /** From the last acceptance. */
  evidence?: Evidence;
  /** The failure message of the last failed attempt, which the next one quotes. */
  lastFailure?: string;
  /** Wall time of ended attempts: in all, and of that before claude started and after it ended. */
  worked?: { readonly allMs: number; readonly preparingMs: number; readonly acceptingMs: number };
  /** Start of the first attempt and end of the last one, ISO 8601. */
  startedAt?: string;
  endedAt?: string;
}

export function ownDefinition({ own, definition }: Pick<SessionRecord, 'own' | 'definition'>): SessionDefinition {
  return own ?? definition;
}

/** Milliseconds of its ended attempts, including set-up and acceptance. */
export function workedMs({ worked, usage }: Pick<SessionRecord, 'worked' | 'usage'>): number {
  return Math.max(worked?.allMs ?? 0, usage.durationMs);
}

type ConversationOwner = Pick<SessionRecord, 'definition' | 'claudeSessionIds'>;

/** Which conversation a session continues; neither = the known one as it is. */
export interface ConversationChoice {
  /** Starts a new one. */
  readonly fresh?: true;
  /** Drops this many of the model's last messages, and everything after them. */
  readonly rewind?: number;
}

/** An event that may not happen in the present state: a bug of ours or a damaged log. */
export class IllegalEvent extends Error {}

export function attemptOf(record: SessionRecord, attemptId: string): Attempt {
  if (record.state.status === 'running' && record.state.attempt.id === attemptId) return record.state.attempt;
  throw new IllegalEvent(`session ${record.definition.id} has no running attempt ${attemptId}`);
}

/** claude's id of its conversation: the last one reported, or that of its first attempt. */
export function conversationId({ definition, claudeSessionIds }: ConversationOwner): string {
  return claudeSessionIds.at(-1) ?? sessionUuid(definition.id);
}

/** US dollars left of the session's own cap; infinite without one. */
export function ownBudgetLeft(record: SessionRecord): number {
  const cap = record.definition.maxBudgetUsd;
  return cap === undefined ? Number.POSITIVE_INFINITY : Math.max(0, roundUsd(cap - record.usage.costUsd));
}

/** After a user's request it does not wait out a delay, and earlier failures no longer count. */
export function queue(record: SessionRecord, queued: boolean): void {
  record.queued = queued;
  if (!queued) return;
  delete record.notBeforeMs;
  record.transients = 0;
  delete record.transientsInAll;
  delete record.rejections;
  record.stalls = 0;
  delete record.stallsInAll;
  delete record.diskPauses;
}
