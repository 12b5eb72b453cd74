/** Promises: the report says of every moment why a session did not run, and never counts money twice. */
import { describe, expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { type GroupConfig, roundUsd, type SessionDefinition } from '../../../src/core/group.ts';
import { type ReportModel, reportModel } from '../../../src/view/html/model.ts';
import { reportPage } from '../../../src/view/html/page.ts';
import { paint, type Span, subtract, Track, union } from '../../../src/view/html/spans.ts';
import { attemptId, CoreLog, processIdentity, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { fc } from '../../support/property.ts';

const [a, b, c] = [sid(1), sid(2), sid(3)];

/** In seconds since the first run began, as `slot 0-3`. */
function waits(model: ReportModel, id: string): string[] {
  const from = Date.parse(model.timeline?.from ?? '');
  const seconds = (at: string): number => (Date.parse(at) - from) / 1000;
  const session = model.sessions.find((one) => one.id === id);
  return (session?.waits ?? []).map(({ from: begin, to, reason }) => `${reason} ${seconds(begin)}-${seconds(to)}`);
}

function modelOf(log: CoreLog, nowMs = 0): ReportModel {
  return reportModel(log.state, log.events, nowMs);
}

function started(config: Partial<GroupConfig>, ...sessions: SessionDefinition[]): CoreLog {
  const log = new CoreLog(config);
  for (const session of sessions) log.addSession(session);
  return log.run();
}

/** Lets `count` seconds pass in which nothing changes. */
function idle(log: CoreLog, count: number): CoreLog {
  const nothing: EventBody = { type: 'request_answered', requestId: 'r', done: true, message: '' };
  for (let second = 0; second < count; second += 1) log.add(nothing);
  return log;
}

describe('a session that does not run waits for', () => {
  test('a free slot, then its dependency', () => {
    const log = started({}, sessionDefinition(1), sessionDefinition(2, [1]));
    idle(log, 2).start(a).complete(a).start(b).complete(b);
    const model = modelOf(log.add({ type: 'group_completed' }));
    expect(waits(model, a)).toEqual(['slot 0-3']);
    expect(waits(model, b)).toEqual(['dependency 0-6', 'slot 6-7']);
  });

  test('the prompt cache, as long as another of its kind fills it and a slot is free', () => {
    const three = [1, 2, 3].map((number) => sessionDefinition(number));
    const log = started({ maxConcurrentSessions: 3 }, ...three);
    const model = modelOf(idle(log.start(a), 2).start(b).start(c));
    expect(waits(model, a)).toEqual(['slot 0-1']);
    expect(waits(model, b)).toEqual(['cache 0-6']);
    expect(waits(model, c)).toEqual(['cache 0-6', 'slot 6-9']);
    const long = modelOf(idle(started({}, ...three).start(a), 30));
    expect(waits(long, b)).toEqual(['cache 0-16', 'slot 16-33']);
    const full = modelOf(idle(started({ maxConcurrentSessions: 1 }, ...three).start(a), 2));
    expect(waits(full, b)).toEqual(['slot 0-5']);
    const cold = modelOf(idle(started({ warmCache: false }, ...three).start(a), 2));
    expect(waits(cold, b)).toEqual(['slot 0-5']);
  });

  test('nobody, when dependencies do not count', () => {
    const log = started({ respectDependencies: false }, sessionDefinition(1), sessionDefinition(2, [1]));
    expect(waits(modelOf(idle(log, 2).start(a)), b)).toEqual(['slot 0-5']);
  });

  test('a failed one, until that is tried again', () => {
    const log = started({}, sessionDefinition(1), sessionDefinition(2, [1]), sessionDefinition(3, [2]));
    log.start(a).fail(a);
    idle(log, 1).add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' });
    idle(log.run([a]), 1)
      .start(a, 'retry')
      .complete(a);
    const model = modelOf(log);
    expect(waits(model, b)).toEqual(['dependency 0-4', 'blocked 4-6', 'paused 6-7', 'dependency 7-12']);
    expect(waits(model, c)).toEqual(waits(model, b));
    expect(waits(model, a)).toEqual(['slot 0-1', 'slot 7-9']);
  });

  test('the reset of a usage limit', () => {
    const log = started({}, sessionDefinition(1), sessionDefinition(2)).start(a);
    log.add({ type: 'limit_reached', resetsAt: '2026-01-02T09:00:00Z' }).pause(a, usage(0), 'limit');
    idle(log, 2).add({ type: 'limit_lifted' }).start(a, 'resume');
    expect(waits(modelOf(log), a)).toEqual(['slot 0-1', 'limit 5-8', 'slot 8-9']);
    expect(waits(modelOf(log), b)).toEqual(['slot 0-4', 'limit 4-8', 'slot 8-11']);
  });

  test('the delay before another try', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const retryAt = new Date(Date.parse(log.next({ type: 'limit_lifted' }).at) + 2000).toISOString();
    const of = { sessionId: a, attemptId: attemptId(a, 1) };
    log.add({ type: 'session_paused', ...of, reason: 'transient', message: 'x', retryAt, usage: usage(0) });
    expect(waits(modelOf(idle(log, 4)), a)).toEqual(['slot 0-1', 'backoff 4-6', 'slot 6-8']);
  });

  test('money', () => {
    const log = started({ maxBudgetUsd: 1 }, sessionDefinition(1), sessionDefinition(2)).start(a).complete(a, usage(1));
    log.add({ type: 'budget_exceeded', sessionId: b, action: 'paused', usage: 1, limit: 1 });
    idle(log, 1).add({ type: 'group_paused', reason: 'budget', message: 'x' });
    log.add({ type: 'group_changed', config: { ...log.state.group.config, maxBudgetUsd: 9 } }).run();
    expect(waits(modelOf(log.start(b)), b)).toEqual(['slot 0-4', 'budget 4-9', 'slot 9-10']);
  });

  test('its user, while it is paused by name', () => {
    const log = started({}, sessionDefinition(1)).start(a).pause(a);
    log.add({ type: 'session_queued', sessionId: a, queued: true });
    expect(waits(modelOf(log.start(a, 'resume')), a)).toEqual(['slot 0-1', 'paused 4-5', 'slot 5-6']);
  });

  test('a group that is about to pause, that rests, and that is halted', () => {
    const log = started({}, sessionDefinition(1));
    log.add({ type: 'group_pausing', reason: 'user' }, { type: 'group_paused', reason: 'user', message: 'x' });
    idle(log.run(), 1).add({ type: 'group_frozen', until: '2026-01-02T09:00:00Z' }, { type: 'group_thawed' });
    const model = modelOf(log.start(a));
    expect(waits(model, a)).toEqual(['slot 0-1', 'paused 1-3', 'slot 3-5', 'paused 5-6', 'slot 6-7']);
    expect(model.timeline?.idle).toHaveLength(1);
    expect(model.timeline?.frozen).toHaveLength(1);
  });

  test('a person, after too many failures', () => {
    const log = started({ errorThreshold: 1 }, sessionDefinition(1), sessionDefinition(2)).start(a).fail(a);
    expect(waits(modelOf(idle(log, 2)), b)).toEqual(['slot 0-4', 'errors 4-6']);
  });
});

test('U14: pauses, retries and corrections are told, and a pause of the group once', () => {
  const log = started({}, sessionDefinition(1)).start(a);
  log.pause(a, usage(0.1), 'transient').start(a, 'resume');
  log.pause(a, usage(0.2), 'not-accepted').start(a, 'resume');
  log.pause(a, usage(0.3), 'slice').start(a, 'resume');
  const texts = modelOf(log).notes.map(({ text }) => text);
  expect(texts.slice(1)).toEqual([
    expect.stringMatching(/^001\b.* was paused \(transient\)\. /),
    expect.stringMatching(/^001\b.* was sent back to correct its work\. /),
  ]);
  const of = { sessionId: a, attemptId: attemptId(a, 4) };
  log.add({ type: 'session_failed', ...of, reason: 'claude-error', message: 'Bad.', next: '', usage: usage(0.4) });
  log.add({ type: 'session_queued', sessionId: a, queued: true }).start(a, 'retry');
  expect(modelOf(log).notes.slice(-2)).toMatchObject([
    { text: expect.stringMatching(/^001\b.* failed \(claude-error\)\. Bad\.$/) },
    { text: expect.stringMatching(/^001\b.* was tried again, attempt 5\.$/) },
  ]);
  // What an attempt cost is drawn while it worked.
  const [first] = modelOf(log).spending;
  expect(Date.parse(first?.from ?? '')).toBeLessThan(Date.parse(first?.at ?? ''));
});

describe('an attempt', () => {
  test('gets ready, works and is judged', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const of = { sessionId: a, attemptId: attemptId(a, 1), result: 'r' };
    log.add({ type: 'session_accepting', ...of, usage: usage(0.5) });
    log.add({ type: 'session_completed', ...of, usage: usage(0.5) });
    const model = modelOf(log);
    const [attempt] = model.sessions[0]?.attempts ?? [];
    const times = [attempt?.startedAt, attempt?.workingAt, attempt?.acceptingAt, attempt?.endedAt];
    expect(times.map((at = '') => at.slice(17, 19))).toEqual(['09', '11', '12', '13']);
    expect(model.spending.map(({ costUsd }) => costUsd)).toEqual([0.5]);
    expect(attempt).toMatchObject({ outcome: 'completed', costUsd: 0.5 });
  });

  test('that only had to be judged again cost nothing', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const of = { sessionId: a, attemptId: attemptId(a, 1), result: 'r' };
    log.add({ type: 'session_accepting', ...of, usage: usage(0.5) }).pause(a, usage(0.5), 'interrupted');
    log.intend(a, 'resume');
    log.complete(a, usage(0.5));
    const model = modelOf(log);
    expect(model.sessions[0]?.attempts.map(({ costUsd }) => costUsd)).toEqual([0.5, 0]);
    expect(model.cost.spentUsd).toBe(0.5);
    expect(model.spending).toHaveLength(1);
  });

  test('whose runner died is no longer than it worked', () => {
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
    expect(model.timeline?.idle).toHaveLength(1);
  });

  test('that runs goes on until now, with what it has used so far', () => {
    const log = started({}, sessionDefinition(1)).start(a);
    const nowMs = Date.parse(log.state.updatedAt) + 60_000;
    const model = reportModel(log.state, log.events, nowMs, { live: new Map([[a, usage(0.25, 7)]]), hasRunner: true });
    expect(model).toMatchObject({ asOf: new Date(nowMs).toISOString(), cost: { spentUsd: 0.25 } });
    expect(model.sessions[0]).toMatchObject({ costUsd: 0.25, attempts: [{ outcome: 'running', costUsd: 0.25 }] });
    expect(model.spending).toMatchObject([{ at: model.asOf, costUsd: 0.25, tokens: { output: 7 } }]);
    expect(model.next[0]).toContain('group watch');
  });
});

