/**
 * Promises: the scheduler handles pauses, failures that need a person and preparing workers, and words its reasons
 * correctly. `schedule-exhaustive.test.ts` covers small groups without budget and pauses, `budget.test.ts` budgets.
 */
import { describe, expect, test } from 'bun:test';
import { noUsage } from '../../../src/core/group.ts';
import type { SchedulingContext } from '../../../src/core/plan/decision.ts';
import { decide, nextStarts } from '../../../src/core/plan/schedule.ts';
import { startBlocker } from '../../../src/core/plan/settle.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';
import { whyNot } from '../../support/verdicts.ts';

const capacity: SchedulingContext = { preparingMax: 9 };
const [a, b, c] = [sid(1), sid(2), sid(3)];

/** Sessions 1 to 3; the third depends on the second. */
function threeSessions(config = {}): CoreLog {
  const log = new CoreLog(config);
  return log
    .addSession(sessionDefinition(1))
    .addSession(sessionDefinition(2))
    .addSession(sessionDefinition(3, [2]));
}

describe('groups that are not running', () => {
  test('a created group gets no decisions', () => expect(decide(threeSessions().state, capacity)).toEqual([]));
  test('a paused group gets no decisions', () => {
    const log = threeSessions().run().add({ type: 'group_paused', reason: 'user', message: 'x' });
    expect(decide(log.state, capacity)).toEqual([]);
  });
});

describe('starting sessions', () => {
  test('the session with the longest chain starts first, then sessions in the order in which they were added', () => {
    const starts = decide(threeSessions().run().state, capacity).map(
      (decision) => 'sessionId' in decision && decision.sessionId,
    );
    expect(starts).toEqual([b, a]);
  });

  test('the number of workers that are prepared at once is limited', () => {
    const log = threeSessions().run();
    expect(decide(log.state, { preparingMax: 1 })).toHaveLength(1);
    log.intend(b);
    expect(decide(log.state, { preparingMax: 1 })).toEqual([]);
    // A session that waits for a command slot is not preparing.
    const inQueue = new Set([b]);
    expect(decide(log.state, { preparingMax: 1, inQueue })).toEqual([{ do: 'start', sessionId: a, kind: 'start' }]);
    log.add({ type: 'session_identified', sessionId: b, attemptId: attemptId(b, 1), claudeSessionId: 'x' });
    expect(decide(log.state, { preparingMax: 1 })).toEqual([{ do: 'start', sessionId: a, kind: 'start' }]);
  });

  test('an interrupted session is resumed automatically before later sessions start', () => {
    const log = threeSessions({ maxConcurrentSessions: 1 }).run().start(b).pause(b, noUsage, 'interrupted');
    expect(decide(log.state, capacity)).toEqual([{ do: 'start', sessionId: b, kind: 'resume' }]);
  });
});

describe('pausing a group', () => {
  test('pausing asks every running session to stop once, starts nothing, and then settles', () => {
    const log = threeSessions().run().start(a).start(b).add({ type: 'group_pausing', reason: 'signal' });
    expect(decide(log.state, capacity)).toEqual([
      { do: 'stop', sessionId: a, reason: 'signal' },
      { do: 'stop', sessionId: b, reason: 'signal' },
    ]);
    log.add({ type: 'session_stopping', sessionId: a, attemptId: attemptId(a, 1), reason: 'signal' });
    expect(decide(log.state, capacity)).toEqual([{ do: 'stop', sessionId: b, reason: 'signal' }]);
    log.pause(a, noUsage, 'signal').complete(b);
    expect(decide(log.state, capacity)).toMatchObject([{ do: 'settle', status: 'paused', reason: 'signal' }]);
  });

  test('a pausing group whose sessions all completed settles as completed', () => {
    const log = threeSessions().run();
    for (const id of [a, b, c]) log.start(id).complete(id);
    log.add({ type: 'group_pausing', reason: 'user' });
    expect(decide(log.state, capacity)).toEqual([{ do: 'settle', status: 'completed' }]);
  });

  test.each(['user', 'signal', 'budget', 'error-threshold'] as const)(
    'pausing because of %s settles as paused with that reason',
    (reason) => {
      const [settle] = decide(threeSessions().run().add({ type: 'group_pausing', reason }).state, capacity);
      expect(settle).toMatchObject({ status: 'paused', reason, message: expect.stringMatching(/\.$/) });
    },
  );
});

