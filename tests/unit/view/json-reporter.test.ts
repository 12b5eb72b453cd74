/**
 * Promises: `--output json` prints a header, then only public events, each with at, type, groupId and seq. Lines of
 * session_progress have no seq and come at most twice a second for each session.
 */

import { describe, expect, test } from 'bun:test';
import { type EventBody, publicEventTypes } from '../../../src/core/event.ts';
import { verdictsOf } from '../../../src/core/plan/verdicts.ts';
import type { LiveSession } from '../../../src/core/progress.ts';
import { reduce } from '../../../src/core/reduce.ts';
import { createJsonReporter, publicEvent, type ReporterClock } from '../../../src/view/json-reporter.ts';
import { CoreLog } from '../../support/core-events.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  creation,
  eventfulRun,
  ids,
  play,
  sampleAttempt,
  sampleAttemptId,
  sampleGroupId,
  sampleUsage,
  session,
  started,
} from '../../support/view/sample-run.ts';

const stopped: ReporterClock = { now: () => 0, after: () => () => {} };

function jsonInto(lines: string[], clock = stopped) {
  return createJsonReporter({ write: (text) => lines.push(text), groupId: sampleGroupId, clock });
}

test('JSON output is one object a line: the header, then the public events in order', () => {
  const out: string[] = [];
  const reporter = jsonInto(out);
  play(reporter, eventfulRun);
  const [header, ...events] = out.map((line) => JSON.parse(line));
  expect(out.every((line) => line.endsWith('\n') && !line.slice(0, -1).includes('\n'))).toBe(true);
  expect(header).toEqual({ type: 'header', version: 1, groupId: sampleGroupId });
  expect(events.map((event) => event.type)).toEqual([
    'group_started',
    'session_started',
    'session_started',
    'session_completed',
    'budget_warning',
    'session_failed',
    'group_failed',
  ]);
  for (const event of events) {
    expect(publicEventTypes.has(event.type)).toBe(true);
    expect(event).toMatchObject({ groupId: sampleGroupId, at: expect.any(String), seq: expect.any(Number) });
  }
  expect(events.map((event) => event.seq)).toEqual([5, 7, 10, 12, 13, 14, 15]);
});

test('a failure in JSON output has reason, message, next step and usage', () => {
  const out: string[] = [];
  play(jsonInto(out), eventfulRun);
  const failed = out.map((line) => JSON.parse(line)).find((event) => event.type === 'session_failed');
  expect(failed).toEqual({
    at: '2026-01-04T14:30:35.000Z',
    type: 'session_failed',
    groupId: sampleGroupId,
    sessionId: ids.web,
    seq: 14,
    reason: 'no-result',
    message: 'claude ended without a result.',
    next: `Look at its log. Retry with: claude-code-agent session retry ${sampleGroupId}/web`,
    cost: 0.6,
    tokens: { input: 90_000, output: 400, cacheRead: 0, cacheCreation: 0 },
    durationMs: 8000,
    turns: 3,
    totalCost: 0.6,
    totalTokens: { input: 90_000, output: 400, cacheRead: 0, cacheCreation: 0 },
    attempts: 1,
  });
});

test('session_progress has no seq and comes at most twice a second for each session', () => {
  const out: string[] = [];
  const clock = new FakeClock(1000);
  const reporter = jsonInto(out, clock);
  const sessions = [session(ids.api), session(ids.web)];
  const state = play(reporter, [
    ...creation({}, sessions),
    started,
    ...sampleAttempt(ids.api),
    ...sampleAttempt(ids.web),
  ]);
  out.length = 0;
  const live = new Map([
    [ids.api as string, { currentTool: 'Bash ls', usage: sampleUsage(0.1, 5, 6, 7) }],
    [ids.web as string, { usage: sampleUsage(0, 0, 0, 0) }],
  ]);
  for (let times = 0; times < 20; times += 1) {
    reporter.progress(ids.api, state, live);
    clock.pass(50);
  }
  reporter.progress(ids.web, state, live);
  const lines = out.map((line) => JSON.parse(line));
  expect(lines.map((line) => line.sessionId)).toEqual([ids.api, ids.api, ids.api, ids.web]);
  expect(lines[0]).toEqual({
    at: '1970-01-01T00:00:01.000Z',
    type: 'session_progress',
    groupId: sampleGroupId,
    sessionId: ids.api,
    currentTool: 'Bash ls',
    cost: 0.1,
    attempts: 1,
    tokens: { input: 5, output: 6, cacheRead: 0, cacheCreation: 0 },
  });
});