describe('what was found out later', () => {
  const costs = (model: ReportModel) => model.sessions[0]?.attempts.map(({ costUsd }) => costUsd);
  const drawn = ({ spending }: ReportModel) => roundUsd(spending.reduce((sum, { costUsd }) => sum + costUsd, 0));
  const over = { type: 'group_paused', reason: 'user', message: 'x' } as const;
  const held = { ...usage(1), heldUsd: 0.4 };

  test.each([
    ['freed', 1.1, [0.6, 0.5]],
    ['booked', 1.5, [1, 0.5]],
  ] as const)('what was held for a session is %s', (_, costUsd, attempts) => {
    const log = started({}, sessionDefinition(1)).start(a).pause(a, held).start(a, 'resume').pause(a, usage(0.5));
    log.add(over, { type: 'session_cost_settled', sessionId: a, usage: usage(costUsd) });
    const model = modelOf(log);
    expect([model.cost.spentUsd, drawn(model)]).toEqual([costUsd, costUsd]);
    expect(costs(model)).toEqual([...attempts]);
  });

  test('what a resumed claude told twice is counted once, attempt by attempt', () => {
    const log = started({}, sessionDefinition(1));
    log.start(a).pause(a, usage(0.01)).start(a, 'resume').pause(a, usage(0.012)).start(a, 'resume');
    log.pause(a, usage(0.015));
    const sessions = [{ sessionId: a, usage: usage(0.015) }];
    const model = modelOf(log.add(over, { type: 'usage_corrected', usage: usage(0.015), sessions, unsure: [] }));
    expect([model.cost.spentUsd, drawn(model)]).toEqual([0.015, 0.015]);
    expect(costs(model)).toEqual([0.01, 0.002, 0.003]);
  });

  test('a person who spoke with the session spent something, and what is held of that is freed', () => {
    const log = started({}, sessionDefinition(1)).start(a).pause(a, usage(0.5)).add(over);
    const who = { sessionId: a, attachmentId: 'x' };
    log.add({ type: 'session_attaching', ...who, process: processIdentity });
    log.add({ type: 'session_attached', ...who, reservedUsd: 2 });
    log.add({ type: 'session_detached', ...who, claudeSessionIds: [], spoken: true, usage: held });
    expect([modelOf(log).cost.spentUsd, drawn(modelOf(log))]).toEqual([1.5, 1.5]);
    const model = modelOf(log.add({ type: 'session_cost_settled', sessionId: a, usage: usage(1.1) }));
    expect([model.cost.spentUsd, drawn(model), costs(model)]).toEqual([1.1, 1.1, [0.5]]);
  });
});

