/**
 * Promises: user messages that claude has not read survive the attempt and are sent once more, and retries follow the
 * rules of their failure.
 */
import { expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { noUsage } from '../../../src/core/group.ts';
import { eventsOf } from '../../../src/runner/fact-events.ts';
import type { WorkerFact } from '../../../src/worker/facts.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';

type Ended = Extract<WorkerFact, { kind: 'ended' }>;

const id = sid(1);

/** An attempt ends without having read these messages, the last of which arrived while it was being stopped. */
function endedUnread(outcome: Ended['outcome'], unread: readonly string[]): { log: CoreLog; events: EventBody[] } {
  const of = { sessionId: id, attemptId: attemptId(id, 1) };
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(id);
  log.add({ type: 'session_stopping', ...of, reason: 'user' });
  log.add({ type: 'session_message', sessionId: id, text: 'said while it stopped' });
  const fact: Ended = { kind: 'ended', ...of, outcome, usage: noUsage, progressed: false, unread };
  return {
    log,
    events: eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0, isUnserved: () => false }),
  };
}

/** The messages that the next attempt receives. */
function toldNext(outcome: Ended['outcome'], unread: readonly string[]): readonly string[] | undefined {
  const { log, events } = endedUnread(outcome, unread);
  return log.add(...events).state.sessions.get(id)?.messages;
}

const paused = { status: 'paused', reason: 'user', message: 'x', warnings: [] } as const;
const failed = { status: 'failed', reason: 'claude-error', message: 'x', next: 'y', warnings: [] } as const;

test('unread messages go to the next attempt once', () => {
  expect(toldNext(paused, [])).toEqual(['said while it stopped']);
  expect(toldNext(paused, ['not read', 'said while it stopped'])).toEqual(['said while it stopped', 'not read']);
});

test('unread messages go to the next attempt after a failure or a success too, and the session continues', () => {
  const done = { status: 'completed', result: 'x', warnings: [] } as const;
  for (const outcome of [failed, done])
    expect(toldNext(outcome, ['not read'])).toEqual(['said while it stopped', 'not read']);
  expect(endedUnread(done, ['not read']).events).toMatchObject([{ type: 'session_paused', reason: 'user' }]);
  expect(endedUnread(done, []).events).toMatchObject([{ type: 'session_completed' }]);
});

test('repeated interruptions on a full disk lengthen the wait, up to ten minutes', () => {
  const id = sid(1);
  const log = new CoreLog().addSession(sessionDefinition(1)).run();
  const outcome = { status: 'paused', reason: 'disk', message: 'x', warnings: [] } as const;
  const waitsMs = [1, 2, 3, 4, 5, 6].map((number) => {
    log.start(id);
    const of = { sessionId: id, attemptId: attemptId(id, number) };
    const fact: Ended = { kind: 'ended', ...of, outcome, usage: noUsage, progressed: true, unread: [] };
    log.add(...eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0, isUnserved: () => false }));
    return log.state.sessions.get(id)?.notBeforeMs;
  });
  expect(waitsMs).toEqual([2_000, 8_000, 32_000, 128_000, 512_000, 600_000]);
});

test('repeated outages lengthen the wait up to ten minutes, and the retry ceiling ends the session', () => {
  const [served, id] = [sid(1), sid(2)];
  const tried = (isUnserved: boolean, retries: number) => {
    const log = new CoreLog()
      .addSession(sessionDefinition(1))
      .addSession({ ...sessionDefinition(2), retries })
      .run();
    log.start(served).complete(served, { ...noUsage, costUsd: 0.01, tokens: { ...noUsage.tokens, output: 5 } });
    const outcome = { status: 'failed', reason: 'api-error', message: 'x', next: 'y', warnings: [] } as const;
    const waitsMs: number[] = [];
    for (let number = 1; log.state.sessions.get(id)?.state.status !== 'failed'; number += 1) {
      log.start(id);
      const of = { sessionId: id, attemptId: attemptId(id, number) };
      const ended = { ...outcome, transient: true, outage: true } as const;
      const fact: Ended = { kind: 'ended', ...of, outcome: ended, usage: noUsage, progressed: false, unread: [] };
      const context = { adopted: new Map(), nowMs: 0, jitter: 0.5, isUnserved: () => isUnserved };
      log.add(...eventsOf(log.state, fact, context));
      const { notBeforeMs, state } = log.state.sessions.get(id) ?? {};
      if (state?.status === 'paused') waitsMs.push(notBeforeMs ?? 0);
    }
    return waitsMs;
  };
  const waitsMs = tried(true, 2);
  expect(waitsMs.slice(0, 6)).toEqual([5_000, 20_000, 80_000, 320_000, 600_000, 600_000]);
  expect(waitsMs).toHaveLength(30);
  expect(tried(false, 2)).toEqual([5_000, 20_000]);
  expect(tried(true, 0)).toEqual([]);
});

