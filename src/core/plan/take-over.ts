/**
 * A person speaks with a session in claude's own terminal (`session attach`). Meanwhile nothing else starts it, and
 * what they may spend is reserved like the share of an attempt: spent and reserved never exceed the cap.
 */
import type { GroupEvent } from '../event.ts';
import { fail, type Result } from '../failure.ts';
import { addUsage, type SessionId } from '../group.ts';
import { sessionTitle } from '../id.ts';
import { IllegalEvent, queue, type SessionRecord, type TakeOver } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { Verdict } from '../verdict.ts';
import { type BudgetGrant, grantFor, noteTight } from './budget.ts';
import type { Hold } from './decision.ts';
import { planOf } from './plan.ts';
import { noteMoney } from './settle.ts';

export type TakeOverEvent = EventOf<'session_attaching' | 'session_attached' | 'session_detached'>;
type EventOf<T extends GroupEvent['type']> = Extract<GroupEvent, { readonly type: T }>;

export const takeOverWait: Hold = { reason: 'attached', message: 'A person is speaking with a session.' };

/** Why such a session does not run. */
export function takenOver({ openedAt }: TakeOver): Verdict {
  const message = openedAt === undefined ? 'A person is taking it over.' : 'Attached: a person is speaking with it.';
  return { reason: 'attached', message };
}

/** What is told whoever asks for something that has to wait for them. */
export function takenFailure(
  { run }: GroupState,
  { definition: { id, name }, takenOver: now }: SessionRecord,
): Result<never> {
  const { host = '', pid = 0 } = now?.process ?? {};
  const where = run === undefined || host === run.runner.host ? '' : ` on ${host}`;
  const message = `A person is speaking with session ${sessionTitle(id, name)} (pid ${pid}${where}).`;
  return fail('illegal-transition', message, 'Leave claude there first, with /exit.');
}

/** How many persons are about to be let in, for whom nothing is reserved yet: they have their share to come. */
export function personsToCome({ takenOver, sessions }: GroupState): number {
  return [...takenOver].filter((id) => sessions.get(id)?.takenOver?.openedAt === undefined).length;
}

/** What the person may spend: as much as the session would be given now, beside those that could start. */
export function grantForPerson(state: GroupState, record: SessionRecord): BudgetGrant {
  const slots = Math.max(0, state.group.config.maxConcurrentSessions - state.running.size);
  return grantFor(state, record, 0, 1 + Math.min(slots, planOf(state).ready.length));
}

export function reduceTakeOver(state: GroupState, record: SessionRecord, event: TakeOverEvent): void {
  if (event.type === 'session_attaching') beginTakeOver(state, record, event);
  else if (event.type === 'session_attached') openTakeOver(state, record, event);
  else endTakeOver(state, record, event);
}

function beginTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_attaching'>): void {
  const { attachmentId: id, at: since, process, sessionId } = event;
  if (record.takenOver !== undefined) throw new IllegalEvent(`session_attaching twice for ${sessionId}`);
  record.takenOver = { id, process, since, goesOn: record.queued || record.state.status === 'running' };
  state.takenOver.add(sessionId);
  state.touched.add(sessionId);
}

function openTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_attached'>): void {
  const takeOver = takeOverOf(record, event);
  if (takeOver.openedAt !== undefined) throw new IllegalEvent(`session_attached twice for ${event.sessionId}`);
  takeOver.openedAt = event.at;
  if (event.reservedUsd === undefined) return;
  takeOver.reservedUsd = event.reservedUsd;
  state.reservedUsd += event.reservedUsd;
}

function endTakeOver(state: GroupState, record: SessionRecord, event: EventOf<'session_detached'>): void {
  const { goesOn, reservedUsd = 0 } = takeOverOf(record, event);
  const { sessionId, claudeSessionIds, spoken, cleared, usage } = event;
  delete record.takenOver;
  state.takenOver.delete(sessionId);
  state.touched.add(sessionId);
  state.reservedUsd = Math.max(0, state.reservedUsd - reservedUsd);
  record.usage = addUsage(record.usage, usage);
  state.usage = addUsage(state.usage, usage);
  noteTight(state, record);
  for (const id of claudeSessionIds) {
    record.claudeSessionIds = [...record.claudeSessionIds.filter((other) => other !== id), id];
  }
  if (cleared) record.cleared = true;
  if (spoken) noteSpoken(record);
  const { status } = record.state;
  if ((goesOn || spoken) && (status === 'paused' || status === 'failed')) goOn(state, record, sessionId);
  noteMoney(state);
}

function noteSpoken(record: SessionRecord): void {
  record.spokenWith = true;
  // The model has been told more, and has maybe done more.
  delete record.finished;
  delete record.promptUnsent;
  delete record.committed;
}

function goOn(state: GroupState, record: SessionRecord, id: SessionId): void {
  queue(record, true);
  state.failed.delete(id);
  if (state.only !== undefined) state.only = new Set([...state.only, id]);
}

function takeOverOf(
  { takenOver: now }: SessionRecord,
  { attachmentId, sessionId }: EventOf<'session_attached' | 'session_detached'>,
): TakeOver {
  if (now?.id === attachmentId) return now;
  throw new IllegalEvent(`session ${sessionId} is not attached by ${attachmentId}`);
}