test('a session whose checkout another group uses waits, and the run continues', () => {
  const log = new CoreLog().addSession(sessionDefinition(1, [], { repository: '/app/.git', isolate: 'none' })).run();
  const others = { workingIn: (repository: string) => (repository === '/app/.git' ? 'other' : undefined) };
  expect(decide(log.state, { ...capacity, others })).toMatchObject([{ do: 'wait', reason: 'other-group' }]);
  expect(decide(log.state, capacity)).toMatchObject([{ do: 'start' }]);
});

describe('failures', () => {
  test.each(['not-logged-in', 'billing', 'claude-missing', 'claude-unproven'] as const)(
    'after a failure with %s nothing else starts, because it needs a person',
    (reason) => {
      const log = threeSessions({ maxConcurrentSessions: 1, pauseOnError: false })
        .run()
        .start(b)
        .fail(b, noUsage, reason);
      expect(decide(log.state, capacity)).toEqual([
        {
          do: 'settle',
          status: 'paused',
          reason: 'needs-person',
          message: 'It went wrong. Try again. Nothing else was started.',
        },
      ]);
    },
  );

  test.each(['billing', 'claude-missing', 'claude-unproven'] as const)(
    'a failure with %s pauses the group even if no session is left to start',
    (reason) => {
      const log = threeSessions().run().start(a).complete(a).start(b).complete(b).start(c).fail(c, noUsage, reason);
      expect(decide(log.state, capacity)).toEqual([
        { do: 'settle', status: 'paused', reason: 'needs-person', message: 'It went wrong. Try again.' },
      ]);
    },
  );

  test('at the error threshold running sessions finish and no new ones start', () => {
    const log = threeSessions({ errorThreshold: 1, maxConcurrentSessions: 2 }).addSession(sessionDefinition(4)).run();
    log.start(a).start(b).fail(a);
    expect(decide(log.state, capacity)).toEqual([]);
    log.complete(b);
    expect(decide(log.state, capacity)).toMatchObject([{ status: 'paused', reason: 'error-threshold' }]);
  });

  test('at the error threshold with pause_on_error off the group fails', () => {
    const log = threeSessions({ errorThreshold: 1, pauseOnError: false }).run().start(a).fail(a);
    expect(decide(log.state, capacity)).toMatchObject([{ status: 'failed', reason: 'error-threshold' }]);
  });

  test('a session that fails twice counts once for the error threshold', () => {
    const log = threeSessions({ errorThreshold: 2 }).run().start(a).start(b).fail(a);
    log.add({ type: 'session_queued', sessionId: a, queued: true }).start(a).fail(a);
    expect(startBlocker(log.state)).toBe(null);
    log.addSession(sessionDefinition(4));
    expect(decide(log.state, capacity)).toMatchObject([{ do: 'start', sessionId: sid(4) }]);
    log.fail(b);
    expect(startBlocker(log.state)).toBe('error-threshold');
  });

  test('a session that is queued, running or removed no longer counts as failed', () => {
    const log = threeSessions({ errorThreshold: 1 }).run().start(a).start(b).fail(a, noUsage, 'not-logged-in');
    expect(startBlocker(log.state)).toBe('needs-person');
    const ask = (queued: boolean) => log.add({ type: 'session_queued', sessionId: a, queued });
    ask(true);
    expect(decide(log.state, capacity)).toMatchObject([{ do: 'start', sessionId: a }]);
    ask(false);
    expect(startBlocker(log.state)).toBe('needs-person');
    ask(true).start(a).fail(a);
    expect(startBlocker(log.state)).toBe('error-threshold');
    log.add({ type: 'session_removed', sessionId: a });
    expect(startBlocker(log.state)).toBe(null);
  });

  test('the message about blocked sessions counts only those blocked by a failure', () => {
    const log = threeSessions()
      .addSession(sessionDefinition(4, [1]))
      .run()
      .start(a)
      .start(b)
      .fail(b)
      .pause(a);
    expect(decide(log.state, capacity)).toMatchObject([
      {
        status: 'failed',
        reason: 'sessions-failed',
        message: expect.stringContaining('1 session failed and 1 blocked by it.'),
      },
    ]);
  });

  test.each([
    [1, '1 session failed'],
    [2, '2 sessions failed'],
  ])('after %d failures nothing more starts, and the message has the right plural', (errorThreshold, words) => {
    const log = threeSessions({ errorThreshold, pauseOnError: true }).run();
    for (const id of [b, a].slice(0, errorThreshold)) log.start(id).fail(id);
    log.addSession(sessionDefinition(4));
    const answer = whyNot(log.state, capacity).find(({ sessionId }) => sessionId === sid(4));
    expect(answer?.message).toBe(`${words}; nothing new starts in this run.`);
    const [settled] = decide(log.state, capacity);
    expect(settled).toMatchObject({ message: expect.stringContaining(`${words}; nothing else was started.`) });
  });

  test('sessions on hold are named when the run ends', () => {
    const log = threeSessions().run();
    for (const id of [b, c]) log.add({ type: 'session_queued', sessionId: id, queued: false });
    log.start(a).complete(a);
    const others = '002 and 003 are held back and would start too.';
    const message = `The requested sessions finished; ${others}`;
    expect(decide(log.state, capacity)).toMatchObject([{ status: 'paused', message }]);
    const failed = threeSessions().run().add({ type: 'session_queued', sessionId: b, queued: false }).start(a).fail(a);
    expect(decide(failed.state, capacity)).toMatchObject([
      { status: 'failed', message: expect.stringContaining('1 session failed; 002 is held back and would start too.') },
    ]);
  });

  test('on a nearly full disk running sessions are interrupted once, and acceptance commands continue', () => {
    const log = threeSessions({ maxConcurrentSessions: 2 }).run().start(a).start(b);
    const of = { sessionId: b, attemptId: attemptId(b, 1) };
    log.add({ type: 'session_accepting', ...of, result: 'Done.', usage: noUsage });
    const full = { ...capacity, isDiskLow: true, room: { starts: 0, reason: 'disk', message: 'It is full.' } } as const;
    expect(decide(log.state, full)).toEqual([{ do: 'stop', sessionId: a, reason: 'disk' }]);
    const drained = { ...log.state, pausing: 'user', draining: true } as const;
    expect(decide(drained, full)).toEqual([{ do: 'stop', sessionId: a, reason: 'disk' }]);
    log.add({ type: 'session_stopping', sessionId: a, attemptId: attemptId(a, 1), reason: 'disk' });
    expect(decide(log.state, full)).toEqual([]);
    log.add({
      type: 'session_paused',
      sessionId: a,
      attemptId: attemptId(a, 1),
      reason: 'disk',
      message: '',
      usage: noUsage,
    });
    expect(decide(log.state, full)).toMatchObject([{ do: 'wait', reason: 'disk', message: 'It is full.' }]);
    expect(decide(log.state, capacity)).toMatchObject([{ do: 'start', sessionId: a, kind: 'resume' }]);
  });

  test('at the budget cap finished work is still accepted, because that costs nothing', () => {
    const log = threeSessions({ maxConcurrentSessions: 2, maxBudgetUsd: 1 }).run().start(a).start(b);
    const of = { sessionId: b, attemptId: attemptId(b, 1) };
    log.add({ type: 'session_accepting', ...of, result: 'Done.', usage: { ...noUsage, costUsd: 1 } });
    const stops = decide(log.state, capacity).filter((decision) => decision.do === 'stop');
    expect(stops).toEqual([{ do: 'stop', sessionId: a, reason: 'budget' }]);
    log.pause(a, noUsage, 'budget');
    expect(
      decide(log.state, capacity).filter((decision) => 'sessionId' in decision || decision.do === 'settle'),
    ).toEqual([]);
    log.add({ type: 'session_completed', ...of, result: 'Done.', usage: noUsage });
    expect(decide(log.state, capacity).at(-1)).toMatchObject({ do: 'settle', reason: 'budget' });
  });

  test('an empty group settles as completed', () => {
    expect(decide(new CoreLog().run().state, capacity)).toEqual([{ do: 'settle', status: 'completed' }]);
  });
});

