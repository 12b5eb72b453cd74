/**
 * Promises: what a run begins with: nothing that failed is paid again unless it was asked for or its cure is a
 * person's; real money and play money are never mixed; a worker of another host is not left running beside ours.
 */
import { describe, expect, test } from 'bun:test';
import type { EventBody, RunInfo } from '../../../src/core/event.ts';
import { type RunStartOptions, startEvents } from '../../../src/runner/run-start.ts';
import { CoreLog, processIdentity, sessionDefinition, sid } from '../../support/core-events.ts';

const [a, b, c] = [sid(1), sid(2), sid(3)];
const run: RunInfo = { id: 'next', runner: processIdentity };

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

describe('what failed', () => {
  const paused = () =>
    three()
      .start(a)
      .start(b)
      .fail(a)
      .fail(b, undefined, 'not-logged-in')
      .add({ type: 'group_paused', reason: 'needs-person', message: 'x' });

  test('is not run again unasked, nor is a group that failed as a whole for want of money', () => {
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

  test('for want of a cure by a person is tried again, and nothing else unasked', () => {
    expect(retriedBy(paused())).toEqual([b]);
  });

  test('is tried again when that is asked for, all or by name', () => {
    expect(retriedBy(paused(), { retryFailed: true })).toEqual([a, b]);
    expect(retriedBy(paused(), { only: [a, c] })).toEqual([a]);
    expect(retriedBy(paused(), { only: [c] })).toEqual([]);
  });

  test('in a group that ended failed has to be asked for', () => {
    const log = three().start(a).fail(a).add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' });
    expect(begin(log)).toMatchObject({ ok: false, failure: { reason: 'sessions-failed' } });
    expect(retriedBy(log, { retryFailed: true })).toEqual([a]);
  });
});

describe('play money', () => {
  const begun = (rehearsal: boolean) => {
    const log = new CoreLog().addSession(sessionDefinition(1));
    const first: RunInfo = { ...run, ...(rehearsal ? { rehearsal: true as const } : {}) };
    return log.add({ type: 'group_started', run: first });
  };
  const rehearsed: RunInfo = { ...run, rehearsal: true };

  test('does not go on as real money, nor the other way round, once a session has begun', () => {
    expect(begin(begun(true).start(a))).toMatchObject({ ok: false, failure: { reason: 'usage' } });
    expect(begin(begun(false).start(a), { run: rehearsed })).toMatchObject({ ok: false, failure: { reason: 'usage' } });
    expect(begin(begun(true).start(a), { run: rehearsed }).ok).toBe(true);
    expect(begin(begun(false).start(a)).ok).toBe(true);
  });

  test('before that nothing was spent of either', () => {
    expect([begin(begun(true)).ok, begin(begun(false), { run: rehearsed }).ok]).toEqual([true, true]);
  });
});

test('a worker that may live on another host refuses the run, unless it is found here under a former name', () => {
  const elsewhere: RunInfo = { ...run, runner: { ...processIdentity, host: 'another' } };
  const log = three().start(a);
  expect(begin(log, { run: elsewhere })).toMatchObject({ ok: false, failure: { reason: 'other-host' } });
  expect(begin(log, { run: elsewhere, lives: () => true }).ok).toBe(true);
  expect(begin(log).ok).toBe(true);
  log.pause(a);
  expect(begin(log, { run: elsewhere }).ok).toBe(true);
});
