/**
 * Promises: the incrementally updated plan equals the plan made from scratch, for large random groups, several runs,
 * and sessions that are added, removed or changed in between.
 */
import { describe, expect, test } from 'bun:test';
import { allBlockers, planOf, readySessions, willNotRun } from '../../../src/core/plan/plan.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { cases, fc } from '../../support/core-check.ts';
import { CoreDriver } from '../../support/core-driver.ts';
import { type AttemptOutcome, CoreLog, sessionDefinition, sid } from '../../support/core-events.ts';

const outcomes = ['completed', 'completed', 'completed', 'failed', 'paused'] as const;

/** Random dependencies on earlier sessions only. */
const randomGroups = fc
  .array(fc.array(fc.nat({ max: 1000 }), { maxLength: 3 }), { minLength: 1, maxLength: 30 })
  .map((lists) => lists.map((list, index) => (index === 0 ? [] : [...new Set(list.map((pick) => pick % index))])));

const randomEndings = fc.array(
  fc.record({ pick: fc.nat({ max: 100 }), outcome: fc.constantFrom<AttemptOutcome>(...outcomes) }),
  {
    minLength: 100,
    maxLength: 100,
  },
);

test('the incremental plan equals the full plan in random groups with random outcomes over three runs', () => {
  const settings = fc.record({
    maxConcurrentSessions: fc.integer({ min: 1, max: 6 }),
    respectDependencies: fc.boolean(),
  });
  fc.assert(
    fc.property(randomGroups, randomEndings, settings, (dependsOn, endings, config) => {
      const sessions = dependsOn.map((list, index) => sessionDefinition(index, list));
      const driver = new CoreDriver({ ...config, errorThreshold: 3 }, sessions);
      let turn = 0;
      for (let run = 0; run < 3 && driver.log.state.status !== 'completed'; run += 1) {
        if (run > 0) driver.resume();
        // The driver compares the incremental plan with the full one after every step.
        while (driver.step() === null) {
          const { pick, outcome } = endings[turn % endings.length] as (typeof endings)[number];
          driver.finish(driver.running[pick % driver.running.length] as string, outcome);
          turn += 1;
        }
        checkBlockers(driver.log.state);
      }
    }),
    cases,
  );
});

/** One walk over the graph finds for every session what a search from that session finds. */
function checkBlockers(state: GroupState): void {
  const plan = planOf(state);
  const all = allBlockers(state, plan);
  for (const [id, record] of state.sessions) {
    if (record.state.status === 'completed') expect(all.has(id)).toBe(false);
    else expect(all.get(id) ?? []).toEqual(blockers(state, record));
  }
}

/** Failed direct and indirect dependencies, found by one walk for each session. */
function blockers(state: GroupState, { definition }: SessionRecord): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  const open = [...definition.dependsOn];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (seen.has(id) || state.sessions.get(id)?.state.status === 'completed') continue;
    seen.add(id);
    if (willNotRun(state, id)) found.push(id);
    else open.push(...(state.sessions.get(id)?.definition.dependsOn ?? []));
  }
  return found.sort();
}

describe('plan changes during a run', () => {
  const readyOf = (log: CoreLog) => readySessions(log.state).toReversed();
  const fresh = (log: CoreLog) => readySessions(foldEvents(log.events) as GroupState).toReversed();

  function group(): CoreLog {
    const log = new CoreLog()
      .addSession(sessionDefinition(1))
      .addSession(sessionDefinition(2, [1]))
      .run();
    expect(readyOf(log)).toEqual([sid(1)]);
    return log;
  }

  test('the plan is right after a session was added', () => {
    const log = group()
      .addSession(sessionDefinition(3))
      .addSession(sessionDefinition(4, [3]))
      .addSession(sessionDefinition(5, [4]));
    expect(readyOf(log)).toEqual([sid(3), sid(1)]);
    expect(fresh(log)).toEqual(readyOf(log));
  });

  test('the plan is right after a session was removed', () => {
    const log = group().start(sid(1)).complete(sid(1));
    expect(readyOf(log)).toEqual([sid(2)]);
    log.add({ type: 'session_removed', sessionId: sid(2) });
    expect(readyOf(log)).toEqual([]);
  });

  test('the plan is right after a session that just changed was removed', () => {
    const log = group()
      .start(sid(1))
      .fail(sid(1))
      .add({ type: 'session_removed', sessionId: sid(2) });
    expect(readyOf(log)).toEqual(fresh(log));
  });

  test('the plan is right after a dependency was dropped', () => {
    const log = group();
    log.add({ type: 'session_changed', sessionId: sid(2), session: sessionDefinition(2) });
    expect(readyOf(log)).toEqual([sid(1), sid(2)]);
  });

  test('the plan is right after dependencies are no longer respected', () => {
    const log = group();
    log.add({ type: 'group_changed', config: { ...log.state.group.config, respectDependencies: false } });
    expect(readyOf(log)).toEqual([sid(1), sid(2)]);
  });

  test('the plan is right when a failed session is retried in a later run', () => {
    const log = group().start(sid(1)).fail(sid(1));
    expect(readyOf(log)).toEqual([]);
    log.add({ type: 'group_failed', reason: 'sessions-failed', message: 'x' }).run([sid(1)]);
    expect(readyOf(log)).toEqual([sid(1)]);
    expect(decide(log.state, { preparingMax: 9 })).toEqual([{ do: 'start', sessionId: sid(1), kind: 'retry' }]);
  });

  test('the same plan object is reused as long as no session changes', () => {
    const log = group();
    const plan = planOf(log.state);
    log.start(sid(1)).complete(sid(1));
    expect(planOf(log.state)).toBe(plan);
    expect(planOf(log.addSession(sessionDefinition(3)).state)).not.toBe(plan);
  });
});

describe('cost of planning', () => {
  /** Counts accesses to the session table during one decision, while one session runs. */
  function lookups(count: number): number {
    const log = new CoreLog({ maxConcurrentSessions: 1 });
    for (let number = 0; number < count; number += 1)
      log.addSession(sessionDefinition(number, number === 0 ? [] : [number - 1]));
    log.run();
    decide(log.state, { preparingMax: 9 });
    log.start(sid(0)).complete(sid(0));
    const { sessions } = log.state;
    let asked = 0;
    const get = sessions.get.bind(sessions);
    sessions.get = (id) => {
      asked += 1;
      return get(id);
    };
    expect(decide(log.state, { preparingMax: 9 })).toMatchObject([{ do: 'start', sessionId: sid(1) }]);
    return asked;
  }

  test('the cost of a decision does not grow faster than the group', () => {
    expect(lookups(2000)).toBeLessThanOrEqual(100 * lookups(20));
    expect(lookups(2000)).toBeLessThanOrEqual(20 * 2000);
  });
});
