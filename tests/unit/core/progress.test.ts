/**
 * Promises: counts and sums of a progress are those of its sessions, including live figures. Every idle session has a
 * reason, and time counts only while the group runs.
 */

import { describe, expect, test } from 'bun:test';
import { addTokens, noTokens } from '../../../src/core/group.ts';
import { type GroupProgress, groupProgress, type LiveSession } from '../../../src/core/progress.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { cases, fc } from '../../support/core-check.ts';
import { CoreDriver } from '../../support/core-driver.ts';
import { type AttemptOutcome, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { whyNot } from '../../support/verdicts.ts';

const [a, b, c, d] = [sid(1), sid(2), sid(3), sid(4)];

/** 2 depends on 1, 3 on 2, and 4 is independent. */
function fourSessions(): CoreLog {
  const log = new CoreLog().addSession(sessionDefinition(1)).addSession(sessionDefinition(2, [1], { name: 'app' }));
  return log
    .addSession(sessionDefinition(3, [2]))
    .addSession(sessionDefinition(4))
    .run();
}

function progressOf(log: CoreLog, live: Record<string, LiveSession> = {}, atMs?: number): GroupProgress {
  return groupProgress(log.state, new Map(Object.entries(live)), atMs ?? Date.parse(log.state.updatedAt));
}

const byId = (progress: GroupProgress) => Object.fromEntries(progress.sessions.map((session) => [session.id, session]));

describe('reasons', () => {
  test('a failed session blocks its direct and indirect dependents', () => {
    const sessions = byId(progressOf(fourSessions().start(a).fail(a)));
    expect(sessions[a]).toMatchObject({
      status: 'failed',
      reason: 'claude-error',
      message: 'It went wrong. Try again.',
    });
    expect(sessions[b]).toMatchObject({ status: 'pending', reason: 'blocked', waitsFor: [a] });
    expect(sessions[c]).toMatchObject({ status: 'pending', reason: 'blocked', waitsFor: [b] });
    expect(sessions[c]?.message).toContain('Blocked by 001,');
    expect(sessions[d]).toMatchObject({ reason: 'slot' });
  });

  test('a failed session that will be retried blocks nothing', () => {
    const log = fourSessions().start(a).fail(a).add({ type: 'group_failed', reason: 'x', message: 'x' }).run([a]);
    expect(byId(progressOf(log))[b]).toMatchObject({ reason: 'waiting' });
  });

  test('in a paused group idle sessions have the reason paused', () => {
    const sessions = byId(progressOf(fourSessions().start(a).pause(a)));
    expect(sessions[a]).toMatchObject({
      status: 'paused',
      reason: 'user',
      message: 'Paused.',
      why: 'Paused. Resume it with: claude-code-agent session resume 20260102-030405-test/001',
    });
    expect(sessions[b]).toMatchObject({ reason: 'waiting' });
  });

  test('a session on hold stays so when the run ends, and the next run starts it', () => {
    const log = fourSessions().add({ type: 'session_queued', sessionId: d, queued: false });
    expect(byId(progressOf(log))[d]).toMatchObject({ reason: 'held' });
    log.start(a).pause(a).add({ type: 'group_paused', reason: 'user', message: 'x' });
    expect(byId(progressOf(log))[d]).toMatchObject({ status: 'pending', reason: 'held' });
    const why = whyNot(log.state, { preparingMax: 9 }).find(({ sessionId }) => sessionId === d);
    expect(why).toMatchObject({
      message: 'It is held back. Resuming the group starts it as well.',
      advice: { commands: [['session', 'resume', `${log.state.group.id}/004`]] },
    });
    expect(byId(progressOf(log.run()))[d]).toMatchObject({ reason: 'slot' });
  });

  test('a running session is preparing until claude has reported its conversation', () => {
    const log = fourSessions().start(d);
    log.intend(a);
    expect(byId(progressOf(log))[a]).toMatchObject({ status: 'running', phase: 'preparing', attempts: 1 });
    expect(byId(progressOf(log))[d]).toMatchObject({ status: 'running', phase: 'working' });
  });
});

describe('figures', () => {
  test('the figures of a running session include earlier attempts and the current one', () => {
    const log = fourSessions().start(a).pause(a, usage(1, 10)).start(a, 'resume');
    const live = { usage: { ...usage(0.5, 5), estimated: true as const }, currentTool: 'Bash', lastText: 'Looking' };
    const progress = progressOf(log, { [a]: live });
    expect(byId(progress)[a]).toMatchObject({ cost: 1.5, estimated: true, currentTool: 'Bash', lastText: 'Looking' });
    expect(byId(progress)[a]?.tokens.output).toBe(15);
    expect([progress.totalCost, progress.totalTokens.output]).toEqual([1.5, 15]);
  });

  test('progress.json has the fields of the specification with their names and types', () => {
    const progress = progressOf(fourSessions().start(a), { [a]: { usage: usage(1, 10), currentTool: 'Bash' } });
    const counts = { totalSessions: 4, completed: 0, running: 1, pending: 3, failed: 0 };
    expect(progress).toMatchObject({ ...counts, totalCost: 1 });
    expect(typeof progress.elapsedTime).toBe('number');
    for (const { input, output } of [progress.totalTokens, ...progress.sessions.map(({ tokens }) => tokens)]) {
      expect([typeof input, typeof output]).toEqual(['number', 'number']);
    }
    for (const { id, projectPath, cost } of progress.sessions) {
      expect([typeof id, typeof projectPath, typeof cost]).toEqual(['string', 'string', 'number']);
    }
    expect(byId(progress)[a]).toMatchObject({ status: 'running', currentTool: 'Bash' });
  });

  test('an unavailable API and denied calls are reported while the attempt runs', () => {
    const retry = { attempt: 5, attemptsMax: 6, error: 'server_error', errorStatus: 503 };
    const denied = { calls: 2, tools: ['Bash'] };
    const log = fourSessions().start(a);
    const now = { usage: usage(1, 10), retry, denied };
    expect(byId(progressOf(log, { [a]: now }))[a]).toMatchObject({ retry, denied });
    log.complete(a, usage(1, 10));
    const after = byId(progressOf(log, { [a]: now }))[a];
    for (const name of ['retry', 'denied']) expect(after).not.toHaveProperty(name);
  });

  test('live figures of an ended attempt are not counted again', () => {
    const log = fourSessions().start(a).complete(a, usage(1, 10));
    const progress = progressOf(log, { [a]: { usage: usage(1, 10), currentTool: 'Bash' } });
    expect(progress.totalCost).toBe(1);
    expect(byId(progress)[a]).toMatchObject({ cost: 1 });
    expect(byId(progress)[a]).not.toHaveProperty('currentTool');
  });

  test('the sums of a progress are always the sums of its sessions', () => {
    const endings = fc.array(
      fc.record({
        pick: fc.nat({ max: 9 }),
        cents: fc.nat({ max: 500 }),
        how: fc.constantFrom<AttemptOutcome>('completed', 'failed', 'paused'),
      }),
      { maxLength: 12 },
    );
    fc.assert(
      fc.property(endings, (turns) => {
        const sessions = [1, 2, 3, 4, 5].map((number) => sessionDefinition(number, number > 3 ? [number - 2] : []));
        const driver = new CoreDriver({ errorThreshold: 9 }, sessions);
        for (const { pick, cents, how } of turns) {
          if (driver.step() !== null) break;
          checkSums(driver.log.state, driver.running);
          driver.finish(driver.running[pick % driver.running.length] as string, how, usage(cents / 100, cents));
        }
        checkSums(driver.log.state, driver.running);
      }),
      cases,
    );
  });
});

function checkSums(state: GroupState, running: readonly string[]): void {
  const live = new Map(running.map((id, index) => [id, { usage: usage(index / 4, index) }]));
  const progress = groupProgress(state, live, Date.parse(state.updatedAt));
  const count = (status: string) => progress.sessions.filter((session) => session.status === status).length;
  expect(progress.totalSessions).toBe(progress.sessions.length);
  for (const status of ['completed', 'running', 'pending', 'failed', 'paused'] as const) {
    expect([status, progress[status]]).toEqual([status, count(status)]);
  }
  expect(progress.totalCost).toBeCloseTo(
    progress.sessions.reduce((sum, session) => sum + session.cost, 0),
    9,
  );
  expect(progress.totalTokens).toEqual(
    progress.sessions.reduce((sum, session) => addTokens(sum, session.tokens), noTokens),
  );
}
