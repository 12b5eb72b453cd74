/**
 * A user works in a session in claude's own terminal (`session attach`). Meanwhile nothing else starts it, and what
 * they may spend is reserved like the share of an attempt: spent and reserved never exceed the cap.
 */
import type { GroupEvent } from '../event.ts';
import { fail, type Result } from '../failure.ts';
import { addUsage, exchanged, roundUsd, type SessionId, type Usage } from '../group.ts';
import { numberedName } from '../id.ts';
import {
  type Attachment,
  type Attempt,
  IllegalEvent,
  type LostAttempt,
  queue,
  type SessionRecord,
} from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { type BudgetGrant, grantFor } from './budget.ts';
import type { GroupHold, WaitReason } from './decision.ts';
import { readySessions } from './plan.ts';
import { updateBudgetWait } from './settle.ts';

type EventOf<T extends GroupEvent['type']> = Extract<GroupEvent, { readonly type: T }>;

export const attachWait: GroupHold = { reason: 'attached', message: 'A session is attached to a terminal.' };

export function attachedSession({ openedAt }: Attachment): WaitReason {
  const message = openedAt === undefined ? 'It is being attached to a terminal.' : 'Attached to a terminal.';
  return { reason: 'attached', message };
}

export function attachedFailure(
  { run }: GroupState,
  { definition: { id, name }, takenOver: now }: SessionRecord,
): Result<never> {
  const { host = '', pid = 0 } = now?.process ?? {};
  const where = run === undefined || host === run.runner.host ? '' : ` on ${host}`;
  const message = `Session ${numberedName(id, name)} is attached to a terminal (pid ${pid}${where}).`;
  return fail('illegal-transition', message, 'Leave claude there with /exit first.');
}

/** The number of pending attachments without a reservation: their share is still to come. */
export function pendingAttachments({ takenOver, sessions }: GroupState): number {
  return [...takenOver].filter((id) => sessions.get(id)?.takenOver?.openedAt === undefined).length;
}

/** What the user may spend: as much as the session would get now, next to those that could start. */
export function attachmentGrant(state: GroupState, record: SessionRecord): BudgetGrant {
  const slots = Math.max(0, state.group.config.maxConcurrentSessions - state.running.size);
  return grantFor(state, record, 0, 1 + Math.min(slots, readySessions(state).length));
}

export function beginTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_attaching'>): void {
  const { attachmentId: id, at: since, process, sessionId } = event;
  if (record.takenOver !== undefined) throw new IllegalEvent(`session_attaching twice for ${sessionId}`);
  record.takenOver = { id, process, since, goesOn: record.queued || record.state.status === 'running' };
  state.takenOver.add(sessionId);
}

export function openTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_attached'>): void {
  const takeOver = takeOverOf(record, event);
  if (takeOver.openedAt !== undefined) throw new IllegalEvent(`session_attached twice for ${event.sessionId}`);
  takeOver.openedAt = event.at;
  if (event.reservedUsd === undefined) return;
  takeOver.reservedUsd = event.reservedUsd;
  state.reservedUsd += event.reservedUsd;
}

export function endTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_detached'>): void {
  const { goesOn, reservedUsd = 0 } = takeOverOf(record, event);
  const { sessionId, claudeSessionIds, spoken, cleared, usage } = event;
  delete record.takenOver;
  state.takenOver.delete(sessionId);
  state.reservedUsd = Math.max(0, state.reservedUsd - reservedUsd);
  record.usage = addUsage(record.usage, usage);
  state.usage = addUsage(state.usage, usage);
  for (const id of claudeSessionIds) {
    record.claudeSessionIds = [...record.claudeSessionIds.filter((other) => other !== id), id];
  }
  if (cleared) record.cleared = true;
  if (spoken) noteSpoken(record);
  const { status } = record.state;
  if ((goesOn || spoken) && (status === 'paused' || status === 'failed')) goOn(state, record, sessionId);
  updateBudgetWait(state);
}

function noteSpoken(record: SessionRecord): void {
  record.spokenWith = true;
  // The model has received more messages, and may have done more.
  delete record.finished;
  delete record.promptUnsent;
}

function goOn(state: GroupState, record: SessionRecord, id: SessionId): void {
  queue(record, true);
  state.failed.delete(id);
  if (state.only !== undefined) state.only = new Set([...state.only, id]);
}

function takeOverOf(
  { takenOver: now }: SessionRecord,
  { attachmentId, sessionId }: EventOf<'session_attached' | 'session_detached'>,
): Attachment {
  if (now?.id === attachmentId) return now;
  throw new IllegalEvent(`session ${sessionId} is not attached by ${attachmentId}`);
}

// Attempts on machines that were lost. What they may have cost besides what is known is held (Usage.heldUsd),
// until the machine comes back and tells, or a person settles it.

/** US dollars that a lost attempt may have cost besides its known cost. */
export function heldCost({ reservedUsd = 0 }: Attempt, knownUsd: number): number {
  return Math.max(0, roundUsd(reservedUsd - knownUsd));
}

export function addLostAttempt(record: SessionRecord, attempt: Attempt, usage: Usage): void {
  if (attempt.isLost) record.lost = [...(record.lost ?? []), { attempt, usage }];
}

/** Replaces the known and held cost of the attempt by its real cost. Throws IllegalEvent when none was lost. */
export function bookAttempt(state: GroupState, record: SessionRecord, attemptId: string, usage: Usage): void {
  const counted = record.lost?.find(({ attempt }) => attempt.id === attemptId);
  if (counted === undefined) throw new IllegalEvent(`session ${record.definition.id} lost no attempt ${attemptId}`);
  state.usage = exchanged(state.usage, counted.usage, usage);
  record.usage = exchanged(record.usage, counted.usage, usage);
  keepLost(
    record,
    record.lost?.filter((one) => one !== counted),
  );
  state.budgetExceeded = false;
  updateBudgetWait(state);
}

/** Replaces its sum; nothing of it is held any more. */
export function settleCost(state: GroupState, record: SessionRecord, usage: Usage): void {
  const { heldUsd = 0, costUsd, ...sum } = state.usage;
  const left = roundUsd(heldUsd - (record.usage.heldUsd ?? 0));
  const held = left > 0 ? { heldUsd: left } : {};
  state.usage = { ...sum, costUsd: roundUsd(costUsd - record.usage.costUsd + usage.costUsd), ...held };
  settleLost(record, usage.costUsd > record.usage.costUsd - sameUsd);
  record.usage = usage;
  record.warnings = record.warnings.filter(({ code }) => code !== 'held-cost');
  state.budgetExceeded = false;
  updateBudgetWait(state);
}

/** The user settled the session's held money: each lost attempt's part is spent, or free again. */
function settleLost(record: SessionRecord, isSpent: boolean): void {
  const settled = record.lost?.map((one): LostAttempt => {
    const { heldUsd = 0, ...usage } = one.usage;
    return { ...one, usage: { ...usage, costUsd: isSpent ? usage.costUsd : roundUsd(usage.costUsd - heldUsd) } };
  });
  keepLost(record, settled);
}

function keepLost(record: SessionRecord, lost: readonly LostAttempt[] = []): void {
  if (lost.length > 0) record.lost = lost;
  else delete record.lost;
}

/** Sums of cents are inexact in binary floating point. */
const sameUsd = 1e-9;
