/** How many sessions may start now, and what is short when they are none. */
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { Hold, SchedulingContext } from './decision.ts';
import { isElsewhere } from './elsewhere.ts';

export const outageWait: Hold = {
  reason: 'backoff',
  message: 'The API answers nobody; one session at a time asks it again.',
};

export function freeSlots(state: GroupState): number {
  return Math.max(1, state.group.config.maxConcurrentSessions - state.running.size);
}

const slotWait: Hold = { reason: 'slot', message: 'All slots are taken.' };

export interface FreePlaces {
  readonly places: number;
  /** What is short, when it is not simply the work. */
  readonly wait: Hold | null;
}

/** How many sessions may start, wherever that is. */
export function freePlaces(state: GroupState, context: SchedulingContext): FreePlaces {
  const slots = Math.min(state.group.config.maxConcurrentSessions, context.slotsMax ?? Number.POSITIVE_INFINITY);
  if (state.running.size >= slots) return { places: 0, wait: slotWait };
  const limits: FreePlaces[] = [{ places: slots - state.running.size, wait: slotWait }];
  // With a fleet they hold for those that start here.
  if (!context.fleet) limits.push(...localLimits(state, context));
  const { gate, isOut = false } = context;
  const asking = isOut ? unanswered(state, context) : 0;
  if (gate) limits.push({ places: 1, wait: null });
  if (isOut) limits.push({ places: 1 - asking, wait: outageWait });
  return tightest(limits);
}

/** A machine keeps a slot for half a minute, and what goes there is prepared here before: none is to be given back. */
const wishesEach = 4;

/** How many slots of other machines may be wished for at once. */
export function wishesMax({ running, sessions }: GroupState, context: SchedulingContext): number {
  let coming = context.fleet?.granted.size ?? 0;
  for (const id of running) if (context.inQueue?.has(id) && isElsewhere(sessions.get(id))) coming += 1;
  return Math.max(0, wishesEach * context.preparingMax - coming);
}

/** How many may start on this machine, where others may start elsewhere. */
export function localPlaces(state: GroupState, context: SchedulingContext): FreePlaces {
  return tightest(localLimits(state, context));
}

function tightest(limits: readonly FreePlaces[]): FreePlaces {
  const least = limits.reduce((one, other) => (other.places < one.places ? other : one));
  return { ...least, places: Math.max(0, least.places) };
}

function localLimits(state: GroupState, context: SchedulingContext): FreePlaces[] {
  let preparing = 0;
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    if (record.state.status !== 'running') continue;
    const { identified, accepting, place } = record.state.attempt;
    if (!identified && !accepting && place === undefined && !context.inQueue?.has(id)) preparing += 1;
  }
  const limits: FreePlaces[] = [
    {
      places: context.preparingMax - preparing,
      wait: { reason: 'starting', message: 'Other sessions are still starting up.' },
    },
  ];
  const { room } = context;
  if (room) limits.push({ places: room.starts, wait: { reason: room.reason, message: room.message } });
  return limits;
}

/** Running sessions to which the model has said nothing in this attempt. */
function unanswered(state: GroupState, { answered, inQueue }: SchedulingContext): number {
  let count = 0;
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    const isQuiet = answered?.has(id) || inQueue?.has(id);
    if (session?.status === 'running' && !session.attempt.accepting && !isQuiet) count += 1;
  }
  return count;
}