describe('session_progress', () => {
  const api: string = ids.api;

  const paused = (usd: number) => {
    const of = { sessionId: api, attemptId: sampleAttemptId(api), reason: 'user', message: 'x' } as const;
    return { type: 'session_paused', ...of, usage: sampleUsage(usd, 5000, 1, 7) } as const;
  };

  /** A reporter with a first state, and a function that reports further states. */
  function begun(events = sampleAttempt(api)) {
    const out: string[] = [];
    const clock = new FakeClock(1000);
    const reporter = jsonInto(out, clock);
    const state = play(reporter, [...creation({}, [session(api)]), started, ...events]);
    out.length = 0;
    const show = (one: Partial<LiveSession>) =>
      reporter.progress(api, state, new Map([[api, { usage: sampleUsage(0, 0, 0, 0), ...one }]]));
    const lines = () => out.splice(0).map((line) => JSON.parse(line));
    return { clock, reporter, state, show, lines };
  }

  test('a tool that starts right after another line is reported half a second later, once', () => {
    const { clock, show, lines } = begun();
    show({ lastText: 'I wait.' });
    clock.pass(10);
    show({ currentTool: 'Bash true' });
    show({ currentTool: 'Bash sleep 8' });
    expect(lines()).toMatchObject([{ lastText: 'I wait.' }]);
    clock.pass(489);
    expect(lines()).toEqual([]);
    clock.pass(1);
    expect(lines()).toMatchObject([{ currentTool: 'Bash sleep 8', at: '1970-01-01T00:00:01.010Z' }]);
    clock.pass(8000);
    expect(lines()).toEqual([]);
  });

  test('the last session_progress comes before the end of the session, and none after it', () => {
    const { clock, reporter, state, show, lines } = begun();
    show({});
    show({ currentTool: 'Bash sleep 8' });
    const event = { ...paused(0), seq: state.lastSeq + 1, groupId: sampleGroupId, at: '2026-01-04T14:40:22.000Z' };
    reporter.event(event, reduce(state, event), new Map());
    clock.pass(8000);
    expect(lines().map(({ type, currentTool }) => currentTool ?? type)).toEqual([
      'session_progress',
      'Bash sleep 8',
      'session_paused',
    ]);
  });

  test('session_progress after a resume has cost, tokens and attempts of all attempts, to the sixth digit', () => {
    const again = { type: 'session_queued', sessionId: api, queued: true } as const;
    const { show, lines } = begun([...sampleAttempt(api), paused(0.1), again, ...sampleAttempt(api, 2)]);
    show({ usage: sampleUsage(0.2, 2000, 2, 7) });
    expect(lines()).toMatchObject([{ cost: 0.3, tokens: { input: 7000, output: 3 }, attempts: 2 }]);
  });
});

test('notices about a session’s own cap have the names of group notices and their own scope', () => {
  const out: string[] = [];
  const own = { sessionId: ids.api, usage: 1, limit: 1 };
  const notices: EventBody[] = [
    { type: 'budget_warning', usage: 1, limit: 1 },
    { type: 'session_budget_warning', ...own },
    { type: 'session_budget_exceeded', ...own, action: 'paused' },
  ];
  play(jsonInto(out), [...eventfulRun.slice(0, 10), ...notices.slice(0, 2)]);
  const told = out.map((line) => JSON.parse(line)).filter(({ type }) => type.startsWith('budget_'));
  expect(told).toMatchObject([
    { type: 'budget_warning', scope: 'group', usage: 1, limit: 1 },
    { type: 'budget_warning', scope: 'session', ...own },
  ]);
  const [, , exceeded] = notices.map((body) =>
    publicEvent({ seq: 1, at: '', groupId: sampleGroupId, ...body }, new CoreLog().state),
  );
  expect(exceeded).toMatchObject({ type: 'budget_exceeded', scope: 'session', action: 'paused', ...own });
});

test('the reason of an idle session is reported once, unless the end of its attempt contained it', () => {
  const out: string[] = [];
  const reporter = jsonInto(out);
  const [first, second] = [ids.api, ids.docs];
  const bodies: EventBody[] = [...creation({}, [session(first), session(second, { dependsOn: [first] })]), started];
  let state = play(reporter, bodies);
  const tell = () => reporter.resting?.([...state.sessions.keys()], state, verdictsOf(state, { preparingMax: 9 }));
  out.length = 0;
  tell();
  tell();
  const lines = () => out.splice(0).map((line) => JSON.parse(line));
  expect(lines()).toMatchObject([
    { type: 'session_progress', sessionId: first, status: 'pending', reason: 'slot', attempts: 0 },
    { type: 'session_progress', sessionId: second, status: 'pending', reason: 'waiting', waitsFor: [first] },
  ]);
  const failure = { reason: 'no-result', message: 'Nothing.', next: '', usage: sampleUsage(1, 1, 1, 1) } as const;
  const failed = { type: 'session_failed', sessionId: first, attemptId: sampleAttemptId(first), ...failure } as const;
  state = play(reporter, [...bodies, ...sampleAttempt(first), failed]);
  lines();
  tell();
  expect(lines()).toMatchObject([{ sessionId: second, reason: 'blocked', on: [first] }]);
});
