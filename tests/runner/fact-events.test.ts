/** Promises: what the user said and claude did not read is not lost with the attempt, nor said twice. */
import { expect, test } from 'bun:test';
import type { GroupEvent } from '../../src/core/event.ts';
import { noUsage } from '../../src/core/group.ts';
import { eventsOf } from '../../src/runner/fact-events.ts';
import type { WorkerFact } from '../../src/runner/facts.ts';
import { attemptId, CoreLog, sessionDefinition, sid } from '../support/core-events.ts';

type Ended = Extract<WorkerFact, { kind: 'ended' }>;

/** What is on record of messages after an attempt has ended with these not read. */
function saidAgain(outcome: Ended['outcome'], unread: readonly string[]): string[] {
  const id = sid(1);
  const of = { sessionId: id, attemptId: attemptId(id, 1) };
  const log = new CoreLog().addSession(sessionDefinition(1)).run().start(id);
  log.add({ type: 'session_stopping', ...of, reason: 'user' });
  log.add({ type: 'session_message', sessionId: id, text: 'said while it stopped' });
  const fact: Ended = { kind: 'ended', ...of, outcome, usage: noUsage, progressed: false, unread };
  const events = eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0 });
  log.add(...events);
  return log.events.flatMap((event: GroupEvent) => (event.type === 'session_message' ? [event.text] : []));
}

test('what was not read goes to the next attempt, once', () => {
  const paused = { status: 'paused', reason: 'user', message: 'x', warnings: [] } as const;
  expect(saidAgain(paused, [])).toEqual(['said while it stopped']);
  expect(saidAgain(paused, ['not read', 'said while it stopped'])).toEqual(['said while it stopped', 'not read']);
});

test('also when it has failed, but not when it is done', () => {
  const failed = { status: 'failed', reason: 'claude-error', message: 'x', next: 'y', warnings: [] } as const;
  expect(saidAgain(failed, ['not read'])).toEqual(['said while it stopped', 'not read']);
  expect(saidAgain({ status: 'completed', result: 'x', warnings: [] }, ['not read'])).toHaveLength(1);
});

test('whoever is interrupted for want of disk again and again waits ever longer, at most ten minutes', () => {
  const id = sid(1);
  const log = new CoreLog().addSession(sessionDefinition(1)).run();
  const outcome = { status: 'paused', reason: 'disk', message: 'x', warnings: [] } as const;
  const waitsMs = [1, 2, 3, 4, 5, 6].map((number) => {
    log.start(id);
    const of = { sessionId: id, attemptId: attemptId(id, number) };
    const fact: Ended = { kind: 'ended', ...of, outcome, usage: noUsage, progressed: true, unread: [] };
    log.add(...eventsOf(log.state, fact, { adopted: new Map(), nowMs: 0, jitter: 0 }));
    return log.state.sessions.get(id)?.notBeforeMs;
  });
  expect(waitsMs).toEqual([2_000, 8_000, 32_000, 128_000, 512_000, 600_000]);
});
