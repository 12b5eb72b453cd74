/**
 * Promises: the state is only the fold of the log. Events that contradict the log are refused without a trace. Money,
 * attempts, ids and running time add up over pauses, retries, restarts and dead runners.
 */
import { describe, expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { defaultGroupConfig, noUsage } from '../../../src/core/group.ts';
import { foldEvents, reduce } from '../../../src/core/reduce.ts';
import { IllegalEvent, ownBudgetLeft } from '../../../src/core/session-state.ts';
import { initialState } from '../../../src/core/state.ts';
import { attemptId, CoreLog, runnerIdentity, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const a = sid(1);
const b = sid(2);

function twoSessions(): CoreLog {
  return new CoreLog().addSession(sessionDefinition(1)).addSession(sessionDefinition(2)).run();
}

function refuses(log: CoreLog, body: EventBody, words: string): void {
  const before = foldEvents(log.events);
  expect(() => reduce(log.state, log.next(body))).toThrow(words);
  expect(() => reduce(log.state, log.next(body))).toThrow(IllegalEvent);
  expect(log.state).toStrictEqual(before as never);
}

function attempt(log: CoreLog): { readonly sessionId: string; readonly attemptId: string } {
  return { sessionId: a, attemptId: attemptId(a, log.state.sessions.get(a)?.attempts ?? 0) };
}

describe('folding the log', () => {
  test('an empty log has no state', () => expect(foldEvents([])).toBeNull());

  test('a log begins with group_created', () => {
    const event = new CoreLog().next({ type: 'group_completed' });
    expect(() => initialState(event)).toThrow('the log begins with group_completed');
  });

  test('a log has no gaps and no repeated sequence numbers', () => {
    const log = twoSessions();
    for (const seq of [0, log.state.lastSeq, log.state.lastSeq + 2]) {
      const event = { ...log.next({ type: 'group_pausing', reason: 'user' }), seq };
      expect(() => reduce(log.state, event)).toThrow(IllegalEvent);
    }
  });
});

describe('refused events', () => {
  test('an event for an unknown session is refused', () => {
    refuses(twoSessions(), { type: 'session_removed', sessionId: sid(9) }, 'unknown session');
    const attempt = { id: 'x', number: 1, kind: 'start', offset: 0 } as const;
    refuses(twoSessions(), { type: 'session_starting', sessionId: sid(9), attempt }, 'unknown session');
  });

  test('adding a session twice is refused', () => {
    refuses(twoSessions(), { type: 'session_added', sessionId: a, session: sessionDefinition(1) }, 'twice');
  });

  test('an event about an attempt that is not running is refused', () => {
    const log = twoSessions().start(a).pause(a).start(a, 'resume');
    const of = { sessionId: a, attemptId: attemptId(a, 1) };
    refuses(log, { type: 'session_completed', ...of, result: '', usage: noUsage }, 'no running attempt');
    refuses(log, { type: 'session_stopping', ...of, reason: 'user' }, 'no running attempt');
    refuses(log, { type: 'session_identified', ...of, claudeSessionId: 'x' }, 'no running attempt');
    refuses(log, { type: 'session_adopted', ...of, attempt: 1, process: runnerIdentity }, 'no running attempt');
  });

  test('an attempt number that is not the next one is refused', () => {
    for (const number of [0, 2]) {
      const attempt = { id: 'x', number, kind: 'start', offset: 0, reservedUsd: 1 } as const;
      refuses(twoSessions(), { type: 'session_starting', sessionId: a, attempt }, 'instead of attempt 1');
    }
  });

  test('a second attempt beside the running one is refused', () => {
    const log = twoSessions();
    log.intend(a);
    const attempt = { id: 'other', number: 2, kind: 'resume', offset: 0 } as const;
    refuses(log, { type: 'session_starting', sessionId: a, attempt }, 'no running attempt other');
  });
});

describe('attempts', () => {
  test('an attempt that starts again after a crash is counted once, with its new reservation', () => {
    const log = twoSessions();
    log.intend(a, 'start', 0.75);
    log.add({ type: 'group_resumed', run: { id: 'second', runner: runnerIdentity }, retry: [] });
    const attempt = { id: attemptId(a, 1), number: 1, kind: 'start', offset: 0, reservedUsd: 0.5 } as const;
    log.add({ type: 'session_starting', sessionId: a, attempt });
    expect(log.state.sessions.get(a)?.attempts).toBe(1);
    expect(log.state.reservedUsd).toBe(0.5);
    expect(log.state.counts).toEqual({ pending: 1, running: 1, paused: 0, completed: 0, failed: 0 });
  });

  test('cost, tokens, ids and times are the sums over all attempts', () => {
    const log = twoSessions().start(a, 'start', 1).pause(a, usage(0.25, 5)).start(a, 'resume', 1);
    log.add({ type: 'session_identified', sessionId: a, attemptId: attemptId(a, 2), claudeSessionId: 'forked' });
    log.complete(a, usage(0.5, 7));
    const record = log.state.sessions.get(a);
    expect(record?.usage).toEqual(usage(0.75, 12));
    expect(record?.claudeSessionIds).toEqual([a.slice(4), 'forked']);
    expect(record?.model).toBe('some-model');
    expect(record?.attempts).toBe(2);
    expect(record?.state).toEqual({ status: 'completed', result: 'Done.' });
    const at = (type: string) => log.events.find((event) => event.type === type)?.at as string;
    expect([record?.startedAt, record?.endedAt]).toEqual([at('session_starting'), at('session_completed')]);
    expect([log.state.usage.costUsd, log.state.reservedUsd]).toEqual([0.75, 0]);
  });

  test('the first stop reason of an attempt is kept', () => {
    const log = twoSessions().start(a);
    for (const reason of ['budget', 'user'] as const) {
      log.add({ type: 'session_stopping', sessionId: a, attemptId: attemptId(a, 1), reason });
    }
    log.add({ type: 'group_pausing', reason: 'signal' }, { type: 'group_pausing', reason: 'user' });
    expect(log.state.sessions.get(a)?.state).toMatchObject({ attempt: { stopping: 'budget' } });
    expect(log.state.pausing).toBe('signal');
  });

  test('a pause by the user replaces the reason of an interruption with automatic resume', () => {
    for (const first of ['top-up', 'stall'] as const) {
      const log = twoSessions().start(a);
      for (const reason of [first, 'budget', 'user', 'signal'] as const) {
        log.add({ type: 'session_stopping', sessionId: a, attemptId: attemptId(a, 1), reason });
      }
      expect(log.state.sessions.get(a)?.state).toMatchObject({ attempt: { stopping: 'user' } });
    }
  });
});

describe('user messages', () => {
  const say: EventBody = { type: 'session_message', sessionId: a, text: 'Use tabs.' };
  const identified: EventBody = {
    type: 'session_identified',
    sessionId: a,
    attemptId: attemptId(a, 1),
    claudeSessionId: 'other',
  };
  const record = (log: CoreLog) => log.state.sessions.get(a);

  test('a message sent before an attempt starts is part of its first request', () => {
    const log = twoSessions().add(say);
    expect(record(log)?.messages).toEqual(['Use tabs.']);
    expect(record(log.start(a))?.messages).toEqual([]);
  });

  test('a message sent while an attempt is stopping waits for the next attempt', () => {
    const log = twoSessions();
    log.intend(a);
    log.add({ type: 'session_stopping', sessionId: a, attemptId: attemptId(a, 1), reason: 'user' }, say, identified);
    expect(record(log)?.messages).toEqual(['Use tabs.']);
  });

  test('a message to a session that only needs its acceptance command starts another turn', () => {
    const of = { sessionId: a, attemptId: attemptId(a, 1) };
    const accepting = twoSessions().start(a);
    accepting.add({ type: 'session_accepting', ...of, result: 'Done.', usage: usage(1) }).pause(a);
    expect(record(accepting)?.finished).toEqual({ result: 'Done.' });
    expect(record(accepting.add(say))?.finished).toBeUndefined();
  });
});

describe('queueing', () => {
  const queued = (log: CoreLog) => log.state.sessions.get(a)?.queued;

  test('sessions that no user paused resume automatically, even after exhausted group budget', () => {
    expect(queued(twoSessions())).toBe(true);
    expect(queued(twoSessions().start(a))).toBe(false);
    expect(queued(twoSessions().start(a).fail(a))).toBe(false);
    expect(queued(twoSessions().start(a).pause(a))).toBe(false);
    for (const reason of ['interrupted', 'limit', 'transient', 'top-up', 'stall'] as const) {
      expect({ reason, queued: queued(twoSessions().start(a).pause(a, noUsage, reason)) }).toEqual({
        reason,
        queued: true,
      });
    }
    for (const reason of ['user', 'signal', 'error-threshold'] as const) {
      expect(queued(twoSessions().start(a).pause(a, noUsage, reason))).toBe(false);
    }
    expect(queued(twoSessions().start(a).pause(a, usage(5), 'budget'))).toBe(true);
    const capped = new CoreLog()
      .addSession(sessionDefinition(1, [], { maxBudgetUsd: 1 }))
      .run()
      .start(a);
    expect(queued(capped.pause(a, usage(1), 'budget'))).toBe(false);
  });

  test('resume queues paused sessions, and failed sessions only on request', () => {
    const log = twoSessions().start(a).start(b).pause(a).fail(b);
    log.add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' }).run();
    expect([...log.state.sessions.values()].map((record) => record.queued)).toEqual([true, false]);
    log.run([b]);
    expect([...log.state.sessions.values()].map((record) => record.queued)).toEqual([true, true]);
  });
});

test('a start requested by a user resets all retry counts', () => {
  const log = twoSessions();
  for (const reason of ['transient', 'stall', 'not-accepted'] as const) {
    log.start(a, log.state.sessions.get(a)?.attempts === 0 ? 'start' : 'resume');
    log.add({ type: 'session_paused', ...attempt(log), reason, message: 'x', usage: noUsage });
  }
  const counts = () => {
    const { transients, transientsInAll, stalls, stallsInAll, rejections } = log.state.sessions.get(a) ?? {};
    return { transients, transientsInAll, stalls, stallsInAll, rejections };
  };
  expect(counts()).toEqual({ transients: 1, transientsInAll: 1, stalls: 1, stallsInAll: 1, rejections: 1 });
  log.add({ type: 'session_queued', sessionId: a, queued: true });
  expect(counts()).toEqual({
    transients: 0,
    transientsInAll: undefined,
    stalls: 0,
    stallsInAll: undefined,
    rejections: undefined,
  });
});

describe('groups', () => {
  test('a freeze that was on when the runner died does not apply to the next run', () => {
    const log = twoSessions().add({ type: 'group_frozen', until: '2026-01-02T03:05:05.000Z' });
    expect(log.state.frozenUntil).toBeDefined();
    expect(log.run().state.frozenUntil).toBeUndefined();
  });

  test('after a merge, sessions whose base was the merged branch begin at the merge', () => {
    const log = twoSessions().start(a).start(b);
    for (const [id, repository] of [
      [a, '/one'],
      [b, '/two'],
    ] as const) {
      const workspace = { path: '/w', folder: '/w', repository, branch: 'x', base: 'c'.repeat(40), target: 'main' };
      log.add({ type: 'session_isolated', sessionId: id, attemptId: attemptId(id, 1), workspace }).complete(id);
    }
    log.add({ type: 'group_completed' });
    const merged = { repository: '/one', into: 'main', from: 'c'.repeat(40), to: 'd'.repeat(40), sessionIds: [a] };
    log.add({ type: 'group_merged', merged: [merged] });
    expect([...log.state.bases.keys()]).toEqual(['/two']);
    expect([a, b].map((id) => log.state.sessions.get(id)?.mergedInto)).toEqual(['main', undefined]);
  });

  test('a new run clears the failures, reason and exceeded budget of the run before', () => {
    const log = twoSessions().start(a).fail(a, noUsage, 'not-logged-in');
    log.add({ type: 'budget_exceeded', action: 'paused', usage: 1, limit: 1 });
    log.add({ type: 'group_paused', reason: 'budget', message: 'Dry.' });
    expect(log.state).toMatchObject({ failed: new Set([a]), budgetExceeded: true, reason: 'budget' });
    log.run();
    expect(log.state).toMatchObject({ failed: new Set(), budgetExceeded: false });
    expect(log.state).not.toHaveProperty('reason');
    expect(log.state).not.toHaveProperty('message');
  });

  test('running time of a run that was cut off ends with its last event', () => {
    // One second an event: three up to the last event of the first run, then one for the second run.
    const log = twoSessions().start(a).run().add({ type: 'group_paused', reason: 'user', message: 'x' });
    expect(log.state.elapsedBeforeMs).toBe(4000);
    expect(log.state).not.toHaveProperty('runStartedAt');
    log.add({ type: 'group_changed', config: defaultGroupConfig });
    expect(log.state.elapsedBeforeMs).toBe(4000);
  });

  test('a session added to a finished group makes the group paused with a fitting reason', () => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run().start(a).fail(a);
    log.add({ type: 'group_failed', reason: 'sessions-failed', message: '1 session failed.' });
    log.addSession(sessionDefinition(2));
    expect(log.state).toMatchObject({ status: 'paused', reason: 'session-added' });
    expect(log.state.message).toStartWith('A session was added');
  });

  test('the cost of a removed session stays in the group’s total', () => {
    const log = twoSessions().start(a).fail(a, usage(2));
    log.add({ type: 'session_removed', sessionId: a });
    expect(log.state.usage.costUsd).toBe(2);
    expect(log.state.counts).toEqual({ pending: 1, running: 0, paused: 0, completed: 0, failed: 0 });
    expect([...log.state.sessions.keys()]).toEqual([b]);
  });

  test('answers to requests do not change the state', () => {
    const log = twoSessions();
    const answer = {
      type: 'request_answered',
      requestId: 'r',
      done: false,
      message: 'No.',
      sessionId: sid(9),
    } as const;
    expect(log.add(answer).state.sessions.size).toBe(2);
  });
});

test('the spendable rest of a session is its own cap minus its cost', () => {
  const log = new CoreLog().addSession(sessionDefinition(1, [], { maxBudgetUsd: 1 })).addSession(sessionDefinition(2));
  log.run().start(a).pause(a, usage(0.75)).start(b).complete(b, usage(9));
  const left = () => [...log.state.sessions.values()].map(ownBudgetLeft);
  expect(left()).toEqual([0.25, Number.POSITIVE_INFINITY]);
  log.start(a, 'resume').complete(a, usage(3));
  expect(left()[0]).toBe(0);
});
