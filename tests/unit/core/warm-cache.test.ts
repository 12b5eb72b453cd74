/**
 * Promises: of three or more similar sessions one starts first, and the others start with its first answer or after
 * 15 seconds, whatever happens to the first. A waiting session has its reason. The server's cache itself and what
 * counts as similar are in `tests/system/claude/diamond.test.ts`.
 */
import { describe, expect, test } from 'bun:test';
import { type GroupConfig, noUsage, type SessionDefinition, type SessionId } from '../../../src/core/group.ts';
import type { SchedulingContext } from '../../../src/core/plan/decision.ts';
import { readySessions } from '../../../src/core/plan/plan.ts';
import { decide, nextStarts } from '../../../src/core/plan/schedule.ts';
import { cacheKind } from '../../../src/core/plan/warm-cache.ts';
import { attemptId, CoreLog, groupDefinition, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { type Choices, everyGraph, forEveryChoice } from '../../support/core-exhaustive.ts';
import { whyNot } from '../../support/verdicts.ts';

const [a, b, c, d] = [sid(1), sid(2), sid(3), sid(4)];
const limitMs = 15_000;
const keptMs = 5 * 60_000;

function group(config: Partial<GroupConfig> = {}, ...more: readonly Partial<SessionDefinition>[]): CoreLog {
  const log = new CoreLog({ maxConcurrentSessions: 9, ...config });
  for (const [index, fields] of (more.length === 0 ? [{}, {}, {}] : more).entries()) {
    log.addSession(sessionDefinition(index + 1, [], fields));
  }
  return log.run();
}

/** The time of the last event plus `laterMs`. */
function now(log: CoreLog, answered: readonly SessionId[] = [], laterMs = 0): SchedulingContext & { nowMs: number } {
  return { preparingMax: 100, answered: new Set(answered), nowMs: Date.parse(log.state.updatedAt) + laterMs };
}

function starts(log: CoreLog, circumstances: SchedulingContext = now(log)): SessionId[] {
  return decide(log.state, circumstances).flatMap((decision) => (decision.do === 'start' ? [decision.sessionId] : []));
}

describe('one session warms the cache', () => {
  test('similar sessions start with the first answer of the session that warms the cache', () => {
    const log = group();
    expect(starts(log)).toEqual([a]);
    log.intend(a);
    expect(starts(log)).toEqual([]);
    expect(starts(log, now(log, [a]))).toEqual([b, c]);
  });

  test('the session with the longest chain warms the cache', () => {
    const log = new CoreLog({ maxConcurrentSessions: 9 });
    for (const number of [1, 2, 3]) log.addSession(sessionDefinition(number));
    log.addSession(sessionDefinition(4, [3])).run();
    expect(starts(log)).toEqual([c]);
  });

  test('one session of each kind warms the cache, and others do not wait', () => {
    const kinds = [{}, {}, {}, { model: 'haiku' }, { model: 'haiku' }, { model: 'haiku' }, { model: 'opus' }];
    expect(starts(group({}, ...kinds))).toEqual([a, d, sid(7)]);
  });

  test.each<[string, CoreLog]>([
    ['two sessions of a kind', group({}, {}, {})],
    ['--no-warm-cache', group({ warmCache: false })],
  ])('similar sessions do not wait with %s', (_, log) => expect(starts(log)).toEqual([...log.state.sessions.keys()]));

  test('similar sessions do not wait where answers are not reported', () => {
    expect(starts(group(), { preparingMax: 9, nowMs: 0 })).toEqual([a, b, c]);
  });

  test('one session at a time makes no difference', () => {
    const log = group({ maxConcurrentSessions: 1 });
    expect(starts(log)).toEqual([a]);
    log.start(a);
    expect(starts(log)).toEqual([]);
    log.complete(a);
    expect(starts(log)).toEqual([b]);
  });
});

describe('limits of the wait for the cache', () => {
  test.each<[string, (log: CoreLog) => unknown]>([
    ['fails at once', (log) => log.fail(a)],
    ['is paused', (log) => log.pause(a)],
    ['loses its connection and waits', (log) => log.pause(a, usage(0.1, 5), 'transient')],
    ['completes', (log) => log.complete(a, usage(1))],
  ])('the others stop waiting when the session that warms the cache %s', (_, end) => {
    const log = group({ errorThreshold: 9 }).start(a);
    end(log);
    expect(starts(log)).toEqual(expect.arrayContaining([b, c]));
  });

  test('the others wait at most 15 seconds for the first answer', () => {
    const log = group();
    log.intend(a);
    expect(starts(log, now(log, [], limitMs - 1))).toEqual([]);
    expect(starts(log, now(log, [], limitMs))).toEqual([b, c]);
  });

  test('after a crash of the warming session the others wait 15 seconds from its restart', () => {
    const log = group();
    log.intend(a);
    const again = { id: attemptId(a, 1), number: 1, kind: 'start', offset: 0 } as const;
    log.add({ type: 'session_starting', sessionId: a, attempt: again });
    expect(starts(log, now(log, [], limitMs - 1))).toEqual([]);
    expect(starts(log, now(log, [], limitMs))).toEqual([b, c]);
  });

  test('the others do not wait when too few are left', () => {
    const log = group();
    log.intend(a);
    log.add({ type: 'session_queued', sessionId: c, queued: false });
    expect(starts(log)).toEqual([b]);
  });

  test('sessions do not wait while the server still keeps the cache of an earlier answer', () => {
    const log = group({}, {}, {}, {}, {}).start(a).complete(a, usage(1, 5));
    expect(starts(log, now(log, [], keptMs - 1))).toEqual([b, c, d]);
    expect(starts(log, now(log, [], keptMs))).toEqual([b]);
  });

  test('a session that ended without an answer filled no cache, so the next one starts first', () => {
    const log = group({}, {}, {}, {}, {}).start(a).pause(a);
    expect(starts(log)).toEqual([b]);
    log.intend(b);
    expect(starts(log, now(log, [b]))).toEqual([c, d]);
  });

  test('a resume after a long pause warms the cache again', () => {
    const log = group();
    for (const id of [a, b, c]) log.start(id);
    log.add({ type: 'group_pausing', reason: 'user' });
    for (const id of [a, b, c]) log.pause(id, usage(1, 5));
    log.add({ type: 'group_paused', reason: 'user', message: 'x' });
    log.run();
    expect(starts(log)).toEqual([a, b, c]);
    expect(starts(log, now(log, [], keptMs))).toEqual([a]);
  });
});

describe('the cache beside other decisions', () => {
  test('dependents of a kind that just ran start at once', () => {
    const log = new CoreLog({ maxConcurrentSessions: 9 });
    log.addSession(sessionDefinition(1));
    for (const number of [2, 3, 4]) log.addSession(sessionDefinition(number, [1]));
    log.run();
    expect(starts(log)).toEqual([a]);
    log.start(a).complete(a, usage(1, 5));
    expect(starts(log)).toEqual([b, c, d]);
  });

  test('a usage limit takes precedence over the wait for the cache', () => {
    const log = group();
    const gate = { untilMs: 99, mayProbe: false };
    expect(nextStarts(log.state, { ...now(log), gate }).wait).toMatchObject({ reason: 'limit' });
  });

  test('the session that warms the cache gets a share of the budget, not all of it', () => {
    const log = group({ maxBudgetUsd: 3, maxConcurrentSessions: 3 });
    expect(decide(log.state, now(log))).toEqual([{ do: 'start', sessionId: a, kind: 'start', reserveUsd: 1 }]);
    log.start(a, 'start', 1);
    expect(decide(log.state, now(log, [a]))).toMatchObject([{ reserveUsd: 1 }, { reserveUsd: 1 }]);
  });

  test('sessions that only need their acceptance command do not wait for the cache', () => {
    const log = group({}, {}, {}, {}, { accept: 'true' });
    log
      .start(d)
      .add({ type: 'session_accepting', sessionId: d, attemptId: attemptId(d, 1), result: '', usage: noUsage });
    log.pause(d, noUsage, 'interrupted');
    expect(starts(log, now(log, [], keptMs))).toEqual([a, d]);
    log.intend(d, 'resume');
    expect(starts(log, now(log, [], keptMs))).toEqual([a]);
  });

  test('sessions that still need setup do not wait for the cache', () => {
    const setup = { setup: 'npm ci', isolate: 'worktree' } as const;
    expect(starts(group({}, setup, setup, setup, {}))).toEqual([a, b, c, d]);
    expect(starts(group({}, setup, {}, {}, {}))).toEqual([a, b]);
  });

  test('no session starts to warm the cache while the group pauses', () => {
    const log = group();
    log.intend(a);
    log.add({ type: 'group_pausing', reason: 'user', mode: 'drain' });
    expect(starts(log, now(log, [a]))).toEqual([]);
  });

  test('the reason of a waiting session names the session that warms the cache', () => {
    const log = group({}, {}, {}, { name: 'third' }, { model: 'x', name: 'other' }, { model: 'x' }, { model: 'x' });
    log.intend(a);
    log.intend(d);
    const message = (label: string) => `Waiting for the first request of ${label}, which fills the prompt cache.`;
    expect(whyNot(log.state, now(log))).toMatchObject([
      { sessionId: b, reason: 'cache', message: message('001') },
      { sessionId: c, reason: 'cache', message: message('001') },
      { sessionId: sid(5), reason: 'cache', message: message('other') },
      { sessionId: sid(6), reason: 'cache', message: message('other') },
    ]);
    expect(whyNot(log.state, now(log, [a]))).toMatchObject([
      { sessionId: b, reason: 'slot' },
      { sessionId: c, reason: 'slot' },
      { reason: 'cache' },
      { reason: 'cache' },
    ]);
  });
});

describe('similar sessions', () => {
  const kind = (fields: Partial<SessionDefinition>, config = {}) =>
    cacheKind({ ...groupDefinition(config), configTemplate: template('g') }, sessionDefinition(1, [], fields));
  const template = (digest: string) => ({ name: 'x', origin: '/x', digest });

  test.each<[string, Partial<SessionDefinition>]>([
    ['project', { projectPath: '/projects/two', repository: '/projects/two/.git', isolate: 'worktree' }],
    ['task', { prompt: 'Do that.', description: 'that', name: 'that', template: 't', variables: { x: 'y' } }],
    ['permissions', { permissionMode: 'plan', allowedTools: ['Bash'] }],
    ['context', { context: ['faber'] }],
    ['model from the group', { model: 'opus' }],
    ['commands', { config: { generateCommands: false } }],
  ])('sessions with another %s are similar', (_, fields) => {
    expect(kind(fields, { model: 'opus' })).toBe(kind({}, { model: 'opus' }));
  });

  test.each<[string, Partial<SessionDefinition>]>([
    ['model', { model: 'haiku' }],
    ['config template', { configTemplate: template('s') }],
    ['inheritance', { config: { inheritFromGroup: false } }],
    ['settings', { config: { settingsOverride: { permissions: { deny: ['WebFetch'] } } } }],
    ['set of MCP servers', { config: { generateMcpConfig: false } }],
    ['output schema', { outputSchema: { type: 'object' } }],
  ])('sessions with another %s are not similar', (_, fields) => {
    expect(kind(fields, { model: 'opus' })).not.toBe(kind({}, { model: 'opus' }));
  });
});

/** Runs a group to its end, with random events for any running session. */
function play(graph: readonly (readonly number[])[], models: readonly string[], choices: Choices): number {
  const log = new CoreLog({ maxConcurrentSessions: 3, errorThreshold: 9 });
  for (const [index, dependsOn] of graph.entries()) {
    log.addSession(sessionDefinition(index, dependsOn, { model: models[index] ?? 'x' }));
  }
  log.run();
  const answered = new Set<SessionId>();
  const modelOf = (id: SessionId) => log.state.sessions.get(id)?.definition.model;
  let laterMs = 0;
  let waits = 0;
  for (;;) {
    const circumstances = now(log, [...answered], laterMs);
    const decisions = decide(log.state, circumstances);
    if (decisions.some((decision) => decision.do === 'settle')) return waits;
    for (const decision of decisions) if (decision.do === 'start') log.intend(decision.sessionId);
    const running = [...log.state.running];
    if (running.length === 0) throw new Error('nothing runs and the run does not end');
    const silent = running.filter((id) => !answered.has(id));
    const free = 3 - running.length;
    for (const id of free > 0 ? readySessions(log.state) : []) {
      waits += 1;
      const alike = running.filter((other) => modelOf(other) === modelOf(id));
      const young = alike.filter((other) => {
        const session = log.state.sessions.get(other)?.state;
        const begin = session?.status === 'running' ? Date.parse(session.attempt.startedAt) : 0;
        return silent.includes(other) && circumstances.nowMs - begin < limitMs;
      });
      if (young.length === 0 || young.length < alike.length) throw new Error(`${id} waits for no session`);
    }
    const act = choices.choose(running.length * 2 + silent.length + (laterMs === 0 && silent.length > 0 ? 1 : 0));
    if (act < running.length) log.complete(running[act] as SessionId);
    else if (act < running.length * 2) log.fail(running[act - running.length] as SessionId);
    else if (act < running.length * 2 + silent.length) answered.add(silent[act - running.length * 2] as SessionId);
    else laterMs += limitMs;
  }
}

test.each<[string, number[][][], string[]]>([
  ['up to three sessions of one kind', [1, 2, 3].flatMap((count) => everyGraph(count, false)), ['x', 'x', 'x']],
  ['three sessions of two kinds', everyGraph(3, true), ['x', 'y', 'x']],
])('every random run of %s ends, and no session waits for one that does not run', (_, graphs, models) => {
  let runs = 0;
  let waits = 0;
  for (const graph of graphs) runs += forEveryChoice((choices) => (waits += play(graph, models, choices)));
  expect(runs).toBeGreaterThan(graphs.length * 10);
  expect(waits > 0).toBe(new Set(models).size === 1);
});
