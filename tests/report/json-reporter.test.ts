/**
 * Promises of `--output json`: a header, then public events only, each with at, type, groupId and seq; session_progress
 * without seq, at most two a second per session; nothing of our own bookkeeping.
 */
import { expect, test } from 'bun:test';
import { publicEventTypes } from '../../src/core/event.ts';
import { createJsonReporter } from '../../src/report/json-reporter.ts';
import { begin, creation, eventfulRun, groupId, ids, play, session, started, usage } from './sample-run.ts';

function jsonInto(lines: string[], now: () => number = () => 0) {
  return createJsonReporter({ write: (text) => lines.push(text), groupId, now });
}

test('one JSON object a line: the header, then the public events in order', () => {
  const out: string[] = [];
  const reporter = jsonInto(out);
  play(reporter, eventfulRun);
  const [header, ...events] = out.map((line) => JSON.parse(line));
  expect(out.every((line) => line.endsWith('\n') && !line.slice(0, -1).includes('\n'))).toBe(true);
  expect(header).toEqual({ type: 'header', version: 1, groupId });
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
    expect(event).toMatchObject({ groupId, at: expect.any(String), seq: expect.any(Number) });
  }
  expect(events.map((event) => event.seq)).toEqual([5, 7, 10, 12, 13, 14, 15]);
});

test('a failure carries reason, sentence, next step and what it used', () => {
  const out: string[] = [];
  play(jsonInto(out), eventfulRun);
  const failed = out.map((line) => JSON.parse(line)).find((event) => event.type === 'session_failed');
  expect(failed).toEqual({
    at: '2026-01-04T14:30:35.000Z',
    type: 'session_failed',
    groupId,
    sessionId: ids.web,
    seq: 14,
    reason: 'no-result',
    message: 'claude ended without a result.',
    next: 'Look at its log.',
    cost: 0.6,
    tokens: { input: 90_000, output: 400, cacheRead: 0, cacheCreation: 0 },
    durationMs: 8000,
    turns: 3,
  });
});

test('progress has no seq and is thinned to two a second per session', () => {
  const out: string[] = [];
  let nowMs = 0;
  const reporter = jsonInto(out, () => nowMs);
  const sessions = [session(ids.api), session(ids.web)];
  const state = play(reporter, [...creation({}, sessions), started, ...begin(ids.api), ...begin(ids.web)]);
  out.length = 0;
  const live = new Map([
    [ids.api as string, { currentTool: 'Bash ls', usage: usage(0.1, 5, 6, 7) }],
    [ids.web as string, { usage: usage(0, 0, 0, 0) }],
  ]);
  for (nowMs = 1000; nowMs < 2000; nowMs += 50) reporter.progress(ids.api, state, live);
  reporter.progress(ids.web, state, live);
  const lines = out.map((line) => JSON.parse(line));
  expect(lines.map((line) => line.sessionId)).toEqual([ids.api, ids.api, ids.web]);
  expect(lines[0]).toEqual({
    at: '1970-01-01T00:00:01.000Z',
    type: 'session_progress',
    groupId,
    sessionId: ids.api,
    currentTool: 'Bash ls',
    cost: 0.1,
    tokens: { input: 5, output: 6, cacheRead: 0, cacheCreation: 0 },
  });
});
