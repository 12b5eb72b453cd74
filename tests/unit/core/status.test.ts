/**
 * Promises: `reduce` obeys the transition tables: a legal event moves the state as the tables say, any other event
 * throws IllegalEvent and changes nothing. The tables contain every transition of the specification.
 */
import { describe, expect, test } from 'bun:test';
import type { EventBody, EventType } from '../../../src/core/event.ts';
import { defaultGroupConfig, noUsage } from '../../../src/core/group.ts';
import { foldEvents, reduce } from '../../../src/core/reduce.ts';
import { IllegalEvent } from '../../../src/core/session-state.ts';
import {
  eventTypes,
  type GroupStatus,
  groupStatuses,
  nextGroupStatus,
  nextSessionStatus,
  type SessionStatus,
  sessionStatuses,
} from '../../../src/core/status.ts';
import {
  attemptId,
  CoreLog,
  groupDefinition,
  runnerIdentity,
  sessionDefinition,
  sid,
} from '../../support/core-events.ts';

test('every status transition of the specification is in the tables and leads to the specified status', () => {
  const moves: [GroupStatus, EventType, GroupStatus][] = [
    ['created', 'group_started', 'running'],
    ['running', 'group_completed', 'completed'],
    ['running', 'group_paused', 'paused'],
    ['running', 'group_failed', 'failed'],
    ['paused', 'group_resumed', 'running'],
    ['completed', 'group_archived', 'archived'],
  ];
  for (const [from, type, to] of moves) expect([from, type, nextGroupStatus(from, type)]).toEqual([from, type, to]);
});

/** The session statuses that can occur in a group of each status. */
const inhabitants: Record<GroupStatus, readonly SessionStatus[]> = {
  created: ['pending'],
  running: sessionStatuses,
  paused: ['pending', 'paused', 'completed', 'failed'],
  completed: ['completed'],
  failed: ['pending', 'paused', 'completed', 'failed'],
  archived: ['pending', 'paused', 'completed', 'failed'],
};

/** A log that ends with the group and session 1 in the given statuses. */
function logIn(group: GroupStatus, session: SessionStatus): CoreLog {
  const log = new CoreLog().addSession(sessionDefinition(1));
  if (group === 'created') return log;
  log.run();
  // An earlier attempt whose cost is not known yet.
  if (session !== 'pending') log.intendAt(sid(1)).loseHost(sid(1), noUsage).intend(sid(1), 'resume');
  if (session === 'paused') log.pause(sid(1));
  if (session === 'completed') log.complete(sid(1));
  if (session === 'failed') log.fail(sid(1));
  if (group === 'paused') log.add({ type: 'group_paused', reason: 'user', message: 'Paused.' });
  if (group === 'completed') log.add({ type: 'group_completed' });
  if (group === 'failed' || group === 'archived') log.add({ type: 'group_failed', reason: 'x', message: 'Failed.' });
  if (group === 'archived') log.add({ type: 'group_archived' });
  return log;
}

const called = { requestId: 'r', toolUseId: 't', tool: 'Bash', input: {} };
const call = { kind: 'permission', text: 'Bash: ls', options: [], ...called } as const;
const workspace = { path: '/w', folder: '/w', repository: '/r', branch: 'b', base: 'c' };
const until = '2026-01-04T14:31:00.000Z';

const run = { id: 'run', runner: runnerIdentity };
const from = { groupId: 'g', sessionId: sid(1) };

/** A well-formed event of the type, about session 1 where the event names one. */
function eventOf(type: EventType, session: SessionStatus): EventBody {
  const sessionId = sid(1);
  const number = session === 'pending' ? 1 : session === 'running' ? 2 : 3;
  const of = { sessionId, attemptId: attemptId(sessionId, number) };
  const text = { reason: 'user', message: 'A sentence.' } as const;
  if (type === 'session_removed' || type === 'session_cleaned') return { type, sessionId };
  if (type === 'group_frozen') return { type, until };
  if (type === 'item_opened' || type === 'item_answered' || type === 'item_withdrawn') return itemEventOf(type, of);
  if (type === 'session_isolated') return { type, ...of, workspace };
  if (type === 'session_inherited') return { type, sessionId, from, result: 'Done.', isolated: false };
  switch (type) {
    case 'group_created':
      return { type, group: groupDefinition() };
    case 'group_changed':
      return { type, config: defaultGroupConfig };
    case 'session_added':
      return { type, sessionId: sid(2), session: sessionDefinition(2) };
    case 'session_changed':
      return { type, sessionId, session: sessionDefinition(1, [], { prompt: 'Other.' }) };
    case 'group_started':
      return { type, run };
    case 'group_resumed':
      return { type, run, retry: [] };
    case 'group_pausing':
      return { type, reason: 'user' };
    case 'group_paused':
    case 'group_failed':
      return { type, ...text };
    case 'session_starting':
      return { type, sessionId, attempt: { id: of.attemptId, number, kind: 'start', offset: 0 } };
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      return { type, ...of, attempt: 1, process: runnerIdentity };
    case 'session_identified':
      return { type, ...of, claudeSessionId: 'uuid' };
    case 'session_stopping':
      return { type, ...of, reason: 'user' };
    case 'session_warning':
      return { type, sessionId, warning: { code: 'hook-missing', message: 'A sentence.' } };
    case 'session_failed':
      return { type, ...of, reason: 'no-result', message: 'A sentence.', next: '', usage: noUsage };
    case 'session_paused':
      return { type, ...of, ...text, usage: noUsage };
    case 'session_cost_settled':
      return { type, sessionId, usage: noUsage };
    case 'limit_reached':
      return { type, resetsAt: '2026-01-04T15:00:00.000Z' };
    case 'session_queued':
      return { type, sessionId, queued: true };
    case 'session_message':
      return { type, sessionId, text: 'Also this.' };
    case 'session_stalled':
      return { type, ...of, step: 'notice', silentMs: 1000 };
    case 'session_budget_warning':
      return { type, sessionId, usage: 1, limit: 2 };
    case 'session_budget_exceeded':
      return { type, sessionId, action: 'stopped', usage: 2, limit: 2 };
    case 'request_answered':
      return { type, requestId: 'r', done: true, message: '', sessionId };
    case 'session_accepting':
    case 'session_completed':
      return { type, ...of, result: 'Done.', usage: noUsage };
    case 'group_merged':
      return { type, merged: [] };
    default:
      return placeEventOf(type, of);
  }
}