test('a refused login is retried once, whatever max_retries says, and then needs a person', () => {
  const id = sid(1);
  const outcome = { status: 'failed', reason: 'not-logged-in', message: 'x', next: 'y', warnings: [] } as const;
  const statesOf = (transient: boolean, retries: number) => {
    const log = new CoreLog().addSession({ ...sessionDefinition(1), retries }).run();
    const states: (string | undefined)[] = [];
    for (let number = 1; states.at(-1) !== 'failed'; number += 1) {
      log.start(id);
      const of = { sessionId: id, attemptId: attemptId(id, number) };
      const ended: Ended['outcome'] = transient ? { ...outcome, transient: true } : outcome;
      const fact: Ended = { kind: 'ended', ...of, outcome: ended, usage: noUsage, progressed: false, unread: [] };
      log.add(...eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0, isUnserved: () => false }));
      states.push(log.state.sessions.get(id)?.state.status);
    }
    return states;
  };
  expect(statesOf(true, 5)).toEqual(['paused', 'failed']);
  expect(statesOf(true, 0)).toEqual(['failed']);
  expect(statesOf(false, 5)).toEqual(['failed']);
});

test('the usage limit of one model delays only sessions that met it, until its reset', () => {
  const id = sid(1);
  const outcome = { status: 'paused', reason: 'limit', message: 'x', resetsAtMs: 60_000, warnings: [] } as const;
  const waitOf = (more: { limitedModel?: string; resetsAtMs?: number }, onLimit: 'wait' | 'pause' = 'wait') => {
    const log = new CoreLog({ onLimit }).addSession(sessionDefinition(1)).run().start(id);
    const of = { sessionId: id, attemptId: attemptId(id, 1) };
    const ended = { ...outcome, ...more };
    const fact: Ended = { kind: 'ended', ...of, outcome: ended, usage: noUsage, progressed: false, unread: [] };
    log.add(...eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0, isUnserved: () => false }));
    return log.state.sessions.get(id)?.notBeforeMs;
  };
  expect(waitOf({ limitedModel: 'Opus' })).toBe(60_000);
  // The gate of the login stops the session, or the group pauses.
  expect(waitOf({})).toBeUndefined();
  expect(waitOf({ limitedModel: 'Opus' }, 'pause')).toBeUndefined();
  expect(waitOf({ limitedModel: 'Opus', resetsAtMs: 365 * 24 * 3_600_000 })).toBeUndefined();
});

test('a second stall without progress in between fails the session, and so do eleven stalls with progress', () => {
  const id = sid(1);
  const outcome = { status: 'paused', reason: 'stall', message: 'x', warnings: [] } as const;
  const stallsUntilTheEnd = (didSomething: (number: number) => boolean) => {
    const log = new CoreLog().addSession(sessionDefinition(1)).run();
    let number = 0;
    while (log.state.sessions.get(id)?.state.status !== 'failed') {
      number += 1;
      log.start(id);
      const of = { sessionId: id, attemptId: attemptId(id, number) };
      const progressed = didSomething(number);
      const fact: Ended = { kind: 'ended', ...of, outcome, usage: noUsage, progressed, unread: [] };
      log.add(...eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0, isUnserved: () => false }));
    }
    return number;
  };
  expect(stallsUntilTheEnd(() => false)).toBe(2);
  expect(stallsUntilTheEnd((number) => number <= 3)).toBe(4);
  expect(stallsUntilTheEnd(() => true)).toBe(11);
});
