/**
 * Promises: a session is said to go on at a time exactly when the runner would start it then, and `group why`, the
 * progress and the rest say the same.
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

/** The first of two sessions has met a transient failure; the second works. */
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

/** Whether the runner starts it as soon as nothing but its own troubles and those of the group keep it. */
function startsAt({ state }: CoreLog, untilMs: number): boolean {
  const decisions = decide(state, { preparingMax: 9, nowMs: untilMs });
  return decisions.some((decision) => decision.do === 'start' && decision.sessionId === a);
}

describe('goes on by itself', () => {
  test.each<[string, () => CoreLog, 'backoff' | 'limit', number]>([
    ['after a backoff', () => backingOff(), 'backoff', minuteMs],
    ['when the limit is lifted', () => backingOff(0).add(limit(minuteMs)), 'limit', minuteMs],
    ['after the later of both', () => backingOff(minuteMs).add(limit(2 * minuteMs)), 'limit', 2 * minuteMs],
    ['after the backoff that is later', () => backingOff(2 * minuteMs).add(limit(minuteMs)), 'backoff', 2 * minuteMs],
  ])('%s', (_, logOf, reason, afterMs) => {
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

  test('one that was never started, when the limit is lifted', () => {
    const log = new CoreLog()
      .addSession(sessionDefinition(1))
      .addSession(sessionDefinition(2, [1]))
      .run();
    log.add(limit(minuteMs));
    expect(whyOf(log)).toMatchObject({ reason: 'limit', until: nowMs + minuteMs });
    expect(untilOf(log, b)).toBeUndefined();
  });
});

describe('does not go on by itself', () => {
  const hour = 60 * minuteMs;
  test.each<[string, () => CoreLog, string]>([
    [
      'a user wants it to rest',
      () => backingOff().add({ type: 'session_queued', sessionId: a, queued: false }),
      'transient',
    ],
    [
      'the group is being paused',
      () => backingOff().add({ type: 'group_pausing', reason: 'user', mode: 'drain' }),
      'pausing',
    ],
    ['everything is halted', () => backingOff().add({ type: 'group_frozen', until: at(nowMs + minuteMs) }), 'frozen'],
    [
      'everything is halted while it drains',
      () =>
        backingOff()
          .add({ type: 'group_pausing', reason: 'user', mode: 'drain' })
          .add({ type: 'group_frozen', until: at(nowMs + minuteMs) }),
      'frozen',
    ],
    ['too many failed', () => backingOff(minuteMs, { config: { errorThreshold: 1 } }).fail(b), 'error-threshold'],
    ['a person is needed', () => backingOff().fail(b, noUsage, 'not-logged-in'), 'needs-person'],
    ['its own money is spent', () => backingOff(minuteMs, { definition: { maxBudgetUsd: 1 } }), 'budget'],
    ["the group's money is spent", () => backingOff(minuteMs, { config: { maxBudgetUsd: 1 } }).pause(b), 'budget'],
    [
      'a limit holds that is not waited out',
      () => backingOff(minuteMs, { config: { onLimit: 'pause' } }).add(limit(hour)),
      'limit',
    ],
  ])('while %s', (_, logOf, reason) => {
    const log = logOf();
    expect(untilOf(log)).toBeUndefined();
    expect(whyOf(log)?.reason).toBe(reason);
    expect(whyOf(log)?.message).not.toMatch(/[Rr]etried at|Resuming at/);
    expect(groupProgress(log.state, new Map(), nowMs).sessions[0]).not.toHaveProperty('retryAt');
    if (reason !== 'limit') expect(startsAt(log, nowMs + minuteMs)).toBe(false);
  });

  test('in a group that is not running', () => {
    const log = backingOff().pause(b).add({ type: 'group_paused', reason: 'user', message: 'x' });
    expect(untilOf(log)).toBeUndefined();
  });

  test('when it is due', () => {
    expect(untilOf(backingOff(0))).toBeUndefined();
  });
});