function itemEventOf(
  type: 'item_opened' | 'item_answered' | 'item_withdrawn',
  of: { sessionId: string; attemptId: string },
): EventBody {
  const { sessionId } = of;
  if (type === 'item_opened') return { type, ...of, item: 'two', ...call };
  if (type === 'item_withdrawn') return { type, sessionId, item: 'one' };
  return { type: 'item_answered', sessionId, item: 'one', by: 'user', answer: { text: 'allow' } };
}

type PlaceType = 'session_moved' | 'session_host_lost' | 'session_booked';
type AttachType = 'session_attaching' | 'session_attached' | 'session_detached';

function placeEventOf(
  type: Plain['type'] | PlaceType | AttachType | 'wave_finished' | 'wave_decided',
  of: { sessionId: string; attemptId: string },
): EventBody {
  const { sessionId } = of;
  if (type === 'wave_finished') return { type, wave: 1, accepted: 1, cost: 0 };
  if (type === 'wave_decided') return { type, wave: 1, decision: 'continue', by: 'user' };
  if (type === 'session_moved') return { type, sessionId, to: 'one' };
  if (type === 'session_host_lost') return { type, ...of, host: 'one', held: 0 };
  if (type === 'session_booked') return { type, sessionId, attemptId: attemptId(sessionId, 1), usage: noUsage };
  return isTakeOver(type) ? takeOverEvent(type, sessionId) : plainEventOf(type);
}

function isTakeOver(type: EventType): type is AttachType {
  return type === 'session_attaching' || type === 'session_attached' || type === 'session_detached';
}

function takeOverEvent(type: AttachType, sessionId: string): EventBody {
  const of = { sessionId, attachmentId: 'person' };
  if (type === 'session_attaching') return { type, ...of, process: runnerIdentity };
  return type === 'session_attached' ? { type, ...of } : { type, ...of, usage: noUsage, claudeSessionIds: [] };
}

type Plain = Extract<
  EventBody,
  {
    type:
      | 'budget_warning'
      | 'budget_exceeded'
      | 'group_redefined'
      | 'group_archived'
      | 'group_completed'
      | 'group_thawed'
      | 'limit_lifted'
      | 'rehearsal_chosen';
  }
>;

/** A group event with minimal fields. */
function plainEventOf(type: Plain['type']): Plain {
  if (type === 'budget_warning') return { type, usage: 1, limit: 2 };
  if (type === 'budget_exceeded') return { type, action: 'stopped', usage: 2, limit: 2 };
  return type === 'group_redefined' ? { type, group: { name: 'Other', description: '' }, changed: ['name'] } : { type };
}

/** The session's status after the event according to the expectations above; null when it is illegal. */
function expectedSession(type: EventType, session: SessionStatus): SessionStatus | 'gone' | null {
  if (type === 'session_removed') return session === 'running' ? null : 'gone';
  if (type === 'session_added' || !type.match(/^(?:session|item)_/)) return session;
  return nextSessionStatus(session, type);
}

/** A user has attached. */
function letIn({ state }: CoreLog): void {
  const record = state.sessions.get(sid(1));
  if (record === undefined) return;
  record.takenOver = { id: 'person', process: runnerIdentity, since: state.updatedAt, goesOn: false };
  state.takenOver.add(sid(1));
}

/** The session waits for an answer. */
function ask({ state }: CoreLog): void {
  const record = state.sessions.get(sid(1));
  if (record === undefined) return;
  record.items = [{ id: 'one', attemptId: 'a', since: state.updatedAt, state: 'open', ...call }];
}

describe('reduce', () => {
  for (const group of groupStatuses) {
    for (const session of inhabitants[group]) {
      test(`reduce obeys the tables in a ${group} group with a ${session} session`, () => {
        for (const type of eventTypes as ReadonlySet<EventType>) {
          const log = logIn(group, session);
          const event = log.next(eventOf(type, session));
          const wantedGroup = nextGroupStatus(group, type);
          const wantedSession = expectedSession(type, session);
          if (wantedGroup === null || wantedSession === null) {
            expect(() => reduce(log.state, event)).toThrow(IllegalEvent);
            // A refused event has left no trace.
            expect(log.state).toStrictEqual(foldEvents(log.events) as never);
          } else {
            if (type === 'session_attached' || type === 'session_detached') letIn(log);
            if (type === 'item_answered' || type === 'item_withdrawn') ask(log);
            reduce(log.state, event);
            const after = log.state.sessions.get(sid(1))?.state.status ?? 'gone';
            expect([type, log.state.status, after]).toEqual([type, wantedGroup, wantedSession]);
            expect(log.state.lastSeq).toBe(event.seq);
          }
        }
      });
    }
  }
});