describe('usage limit', () => {
  const gate = { untilMs: 1_000, mayProbe: true };
  const starts = (log: CoreLog, more: Partial<SchedulingContext>) =>
    nextStarts(log.state, { ...capacity, ...more }).starts.map(({ sessionId }) => sessionId);

  test('no session starts before a usage limit resets, and then only one until it gets an answer', () => {
    const log = threeSessions().run();
    expect(starts(log, { gate: { ...gate, mayProbe: false } })).toEqual([]);
    const [first, ...others] = starts(log, { gate });
    expect([first, others]).toEqual([expect.any(String), []]);
    log.start(first as string);
    expect(starts(log, { gate })).toEqual([]);
    expect(starts(log, {}).length).toBeGreaterThan(0);
  });
});

describe('API outage', () => {
  const nowMs = Date.parse('2026-01-02T04:00:00.000Z');
  const capped = { maxConcurrentSessions: 3, maxBudgetUsd: 9 };
  /** Session 1 lost the API for the `tries`th time and waits ten minutes, 2 has waited long enough, 3 is new. */
  const inOutage = (tries: number) => {
    const log = new CoreLog(capped);
    for (const number of [1, 2, 3]) log.addSession(sessionDefinition(number));
    log.run();
    for (let attempt = 1; attempt <= tries; attempt += 1) {
      for (const number of [1, 2]) {
        log.start(sid(number));
        const of = { sessionId: sid(number), attemptId: attemptId(sid(number), attempt) };
        const retryAt = new Date(nowMs + (number === 1 ? 600_000 : 0)).toISOString();
        log.add({ type: 'session_paused', ...of, reason: 'transient', message: 'x', usage: noUsage, retryAt });
      }
    }
    return log;
  };
  const starts = (log: CoreLog, more: Partial<SchedulingContext>) =>
    nextStarts(log.state, { ...capacity, nowMs, ...more }).starts.map(({ sessionId }) => sessionId);

  test('during an outage one session that has begun tries the API, and no new session is prepared', () => {
    const log = inOutage(1);
    expect(starts(log, {}).sort()).toEqual([sid(2), sid(3)]);
    expect(starts(log, { isOut: true })).toEqual([sid(2)]);
    log.start(sid(2));
    expect(nextStarts(log.state, { ...capacity, nowMs, isOut: true })).toMatchObject({
      starts: [],
      wait: { reason: 'backoff' },
    });
    expect(starts(new CoreLog(capped).addSession(sessionDefinition(1)).run(), { isOut: true })).toEqual([sid(1)]);
  });

  test('during an outage a session that cannot try the API blocks no other session', () => {
    const log = inOutage(1);
    for (const number of [1, 2]) {
      const sessionId = sid(number);
      log.add({ type: 'session_changed', sessionId, session: { ...sessionDefinition(number), maxBudgetUsd: 0 } });
    }
    expect(starts(log, { isOut: true })).toEqual([sid(3)]);
  });

  test('a running session that was answered before is not trying the API, so another one may', () => {
    const log = inOutage(1).start(sid(3));
    expect(starts(log, { isOut: true })).toEqual([]);
    expect(starts(log, { isOut: true, answered: new Set([sid(3)]) })).toEqual([sid(2)]);
  });

  test('the session that tries the API first gets only its share of the budget', () => {
    const [start] = nextStarts(inOutage(1).state, { ...capacity, nowMs, isOut: true }).starts;
    expect(start).toMatchObject({ sessionId: sid(2), reserveUsd: 3 });
  });

  test('the first answer resumes all sessions that had no retries left; the others keep their delay', () => {
    const answered = { servedAtMs: nowMs + 365 * 24 * 3_600_000 };
    expect(starts(inOutage(3), answered).sort()).toEqual([sid(1), sid(2), sid(3)]);
    expect(starts(inOutage(3), { servedAtMs: 0 }).sort()).toEqual([sid(2), sid(3)]);
    expect(starts(inOutage(2), answered).sort()).toEqual([sid(2), sid(3)]);
  });
});

describe('retry delay', () => {
  const nowMs = Date.parse('2026-01-02T04:00:00.000Z');
  const delayed = (delayMs: number) => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run().start(sid(1));
    const retryAt = new Date(nowMs + delayMs).toISOString();
    const of = { sessionId: sid(1), attemptId: attemptId(sid(1), 1) };
    log.add({ type: 'session_paused', ...of, reason: 'transient', message: 'x', usage: noUsage, retryAt });
    return nextStarts(log.state, { ...capacity, nowMs });
  };

  test('a failed session starts again only after its retry delay', () => {
    expect(delayed(600_000)).toMatchObject({ starts: [], wait: { reason: 'backoff', until: nowMs + 600_000 } });
    expect(delayed(0).starts).toHaveLength(1);
  });
});
