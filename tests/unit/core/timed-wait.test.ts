/**
 * Promises: a session shows a resume time exactly when the runner would start it then. `group why`, the progress and
 * all other views show the same time.
 */
import { describe, expect, test } from 'bun:test';
import { type GroupConfig, noUsage, type SessionDefinition } from '../../../src/core/group.ts';
import { loggedContext } from '../../../src/core/plan/decision.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { verdictsAtRest, verdictsOf } from '../../../src/core/plan/verdicts.ts';
import { groupProgress } from '../../../src/core/progress.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const nowMs = Date.parse('2026-01-02T03:10:00.000Z');
const minuteMs = 60_000;
const at = (ms: number): string => new Date(ms).toISOString();
const [a, b] = [sid(1), sid(2)];

interface Start {
  readonly config?: Partial<GroupConfig>;
  readonly definition?: Partial<SessionDefinition>;
}

/** The first of two sessions had a transient failure; the second is running. */
function backingOff(afterMs = minuteMs, { config = {}, definition = {} }: Start = {}): CoreLog {
  const log = new CoreLog(config)
    .addSession(sessionDefinition(1, [], definition))
    .addSession(sessionDefinition(2))
    .run();
  const paused = { type: 'session_paused', sessionId: a, attemptId: attemptId(a, 1), message: 'No answer.' } as const;
  return log
    .start(a)
    .start(b)
    .add({ ...paused, reason: 'transient', usage: usage(1), retryAt: at(nowMs + afterMs) });
}

const limit = (afterMs: number) => ({ type: 'limit_reached', resetsAt: at(nowMs + afterMs) }) as const;

const whyOf = ({ state }: CoreLog, sessionId = a) =>
  verdictsOf(state, loggedContext(state, nowMs))(state.sessions.get(sessionId) as SessionRecord);

const untilOf = (log: CoreLog, sessionId = a) => whyOf(log, sessionId)?.until;

/** Whether the runner starts the session when nothing outside the session and its group prevents it. */
function startsAt({ state }: CoreLog, untilMs: number): boolean {
  const decisions = decide(state, { preparingMax: 9, nowMs: untilMs });
  return decisions.some((decision) => decision.do === 'start' && decision.sessionId === a);
}

describe('automatic resume', () => {
  test.each<[string, () => CoreLog, 'backoff' | 'limit', number]>([
    ['after a backoff', () => backingOff(), 'backoff', minuteMs],
    ['when the usage limit is lifted', () => backingOff(0).add(limit(minuteMs)), 'limit', minuteMs],
    [
      'after a limit that ends later than the backoff',
      () => backingOff(minuteMs).add(limit(2 * minuteMs)),
      'limit',
      2 * minuteMs,
    ],
    [
      'after a backoff that ends later than the limit',
      () => backingOff(2 * minuteMs).add(limit(minuteMs)),
      'backoff',
      2 * minuteMs,
    ],
  ])('the session resumes automatically %s', (_, logOf, reason, afterMs) => {
    const log = logOf();
    const untilMs = nowMs + afterMs;
    expect(whyOf(log)).toMatchObject({ reason, until: untilMs });
    expect(startsAt(log, untilMs)).toBe(true);
    expect(whyOf(log)).toMatchObject({ reason, message: expect.stringContaining(at(untilMs).replace('.000', '')) });
    const [first, second] = groupProgress(log.state, new Map(), nowMs).sessions;
    expect(first).toMatchObject({ status: 'paused', retryAt: at(untilMs) });
    expect(second).not.toHaveProperty('retryAt');
    for (const session of groupProgress(log.state, new Map(), nowMs, verdictsAtRest(log.state)).sessions) {
      expect(session).not.toHaveProperty('retryAt');
    }
  });

  test('a session that never started starts automatically when the usage limit is lifted', () => {
    const log = new CoreLog()
      .addSession(sessionDefinition(1))
      .addSession(sessionDefinition(2, [1]))
      .run();
    log.add(limit(minuteMs));
    expect(whyOf(log)).toMatchObject({ reason: 'limit', until: nowMs + minuteMs });
    expect(untilOf(log, b)).toBeUndefined();
  });
});

describe('no automatic resume', () => {
  const hour = 60 * minuteMs;
  test.each<[string, () => CoreLog, string]>([
    ['a user paused it', () => backingOff().add({ type: 'session_queued', sessionId: a, queued: false }), 'transient'],
    [
      'the group is pausing',
      () => backingOff().add({ type: 'group_pausing', reason: 'user', mode: 'drain' }),
      'pausing',
    ],
    ['the group is frozen', () => backingOff().add({ type: 'group_frozen', until: at(nowMs + minuteMs) }), 'frozen'],
    [
      'the group is frozen while it drains',
      () =>
        backingOff()
          .add({ type: 'group_pausing', reason: 'user', mode: 'drain' })
          .add({ type: 'group_frozen', until: at(nowMs + minuteMs) }),
      'frozen',
    ],
    [
      'the error threshold is reached',
      () => backingOff(minuteMs, { config: { errorThreshold: 1 } }).fail(b),
      'error-threshold',
    ],
    ['a failure needs a person', () => backingOff().fail(b, noUsage, 'not-logged-in'), 'needs-person'],
    ['its own cap is spent', () => backingOff(minuteMs, { definition: { maxBudgetUsd: 1 } }), 'budget'],
    ['the group budget is spent', () => backingOff(minuteMs, { config: { maxBudgetUsd: 1 } }).pause(b), 'budget'],
    [
      'the usage limit is not waited out',
      () => backingOff(minuteMs, { config: { onLimit: 'pause' } }).add(limit(hour)),
      'limit',
    ],
  ])('the session shows no resume time while %s', (_, logOf, reason) => {
    const log = logOf();
    expect(untilOf(log)).toBeUndefined();
    expect(whyOf(log)?.reason).toBe(reason);
    expect(whyOf(log)?.message).not.toMatch(/[Rr]etried at|Resuming at/);
    expect(groupProgress(log.state, new Map(), nowMs).sessions[0]).not.toHaveProperty('retryAt');
    if (reason !== 'limit') expect(startsAt(log, nowMs + minuteMs)).toBe(false);
  });

  test('a session of a group that is not running shows no resume time', () => {
    const log = backingOff().pause(b).add({ type: 'group_paused', reason: 'user', message: 'x' });
    expect(untilOf(log)).toBeUndefined();
  });

  test('a session whose time has come shows no resume time', () => {
    expect(untilOf(backingOff(0))).toBeUndefined();
  });
});
