/** Promises: the report shows every attempt of a session, and counts no money twice. */
import { describe, expect, test } from 'bun:test';
import type { GroupConfig, SessionDefinition } from '../../../src/core/group.ts';
import { type ReportModel, reportModel } from '../../../src/view/html/model.ts';
import { reportPage } from '../../../src/view/html/page.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const a = sid(1);

function modelOf(log: CoreLog, nowMs = 0): ReportModel {
  return reportModel(log.state, log.events, nowMs);
}

function started(config: Partial<GroupConfig>, ...sessions: SessionDefinition[]): CoreLog {
  const log = new CoreLog(config);
  for (const session of sessions) log.addSession(session);
  return log.run();
}

describe('attempt bars', () => {
  test('the bar of an attempt shows preparation, work and acceptance', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const of = { sessionId: a, attemptId: attemptId(a, 1), result: 'r' };
    log.add({ type: 'session_accepting', ...of, usage: usage(0.5) });
    log.add({ type: 'session_completed', ...of, usage: usage(0.5) });
    const model = modelOf(log);
    const [attempt] = model.sessions[0]?.attempts ?? [];
    const times = [attempt?.startedAt, attempt?.workingAt, attempt?.acceptingAt, attempt?.endedAt];
    expect(times.map((at = '') => at.slice(17, 19))).toEqual(['09', '11', '12', '13']);
    expect(attempt).toMatchObject({ outcome: 'completed', costUsd: 0.5 });
  });

  test('an attempt that only ran the acceptance command again cost nothing', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const of = { sessionId: a, attemptId: attemptId(a, 1), result: 'r' };
    log.add({ type: 'session_accepting', ...of, usage: usage(0.5) }).pause(a, usage(0.5), 'interrupted');
    log.intend(a, 'resume');
    log.complete(a, usage(0.5));
    const model = modelOf(log);
    expect(model.sessions[0]?.attempts.map(({ costUsd }) => costUsd)).toEqual([0.5, 0]);
    expect(model.cost.spentUsd).toBe(0.5);
  });

  test('the bar of an attempt whose runner died ends with its last event', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const later = { run: { id: 'next', runner: { pid: 1, startTime: '1', host: 'h', bootId: 'b' } }, retry: [] };
    const resumed = log.next({ type: 'group_resumed', ...later });
    const night = 8 * 3600_000;
    const at = (event: typeof resumed): typeof resumed => ({
      ...event,
      at: new Date(Date.parse(event.at) + night).toISOString(),
    });
    const seq = resumed.seq + 1;
    const of = { sessionId: a, attemptId: attemptId(a, 1) };
    const used = { ...usage(0.1), durationMs: 60_000 };
    const body = { type: 'session_paused', ...of, reason: 'interrupted', message: 'x', usage: used } as const;
    const events = [...log.events, at(resumed), at({ ...resumed, ...body, seq } as typeof resumed)];
    const model = reportModel(log.state, events, 0);
    const [attempt] = model.sessions[0]?.attempts ?? [];
    expect(Date.parse(attempt?.endedAt ?? '') - Date.parse(attempt?.startedAt ?? '')).toBe(60_000);
    expect(model.elapsedMs).toBeLessThan(60_000);
  });

  test('the bar of a running attempt ends now, with its cost so far', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const nowMs = Date.parse(log.state.updatedAt) + 60_000;
    const model = reportModel(log.state, log.events, nowMs, { live: new Map([[a, usage(0.25, 7)]]), hasRunner: true });
    expect(model).toMatchObject({ asOf: new Date(nowMs).toISOString(), cost: { spentUsd: 0.25 } });
    expect(model.sessions[0]).toMatchObject({ costUsd: 0.25, attempts: [{ outcome: 'running', costUsd: 0.25 }] });
    expect(model.next[0]).toContain('group watch');
  });
});

test('a running attempt without a runner is marked, and its bar ends with the runner', () => {
  const log = started({}, sessionDefinition(1)).start(a);
  const night = Date.parse(log.state.updatedAt) + 8 * 3600_000;
  const model = reportModel(log.state, log.events, night, { live: new Map([[a, usage(0.25, 7)]]) });
  expect(model).toMatchObject({ interrupted: true, asOf: new Date(log.state.updatedAt).toISOString() });
  expect(model.elapsedMs).toBeLessThan(60_000);
  const page = reportPage(log.state, model);
  expect(page).toContain('>interrupted<');
  expect(page).not.toContain('still running');
});

describe('money in the history', () => {
  test('the cost of a removed session stays in the history', () => {
    const log = started({}, sessionDefinition(1)).start(a).pause(a, usage(0.5));
    log.add({ type: 'session_removed', sessionId: a });
    expect(modelOf(log)).toMatchObject({ sessions: [], cost: { spentUsd: 0.5, removedUsd: 0.5 } });
  });
});
