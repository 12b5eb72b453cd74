/**
 * Which event may happen in which status. The same tables guard loading a log and writing one.
 *
 *   group:   created → running → completed | paused | failed;  paused | failed → running;
 *            completed | failed | paused → archived;  completed | failed → paused when a session is added
 *   session: pending → running → completed | failed | paused;  paused | failed → running
 */
import type { EventType } from './event.ts';

export const groupStatuses = ['created', 'running', 'paused', 'completed', 'failed', 'archived'] as const;
export type GroupStatus = (typeof groupStatuses)[number];

export const sessionStatuses = ['pending', 'running', 'paused', 'completed', 'failed'] as const;
export type SessionStatus = (typeof sessionStatuses)[number];

/** Group statuses in which something can still happen without a user's command, or waits for one. */
export const activeGroupStatuses: ReadonlySet<GroupStatus> = new Set(['created', 'running', 'paused']);

type Events = readonly EventType[];

const edits: Events = ['group_changed', 'group_redefined', 'session_removed'];
const requests: Events = ['session_changed', 'session_queued', 'session_message'];
const attachment: Events = ['session_attaching', 'session_attached', 'session_detached'];
const answers: Events = ['item_answered', 'item_withdrawn'];
const afterwards: Events = ['session_cost_settled', 'session_booked', 'session_cleaned'];
const process: Events = ['session_started', 'session_resumed', 'session_retrying', 'session_adopted'];
const work: Events = ['session_identified', 'session_isolated', 'session_accepting', 'session_stopping'];
const reports: Events = ['session_warning', 'session_stalled', 'session_host_lost', 'session_budget_warning'];
const limits: Events = ['budget_warning', 'budget_exceeded', 'limit_reached', 'limit_lifted'];
const pauses: Events = ['group_pausing', 'group_frozen', 'group_thawed'];

type Moves<S extends string> = Partial<Record<EventType, S>>;

/** These events happen in the status and leave it as it is. */
function stay<S extends string>(status: S, ...events: Events): Moves<S> {
  return Object.fromEntries(events.map((event) => [event, status]));
}

const running: Moves<GroupStatus> = {
  ...stay('running', ...edits, ...requests, ...attachment, ...answers, 'session_cost_settled', 'session_booked'),
  ...stay('running', ...process, ...work, ...reports, ...limits, ...pauses, 'session_budget_exceeded'),
  ...stay('running', 'session_added', 'session_moved', 'session_starting', 'item_opened', 'request_answered'),
  ...stay('running', 'session_completed', 'session_failed', 'session_paused', 'wave_finished', 'wave_decided'),
  // A runner died and the next one continues.
  group_resumed: 'running',
  group_paused: 'paused',
  group_completed: 'completed',
  group_failed: 'failed',
};

const unfinished: Events = [...edits, ...requests, ...answers, ...attachment, ...afterwards, 'wave_decided'];

const groupTable: Readonly<Record<GroupStatus, Moves<GroupStatus>>> = {
  created: {
    ...stay('created', ...edits, ...requests, 'session_added', 'session_inherited', 'rehearsal_chosen'),
    // Of sessions that were completed in another group.
    group_merged: 'created',
    group_started: 'running',
  },
  running,
  paused: {
    ...stay('paused', ...unfinished, 'session_added', 'group_merged'),
    group_resumed: 'running',
    group_archived: 'archived',
  },
  completed: {
    // A session may have completed before the user could attach.
    ...stay('completed', ...edits, ...afterwards, 'group_merged', 'session_detached'),
    session_added: 'paused',
    session_queued: 'paused',
    group_archived: 'archived',
  },
  failed: {
    ...stay('failed', ...unfinished, 'group_merged'),
    session_added: 'paused',
    group_resumed: 'running',
    group_archived: 'archived',
  },
  archived: stay('archived', ...afterwards),
};

const notRunning: Events = [...requests, ...attachment, ...afterwards, 'session_warning', 'session_budget_warning'];

const sessionTable: Readonly<Record<SessionStatus, Moves<SessionStatus>>> = {
  pending: {
    ...stay('pending', ...requests, 'session_cleaned', 'session_moved'),
    session_starting: 'running',
    session_inherited: 'completed',
  },
  running: {
    ...stay('running', ...process, ...work, ...reports, ...answers, 'item_opened', 'session_message'),
    ...stay('running', 'session_attaching', 'session_detached', 'session_cost_settled', 'session_booked'),
    // Repeated for the same attempt when a crash came before the worker did anything; and only another model.
    ...stay('running', 'session_starting', 'session_changed'),
    session_completed: 'completed',
    session_failed: 'failed',
    session_paused: 'paused',
  },
  paused: {
    ...stay('paused', ...notRunning, ...answers, 'session_moved', 'session_budget_exceeded'),
    session_starting: 'running',
  },
  completed: {
    ...stay('completed', ...afterwards, 'session_detached', 'session_warning'),
    // The user has another message.
    session_queued: 'paused',
  },
  failed: {
    ...stay('failed', ...notRunning, 'session_moved'),
    session_starting: 'running',
  },
};

/** The group's status after the event; null when the event may not happen in this status. */
export function nextGroupStatus(status: GroupStatus, event: EventType): GroupStatus | null {
  return groupTable[status][event] ?? null;
}

/** The session's status after a session event; null when the event may not happen in this status. */
export function nextSessionStatus(status: SessionStatus, event: EventType): SessionStatus | null {
  return sessionTable[status][event] ?? null;
}

/** The known event types: `group_created` starts a log, and all others may happen in some status. */
export const eventTypes: ReadonlySet<string> = new Set([
  'group_created',
  ...Object.values(groupTable).flatMap((events) => Object.keys(events)),
]);

export function isEventType(type: string): type is EventType {
  return eventTypes.has(type);
}
