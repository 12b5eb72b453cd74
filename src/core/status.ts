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

type GroupTable = Readonly<Record<GroupStatus, Partial<Record<EventType, GroupStatus>>>>;

const running: Partial<Record<EventType, GroupStatus>> = {
  group_changed: 'running',
  group_redefined: 'running',
  session_added: 'running',
  session_changed: 'running',
  session_removed: 'running',
  // A runner died and the next one continues.
  group_resumed: 'running',
  session_moved: 'running',
  session_starting: 'running',
  session_host_lost: 'running',
  session_booked: 'running',
  session_started: 'running',
  session_resumed: 'running',
  session_retrying: 'running',
  session_adopted: 'running',
  session_identified: 'running',
  session_stopping: 'running',
  session_attaching: 'running',
  session_attached: 'running',
  session_detached: 'running',
  session_warning: 'running',
  session_isolated: 'running',
  session_accepting: 'running',
  session_completed: 'running',
  session_failed: 'running',
  session_paused: 'running',
  budget_warning: 'running',
  budget_exceeded: 'running',
  session_budget_warning: 'running',
  session_budget_exceeded: 'running',
  group_pausing: 'running',
  group_frozen: 'running',
  group_thawed: 'running',
  limit_reached: 'running',
  limit_lifted: 'running',
  session_queued: 'running',
  session_message: 'running',
  session_stalled: 'running',
  item_opened: 'running',
  item_answered: 'running',
  item_withdrawn: 'running',
  wave_finished: 'running',
  wave_decided: 'running',
  request_answered: 'running',
  session_cost_settled: 'running',
  group_paused: 'paused',
  group_completed: 'completed',
  group_failed: 'failed',
};

const groupTable: GroupTable = {
  created: {
    group_changed: 'created',
    group_redefined: 'created',
    session_added: 'created',
    session_changed: 'created',
    session_removed: 'created',
    session_queued: 'created',
    session_message: 'created',
    session_inherited: 'created',
    rehearsal_chosen: 'created',
    // Of sessions that were completed in another group.
    group_merged: 'created',
    group_started: 'running',
  },
  running,
  paused: {
    group_changed: 'paused',
    group_redefined: 'paused',
    session_added: 'paused',
    session_changed: 'paused',
    session_removed: 'paused',
    session_queued: 'paused',
    session_message: 'paused',
    item_answered: 'paused',
    item_withdrawn: 'paused',
    wave_decided: 'paused',
    session_attaching: 'paused',
    session_attached: 'paused',
    session_detached: 'paused',
    group_resumed: 'running',
    group_merged: 'paused',
    session_cost_settled: 'paused',
    session_booked: 'paused',
    session_cleaned: 'paused',
    group_archived: 'archived',
  },
  completed: {
    group_changed: 'completed',
    group_redefined: 'completed',
    session_added: 'paused',
    session_removed: 'completed',
    session_queued: 'paused',
    // It completed before the user could attach.
    session_detached: 'completed',
    group_merged: 'completed',
    session_cost_settled: 'completed',
    session_booked: 'completed',
    session_cleaned: 'completed',
    group_archived: 'archived',
  },
  failed: {
    group_changed: 'failed',
    group_redefined: 'failed',
    session_added: 'paused',
    session_changed: 'failed',
    session_removed: 'failed',
    session_queued: 'failed',
    session_message: 'failed',
    item_answered: 'failed',
    item_withdrawn: 'failed',
    wave_decided: 'failed',
    session_attaching: 'failed',
    session_attached: 'failed',
    session_detached: 'failed',
    group_resumed: 'running',
    group_merged: 'failed',
    session_cost_settled: 'failed',
    session_booked: 'failed',
    session_cleaned: 'failed',
    group_archived: 'archived',
  },
  archived: {
    session_cleaned: 'archived',
    session_cost_settled: 'archived',
    session_booked: 'archived',
  },
};

const sessionTable: Readonly<Record<SessionStatus, Partial<Record<EventType, SessionStatus>>>> = {
  pending: {
    session_cleaned: 'pending',
    session_queued: 'pending',
    session_message: 'pending',
    session_moved: 'pending',
    session_starting: 'running',
    session_inherited: 'completed',
    session_changed: 'pending',
  },
  running: {
    // Repeated for the same attempt when a crash came before the worker did anything.
    session_starting: 'running',
    session_started: 'running',
    session_resumed: 'running',
    session_retrying: 'running',
    session_adopted: 'running',
    session_identified: 'running',
    session_stopping: 'running',
    session_stalled: 'running',
    item_opened: 'running',
    item_answered: 'running',
    item_withdrawn: 'running',
    session_attaching: 'running',
    session_detached: 'running',
    session_message: 'running',
    // Only another model.
    session_changed: 'running',
    session_warning: 'running',
    session_cost_settled: 'running',
    session_host_lost: 'running',
    session_booked: 'running',
    session_isolated: 'running',
    session_accepting: 'running',
    session_completed: 'completed',
    session_failed: 'failed',
    session_paused: 'paused',
    session_budget_warning: 'running',
  },
  paused: {
    session_cleaned: 'paused',
    session_cost_settled: 'paused',
    session_booked: 'paused',
    session_moved: 'paused',
    session_queued: 'paused',
    session_message: 'paused',
    item_answered: 'paused',
    item_withdrawn: 'paused',
    session_starting: 'running',
    session_changed: 'paused',
    session_attaching: 'paused',
    session_attached: 'paused',
    session_detached: 'paused',
    session_warning: 'paused',
    session_budget_warning: 'paused',
    session_budget_exceeded: 'paused',
  },
  completed: {
    // The user has another message.
    session_queued: 'paused',
    session_cleaned: 'completed',
    session_cost_settled: 'completed',
    session_booked: 'completed',
    session_detached: 'completed',
    session_warning: 'completed',
  },
  failed: {
    session_cleaned: 'failed',
    session_cost_settled: 'failed',
    session_booked: 'failed',
    session_moved: 'failed',
    session_queued: 'failed',
    session_message: 'failed',
    session_starting: 'running',
    session_changed: 'failed',
    session_attaching: 'failed',
    session_attached: 'failed',
    session_detached: 'failed',
    session_warning: 'failed',
    session_budget_warning: 'failed',
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
