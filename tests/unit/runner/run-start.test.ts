/**
 * Promises: a run retries failures only on request or when a person could have fixed the cause, never mixes real and
 * rehearsal money, and never starts beside a worker of another host.
 */
import { describe, expect, test } from 'bun:test';
import type { EventBody, RunInfo } from '../../../src/core/event.ts';
import { goOnCommand } from '../../../src/core/plan/advice.ts';
import { type RunStartOptions, startEvents } from '../../../src/runner/run-start.ts';
import { attemptId, CoreLog, runnerIdentity, sessionDefinition, sid } from '../../support/core-events.ts';

const [a, b, c] = [sid(1), sid(2), sid(3)];
const run: RunInfo = { id: 'next', runner: runnerIdentity };

function three(): CoreLog {
  const log = new CoreLog();
  for (const number of [1, 2, 3]) log.addSession(sessionDefinition(number));
  return log.run();
}

function begin(log: CoreLog, wish: Partial<RunStartOptions> = {}) {
  return startEvents(log.state, { run, overrides: {}, retryFailed: false, lives: () => false, ...wish });
}

function retriedBy(log: CoreLog, wish: Partial<RunStartOptions> = {}): readonly string[] {
  const events = begin(log, wish);
  if (!events.ok) throw new Error(events.failure.message);
  return events.value.flatMap((event: EventBody) => (event.type === 'group_resumed' ? event.retry : []));
}

describe('failed sessions at the start of a run', () => {
  const paused = () =>
    three()
      .start(a)
      .start(b)
      .fail(a)
      .fail(b, undefined, 'not-logged-in')
      .add({ type: 'group_paused', reason: 'needs-person', message: 'x' });

  test('failed sessions and groups that failed on their budget are not run again without a request', () => {
    const ended = three().start(a).fail(a).add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' });
    const { id } = ended.state.group;
    const look = ['group', 'show', id];
    const next = { commands: [look, ['group', 'run', id, '--retry-failed']] };
    expect(begin(ended)).toMatchObject({ ok: false, failure: { reason: 'sessions-failed', next } });
    const poor = three().start(a).complete(a).add({ type: 'group_failed', reason: 'budget', message: 'x' });
    const resume = { commands: [look, ['group', 'resume', id]] };
    expect(begin(poor)).toMatchObject({ ok: false, failure: { reason: 'sessions-failed', next: resume } });
    expect(begin(poor, { retryFailed: true })).toMatchObject({ ok: true });
    expect(begin(poor, { only: [b] })).toMatchObject({ ok: true });
  });

  test('a session whose question was answered goes on although another one failed, which stays failed', () => {
    const request = { kind: 'guard', text: 'test/a.txt changed', options: ['allow', 'deny'], input: {} } as const;
    const item = { sessionId: b, item: 'one' } as const;
    const calls = { requestId: 'r', toolUseId: 't', tool: 'check' } as const;
    const log = three().start(a).start(b).fail(a);
    log.add({ type: 'item_opened', ...item, attemptId: attemptId(b, 1), ...request, ...calls });
    log.pause(b, undefined, 'guard-changed').add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' });
    expect(begin(log).ok).toBe(false);
    log.add({ type: 'item_answered', ...item, by: 'user', answer: { text: 'allow' } });
    expect(goOnCommand(log.state)).toEqual(['group', 'run', log.state.group.id]);
    expect(retriedBy(log)).toEqual([]);
  });

  test('a failure that a person can fix is retried without a request, and no other failure is', () => {
    expect(retriedBy(paused())).toEqual([b]);
  });

  test('failed sessions are retried on request, all of them or by name', () => {
    expect(retriedBy(paused(), { retryFailed: true })).toEqual([a, b]);
    expect(retriedBy(paused(), { only: [a, c] })).toEqual([a]);
    expect(retriedBy(paused(), { only: [c] })).toEqual([]);
  });

  test('resuming a failed group requires a request for failed sessions', () => {
    const log = three().start(a).fail(a).add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' });
    expect(begin(log)).toMatchObject({ ok: false, failure: { reason: 'sessions-failed' } });
    expect(retriedBy(log, { retryFailed: true })).toEqual([a]);
  });
});

describe('rehearsals', () => {
  const begun = (rehearsal: boolean) => {
    const log = new CoreLog().addSession(sessionDefinition(1));
    const first: RunInfo = { ...run, ...(rehearsal ? { rehearsal: true as const } : {}) };
    return log.add({ type: 'group_started', run: first });
  };
  const rehearsed: RunInfo = { ...run, rehearsal: true };

  test('once a session has begun, a rehearsal cannot continue as a real run, nor a real run as a rehearsal', () => {
    expect(begin(begun(true).start(a))).toMatchObject({ ok: false, failure: { reason: 'usage' } });
    expect(begin(begun(false).start(a), { run: rehearsed })).toMatchObject({ ok: false, failure: { reason: 'usage' } });
    expect(begin(begun(true).start(a), { run: rehearsed }).ok).toBe(true);
    expect(begin(begun(false).start(a)).ok).toBe(true);
  });

  test('before the first session starts, a group can change between rehearsal and real run', () => {
    expect([begin(begun(true)).ok, begin(begun(false), { run: rehearsed }).ok]).toEqual([true, true]);
  });
});

test('a worker that may live on another host refuses the run, unless it lives here under an old host name', () => {
  const elsewhere: RunInfo = { ...run, runner: { ...runnerIdentity, host: 'another' } };
  const log = three().start(a);
  expect(begin(log, { run: elsewhere })).toMatchObject({ ok: false, failure: { reason: 'other-host' } });
  expect(begin(log, { run: elsewhere, lives: () => true }).ok).toBe(true);
  expect(begin(log).ok).toBe(true);
  log.pause(a);
  expect(begin(log, { run: elsewhere }).ok).toBe(true);
});
