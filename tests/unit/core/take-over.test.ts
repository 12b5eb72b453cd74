/**
 * Promises: an attached session is never started by the runner, and a run waits until the user detaches. The user's
 * share is reserved, so spent and reserved money never exceeds the cap, and its cost is counted once.
 */
import { describe, expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { attachmentGrant } from '../../../src/core/plan/attachment.ts';
import { loggedContext } from '../../../src/core/plan/decision.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { IllegalEvent } from '../../../src/core/session-state.ts';
import { attachEvents } from '../../../src/runner/attach.ts';
import { CoreLog, runnerIdentity, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { whyNot } from '../../support/verdicts.ts';

const of = { sessionId: sid(1), attachmentId: 'person' };
const attempt = { id: 'a', number: 1, kind: 'start', offset: 0 } as const;

function begun(config: ConstructorParameters<typeof CoreLog>[0] = { maxBudgetUsd: 5 }): CoreLog {
  const log = new CoreLog(config);
  add(log, { type: 'session_added', sessionId: sid(1), session: sessionDefinition(1) });
  add(log, { type: 'group_started', run: { id: 'run', runner: runnerIdentity } });
  add(log, { type: 'session_starting', sessionId: sid(1), attempt: { ...attempt, reservedUsd: 5 } });
  add(log, { type: 'session_identified', sessionId: sid(1), attemptId: 'a', claudeSessionId: 'first' });
  return log;
}

function add(log: CoreLog, ...bodies: readonly EventBody[]): void {
  for (const body of bodies) log.add(body);
}

const attaching: EventBody = { type: 'session_attaching', ...of, process: runnerIdentity };
const paused: EventBody = {
  ...{ type: 'session_paused', sessionId: sid(1), attemptId: 'a', reason: 'user', message: 'Paused.' },
  usage: usage(1),
} as EventBody;
const detached = (costUsd: number, more: object = {}): EventBody =>
  ({ type: 'session_detached', ...of, usage: usage(costUsd), claudeSessionIds: [], ...more }) as EventBody;

const record = ({ state }: CoreLog) => state.sessions.get(sid(1)) as NonNullable<ReturnType<typeof state.sessions.get>>;
const decisions = ({ state }: CoreLog) => decide(state, loggedContext(state, 0));

test('attaching to a running session stops it first, and the session resumes after detaching', () => {
  const log = begun();
  add(log, attaching);
  expect(decisions(log)).toEqual([]);
  add(log, paused);
  expect(decisions(log)).toMatchObject([{ do: 'wait', reason: 'attached' }]);
  expect(whyNot(log.state, loggedContext(log.state, 0))).toMatchObject([{ reason: 'attached' }]);
  add(log, { type: 'session_attached', ...of, reservedUsd: 4 });
  expect(log.state.reservedUsd).toBe(4);
  expect(decisions(log)).toMatchObject([{ do: 'wait', reason: 'attached' }]);
  expect(whyNot(log.state, loggedContext(log.state, 0))).toMatchObject([
    { reason: 'attached', message: 'Attached to a terminal.' },
  ]);
  add(log, detached(0.5));
  expect(log.state).toMatchObject({ reservedUsd: 0, usage: { costUsd: 1.5 } });
  expect(record(log).usage.costUsd).toBe(1.5);
  expect(decisions(log)).toMatchObject([{ do: 'start', sessionId: sid(1), kind: 'resume', reserveUsd: 3.5 }]);
});

test('while a user is attached the session does not start and no other user can attach', () => {
  const log = begun();
  add(log, attaching, paused);
  const start = { ...attempt, id: 'b', number: 2, kind: 'resume' } as const;
  for (const body of [
    { type: 'session_starting', sessionId: sid(1), attempt: start },
    { type: 'session_removed', sessionId: sid(1) },
    { ...attaching, attachmentId: 'other' },
    { type: 'session_attached', ...of, attachmentId: 'other' },
    detached(1, { attachmentId: 'other' }),
  ] as EventBody[]) {
    expect(() => log.add(body)).toThrow(IllegalEvent);
  }
});

test('a session that was idle before attaching is idle after detaching, unless the user sent a message', () => {
  for (const [said, queued] of [
    [{}, false],
    [{ spoken: true }, true],
  ] as const) {
    const log = begun();
    add(log, paused, attaching, { type: 'session_attached', ...of, reservedUsd: 4 }, detached(0, said));
    expect(record(log).queued).toBe(queued);
  }
});

test('a failed session is retried after the user has sent it a message', () => {
  const log = begun();
  const failure = { reason: 'no-result', message: 'It broke.', next: '' } as const;
  add(log, { type: 'session_failed', sessionId: sid(1), attemptId: 'a', ...failure, usage: usage(1) });
  add(log, attaching, { type: 'session_attached', ...of, reservedUsd: 4 }, detached(0, { spoken: true }));
  expect(log.state.failed.size).toBe(0);
  expect(decisions(log)).toMatchObject([{ do: 'start', kind: 'retry' }]);
});

test('after detaching the session continues the conversation that the user left', () => {
  const log = begun();
  add(log, paused, attaching, { type: 'session_attached', ...of });
  add(log, detached(0, { claudeSessionIds: ['second', 'first'], spoken: true }));
  expect(record(log).claudeSessionIds).toEqual(['second', 'first']);
  expect(record(log)).toMatchObject({ spokenWith: true });
});

describe('money of attached users', () => {
  test('an attached user gets the free budget minus the shares of sessions that could start', () => {
    const log = new CoreLog({ maxBudgetUsd: 4, maxConcurrentSessions: 3 });
    for (const number of [1, 2]) {
      add(log, { type: 'session_added', sessionId: sid(number), session: sessionDefinition(number) });
    }
    add(log, { type: 'group_started', run: { id: 'run', runner: runnerIdentity } });
    add(log, { type: 'session_starting', sessionId: sid(1), attempt }, attaching, {
      ...paused,
      usage: usage(0),
    } as EventBody);
    expect(attachmentGrant(log.state, record(log))).toEqual({ kind: 'share', usd: 2 });
  });

  test('sessions that start while a user is attached leave the user’s share alone', () => {
    const log = new CoreLog({ maxBudgetUsd: 4, maxConcurrentSessions: 1 });
    for (const number of [1, 2]) {
      add(log, { type: 'session_added', sessionId: sid(number), session: sessionDefinition(number) });
    }
    add(log, { type: 'group_started', run: { id: 'run', runner: runnerIdentity } });
    add(log, { type: 'session_starting', sessionId: sid(1), attempt }, attaching, {
      ...paused,
      usage: usage(0),
    } as EventBody);
    expect(decisions(log)).toMatchObject([{ do: 'start', sessionId: sid(2), reserveUsd: 2 }]);
  });

  test.each([
    ['the group budget is spent', { maxBudgetUsd: 1 }, {}, "The group's budget is exhausted."],
    ['the session’s own cap is spent', {}, { maxBudgetUsd: 1 }, 'has used up its own budget.'],
  ])('attaching is refused when %s', (_what, config, own, sentence) => {
    const log = begun(config);
    add(log, paused);
    record(log).definition = sessionDefinition(1, [], own);
    const meant = attachEvents(log.state, record(log), { kind: 'attach-session', ...of, process: runnerIdentity });
    expect(meant.ok ? '' : meant.failure.message).toContain(sentence);
  });

  test('the share of an attach that died before claude opened is released', () => {
    const log = begun();
    add(log, attaching, paused, detached(0));
    expect(log.state).toMatchObject({ reservedUsd: 0, usage: { costUsd: 1 } });
    expect(log.state.takenOver.size).toBe(0);
  });
});
