/**
 * Attempts on machines that were lost. What they may have cost besides what is known is held (Usage.heldUsd), until the
 * machine comes back and tells, or a person settles it.
 */
import type { GroupEvent } from '../event.ts';
import { unreachable } from '../failure.ts';
import { exchanged, roundUsd, type Usage } from '../group.ts';
import { type Attempt, attemptOf, IllegalEvent, type LostAttempt, type SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { noteTight } from './budget.ts';
import { noteMoney } from './settle.ts';

export type PlaceEvent = Extract<GroupEvent, { type: 'session_moved' | 'session_host_lost' | 'session_booked' }>;

const placeEvents: ReadonlySet<string> = new Set<PlaceEvent['type']>([
  'session_moved',
  'session_host_lost',
  'session_booked',
]);

export function isPlaceEvent(event: Pick<GroupEvent, 'type'>): event is PlaceEvent {
  return placeEvents.has(event.type);
}

/** What is told of the machines on which the session works. */
export function notePlace(state: GroupState, record: SessionRecord, event: PlaceEvent): void {
  switch (event.type) {
    case 'session_moved':
      record.host = event.to;
      return;
    case 'session_host_lost':
      attemptOf(record, event.attemptId).isLost = true;
      return;
    case 'session_booked':
      bookAttempt(state, record, event.attemptId, event.usage);
      return;
    default:
      unreachable(event);
  }
}

/** US dollars that a lost attempt may have cost besides what it is known to have. */
export function heldOf({ reservedUsd = 0 }: Attempt, knownUsd: number): number {
  return Math.max(0, roundUsd(reservedUsd - knownUsd));
}

/** The attempt is over, with this usage, and its machine was lost. */
export function noteLost(record: SessionRecord, attempt: Attempt, usage: Usage): void {
  if (attempt.isLost) record.lost = [...(record.lost ?? []), { attempt, usage }];
}

/** What was known and held of the attempt becomes what it has cost. Throws IllegalEvent when none was lost. */
function bookAttempt(state: GroupState, record: SessionRecord, attemptId: string, usage: Usage): void {
  const counted = record.lost?.find(({ attempt }) => attempt.id === attemptId);
  if (counted === undefined) throw new IllegalEvent(`session ${record.definition.id} lost no attempt ${attemptId}`);
  state.usage = exchanged(state.usage, counted.usage, usage);
  record.usage = exchanged(record.usage, counted.usage, usage);
  keepLost(
    record,
    record.lost?.filter((one) => one !== counted),
  );
  state.budgetExceeded = false;
  noteTight(state, record);
  noteMoney(state);
}

/** Its sum is another one from now on, and nothing of it is held. */
export function settleCost(state: GroupState, record: SessionRecord, usage: Usage): void {
  const { heldUsd = 0, costUsd, ...sum } = state.usage;
  const left = roundUsd(heldUsd - (record.usage.heldUsd ?? 0));
  const held = left > 0 ? { heldUsd: left } : {};
  state.usage = { ...sum, costUsd: roundUsd(costUsd - record.usage.costUsd + usage.costUsd), ...held };
  settleLost(record, usage.costUsd > record.usage.costUsd - sameUsd);
  record.usage = usage;
  record.warnings = record.warnings.filter(({ code }) => code !== 'held-cost');
  state.budgetExceeded = false;
  noteMoney(state);
}

/** A person settled what is held for the session: of each lost attempt it is spent, or free again. */
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

/** Sums of money differ in their last digits; less than this is none. */
const sameUsd = 1e-9;
