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
  /** True once claude printed who it is; before that it has cost nothing. */
  identified: boolean;
  /** The first cause for which it was asked to stop. */
  stopping?: StopReason;
  /** Since when, ISO 8601. */
  stoppingAt?: string;
  /** When its process was started, and when its worker had ended, ISO 8601. */
  spawnedAt?: string;
  acceptingAt?: string;
  /** What the user wants claude to use from now on, whatever it began with. */
  model?: string;
  /** What its worker used, once that is gone and counted and the work is being accepted. */
  accepting?: Usage;
  isLost?: true;
}

/** An attempt on a machine that was lost, until it is known what it has cost. */
export interface LostAttempt {
  readonly attempt: Attempt;
  /** As it is counted now, with what is held. */
  readonly usage: Usage;
}

/** A person has a session, or is about to have it. */
export interface Attachment {
  readonly id: string;
  readonly process: ProcessIdentity;
  /** ISO 8601. */
  readonly since: string;
  /** It would be at work without them, and goes on when they leave. */
  readonly goesOn: boolean;
  /** Since claude is open for them, ISO 8601. */
  openedAt?: string;
  /** What they may spend, US dollars; absent = no cap. */
  reservedUsd?: number;
}

/** Stops without a request, after which the session resumes by itself. */
const autoResumedStops: ReadonlySet<StopReason> = new Set(['slice', 'disk', 'stall', 'waits-for-answer']);

/** Whether the session goes on by itself after such a stop, unless a person wants it to rest. */
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

/** What the runner knows of a session. Each member carries only what exists in that status. */
export type SessionState =
  | { readonly status: 'pending' }
  | { readonly status: 'running'; readonly attempt: Attempt }
  | { readonly status: 'paused'; readonly reason: PauseReason; readonly message: string }
  | ({ readonly status: 'completed'; readonly work?: Changes } & SessionResult)
  | { readonly status: 'failed'; readonly failure: SessionFailure };

export interface SessionRecord {
  /** With what the group gives to all sessions. */
  definition: SessionDefinition;
  /** As the user wrote it; absent where the group gives nothing. */
  own?: SessionDefinition;
  /** What decisions on waves added to its prompt. */
  notes?: readonly string[];
  state: SessionState;
  /** True when the session is to be started as soon as its dependencies and the slots allow. */
  queued: boolean;
  /** Not to be started before this time, ms since 1970. */
  notBeforeMs?: number;
  attempts: number;
  transients: number;
  /** Transient failures since a person last asked for a start, with progress in between or not. */
  transientsInAll?: number;
  /** What its last attempt was told stands in the conversation, and the model has never seen it. */
  promptUnsent?: true;
  /** What was said to the running attempt, in this order; the position names the message to claude. */
  told?: string[];
  /** Times in a row it was interrupted because it made no progress. */
  stalls: number;
  /** The same since a person last asked for a start, with progress in between or not. */
  stallsInAll?: number;
  /** Times it was interrupted because the disk was nearly full. */
  diskPauses?: number;
  /** Present while a person has it, see plan/take-over.ts. */
  takenOver?: Attachment;
  spokenWith?: true;
  /** They have cleared its conversation: what it goes on with begins with nothing. */
  cleared?: true;
  taskChanged?: true;
  /** claude's id of the message that the next attempt goes on from; absent = the last one. */
  resumeAt?: string;
  /** All that it has asked of a person, oldest first. */
  items?: readonly Item[];
  /** What the user said to it that no attempt has been told yet. */
  messages: string[];
  usage: Usage;
  /** What was said last of its own cap, since that was set. */
  budgetSaid?: 'warned' | 'exceeded';
  /** Part of that sum. */
  lost?: readonly LostAttempt[];
  /** Machine of the last attempt, or of the next one when it is going to be another. */
  host?: string;
  claudeSessionIds: string[];
  /** The model claude said it uses; passed again on every later attempt. */
  model?: string;
  warnings: Warning[];
  /** Whether it works in a worktree; decided with the first attempt. */
  isolated?: boolean;
  /** The first of the ten ports that are reserved for it. */
  portBase?: number;
  /** Present once the worktree was made, absent again once it is gone. */
  workspace?: Workspace;
  /** The worktree was made again since the model last answered in it, see Workspace.remade. */
  unaware?: true;
  /** All that its attempts did is in commits of its branch. */
  committed?: true;
  /** What claude answered, while nothing but acceptance is left to do. */
  finished?: SessionResult;
  rejections?: number;
  rejection?: Rejection;
  /** Its work was done in another group, on a branch of that. */
  inherited?: InheritedFrom;
  mergedInto?: string;
  /** From the last acceptance. */
  evidence?: Evidence;
  /** The sentence with which the last failed attempt ended; the next attempt's model is told. */
  lastFailure?: string;
  /** Wall time of ended attempts: in all, and of that before claude started and after it ended. */
  worked?: { readonly allMs: number; readonly preparingMs: number; readonly acceptingMs: number };
  /** Begin of the first attempt and end of the last one, ISO 8601. */
  startedAt?: string;
  endedAt?: string;
}

export function ownDefinition({ own, definition }: Pick<SessionRecord, 'own' | 'definition'>): SessionDefinition {
  return own ?? definition;
}

/** Milliseconds of its ended attempts, set-up and acceptance included. */
export function workedMs({ worked, usage }: Pick<SessionRecord, 'worked' | 'usage'>): number {
  return Math.max(worked?.allMs ?? 0, usage.durationMs);
}

type ConversationOwner = Pick<SessionRecord, 'definition' | 'claudeSessionIds'>;

/** With which conversation a session goes on; neither = the known one as it is. */
export interface ConversationChoice {
  /** Begins a new one. */
  readonly fresh?: true;
  /** Leaves out the last messages of the model, so many, and whatever followed each of them. */
  readonly rewind?: number;
}

/** An event that may not happen in the present state: a defect of ours or a damaged log. */
export class IllegalEvent extends Error {}

export function attemptOf(record: SessionRecord, attemptId: string): Attempt {
  if (record.state.status === 'running' && record.state.attempt.id === attemptId) return record.state.attempt;
  throw new IllegalEvent(`session ${record.definition.id} has no running attempt ${attemptId}`);
}

/** claude's id of its conversation: the one that it named last, or that its first attempt is given. */
export function conversationId({ definition, claudeSessionIds }: ConversationOwner): string {
  return claudeSessionIds.at(-1) ?? sessionUuid(definition.id);
}

/** US dollars left of the session's own cap; infinite without one. */
export function ownBudgetLeft(record: SessionRecord): number {
  const cap = record.definition.maxBudgetUsd;
  return cap === undefined ? Number.POSITIVE_INFINITY : Math.max(0, roundUsd(cap - record.usage.costUsd));
}

/** A person who asks for a start does not want to wait out a delay, nor have old troubles counted. */
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