test('whose runner is gone says so, and the time since then is not its own', () => {
  const log = started({}, sessionDefinition(1)).start(a);
  const night = Date.parse(log.state.updatedAt) + 8 * 3600_000;
  const model = reportModel(log.state, log.events, night, { live: new Map([[a, usage(0.25, 7)]]) });
  expect(model).toMatchObject({ interrupted: true, asOf: new Date(log.state.updatedAt).toISOString() });
  expect(model.elapsedMs).toBeLessThan(60_000);
  const page = reportPage(log.state, model);
  expect(page).toContain('>interrupted<');
  expect(page).not.toContain('still running');
});

describe('money', () => {
  test('of a removed session stays spent', () => {
    const log = started({}, sessionDefinition(1)).start(a).pause(a, usage(0.5));
    log.add({ type: 'session_removed', sessionId: a });
    expect(modelOf(log)).toMatchObject({ sessions: [], cost: { spentUsd: 0.5, removedUsd: 0.5 } });
  });
});

describe('spans', () => {
  const spans: fc.Arbitrary<Span[]> = fc
    .array(fc.tuple(fc.nat(60), fc.nat(9)), { maxLength: 12 })
    .map((pairs) => pairs.map(([from, length]) => ({ from, to: from + length })));
  const covers = (list: readonly Span[], at: number): boolean => list.some(({ from, to }) => from <= at && at < to);
  const moments = Array.from({ length: 80 }, (_, at) => at);

  test('union and subtract are those of sets of moments', () => {
    fc.assert(
      fc.property(spans, spans, (some, others) => {
        const [joined, away] = [union(some), union(others)];
        const left = subtract(joined, away);
        for (const at of moments) {
          expect(covers(joined, at)).toBe(covers(some, at));
          expect(covers(left, at)).toBe(covers(some, at) && !covers(others, at));
        }
      }),
    );
  });

  test('paint keeps every moment, in its new colour where a span covers it', () => {
    fc.assert(
      fc.property(spans, spans, (some, others) => {
        const pieces = union(some).map((span) => ({ ...span, kind: 'old' }));
        const painted = paint(pieces, union(others), 'new');
        for (const at of moments) {
          const kind = painted.find(({ from, to }) => from <= at && at < to)?.kind;
          expect(kind).toBe(covers(some, at) ? (covers(others, at) ? 'new' : 'old') : undefined);
        }
      }),
    );
  });

  test('a track tells when it was so', () => {
    const track = new Track();
    track.set(true, 1);
    track.set(true, 2);
    track.set(false, 4);
    track.set(false, 5);
    track.set(true, 7);
    expect(track.spans(9)).toEqual([
      { from: 1, to: 4 },
      { from: 7, to: 9 },
    ]);
  });
});
