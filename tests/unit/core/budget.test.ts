/**
 * Promises: spending plus reservations never exceeds the cap as long as no attempt overshoots its own cap. A
 * session's own cap holds, shares are never too small to use, and each notice is sent once.
 */
import { describe, expect, test } from 'bun:test';
import { type GroupConfig, noUsage, roundUsd } from '../../../src/core/group.ts';
import {
  type BudgetGrant,
  deservesNewGrant,
  grantFor,
  isBudgetExhausted,
  judgeBudget,
  ownNotices,
} from '../../../src/core/plan/budget.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { cases, fc } from '../../support/core-check.ts';
import { CoreDriver } from '../../support/core-driver.ts';
import { CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

/** A running group with `spent` dollars spent and `reserved` dollars reserved by a running session. */
function stateWith(config: Partial<GroupConfig>, spent = 0, reserved = 0): GroupState {
  const log = new CoreLog(config);
  for (const number of [1, 2, 3, 4, 5]) log.addSession(sessionDefinition(number));
  log.run();
  if (spent > 0) log.start(sid(1)).complete(sid(1), usage(spent));
  if (reserved > 0) log.start(sid(2), 'start', reserved);
  return log.state;
}

function recordWith(ownCap?: number, spent = 0): SessionRecord {
  const own = ownCap === undefined ? {} : { maxBudgetUsd: ownCap };
  const log = new CoreLog().addSession(sessionDefinition(1, [], own)).run();
  if (spent > 0) log.start(sid(1)).pause(sid(1), usage(spent));
  return log.state.sessions.get(sid(1)) as SessionRecord;
}

describe('budget share', () => {
  const cases: [string, GroupState, SessionRecord, number, number, BudgetGrant][] = [
    ['no group cap and no own cap: the attempt is unlimited', stateWith({}), recordWith(), 0, 1, { kind: 'unlimited' }],
    ['no group cap: the share is the own cap', stateWith({}), recordWith(2), 0, 1, { kind: 'share', usd: 2 }],
    [
      'no group cap: the share is the unspent part of the own cap',
      stateWith({}),
      recordWith(2, 0.5),
      0,
      1,
      { kind: 'share', usd: 1.5 },
    ],
    [
      'group cap: sessions get equal shares',
      stateWith({ maxBudgetUsd: 10 }),
      recordWith(),
      0,
      4,
      { kind: 'share', usd: 2.5 },
    ],
    [
      'group cap: only the unreserved rest is shared',
      stateWith({ maxBudgetUsd: 10 }, 4, 2),
      recordWith(),
      1,
      3,
      { kind: 'share', usd: 1 },
    ],
    [
      'group cap: a share is at least five cents',
      stateWith({ maxBudgetUsd: 0.2 }),
      recordWith(),
      0,
      10,
      { kind: 'share', usd: 0.05 },
    ],
    [
      'group cap below five cents: the share is the whole cap',
      stateWith({ maxBudgetUsd: 0.02 }),
      recordWith(),
      0,
      4,
      { kind: 'share', usd: 0.02 },
    ],
    [
      'own cap below the equal share: the share is the own cap',
      stateWith({ maxBudgetUsd: 10 }),
      recordWith(1),
      0,
      2,
      { kind: 'share', usd: 1 },
    ],
    [
      'own cap above the free budget: the share is the free budget',
      stateWith({ maxBudgetUsd: 3 }, 1),
      recordWith(9),
      0,
      2,
      { kind: 'share', usd: 2 },
    ],
    [
      'own cap below five cents: the share is the own cap',
      stateWith({ maxBudgetUsd: 1 }),
      recordWith(0.01),
      0,
      2,
      { kind: 'share', usd: 0.01 },
    ],
    ['group cap spent: no share is granted', stateWith({ maxBudgetUsd: 2 }, 2), recordWith(), 0, 1, { kind: 'dry' }],
    [
      'less than five cents free: no share is granted',
      stateWith({ maxBudgetUsd: 2 }, 1.96),
      recordWith(),
      0,
      1,
      { kind: 'dry' },
    ],
    [
      'group cap fully reserved: no share is granted',
      stateWith({ maxBudgetUsd: 2 }, 0, 2),
      recordWith(),
      0,
      1,
      { kind: 'dry' },
    ],
    ['own cap spent: no share is granted', stateWith({}), recordWith(1, 1), 0, 1, { kind: 'own-dry' }],
    [
      'own cap with a rest too small for claude: no share is granted',
      stateWith({}),
      recordWith(1, 0.9995),
      0,
      1,
      { kind: 'own-dry' },
    ],
    [
      'on_budget_exceeded warn: the attempt gets no limit',
      stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 5),
      recordWith(),
      0,
      1,
      { kind: 'unlimited' },
    ],
    [
      'on_budget_exceeded warn: the own cap still applies',
      stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 5),
      recordWith(2),
      0,
      1,
      { kind: 'share', usd: 2 },
    ],
  ];
  for (const [name, state, record, reserved, sharers, expected] of cases) {
    test(name, () => expect(grantFor(state, record, reserved, sharers)).toEqual(expected));
  }

  test('isBudgetExhausted agrees with the budget share that the session would get', () => {
    for (const spent of [0, 0.5, 0.998, 0.9995, 1, 2]) {
      const record = recordWith(1, spent);
      expect(isBudgetExhausted(record)).toBe(grantFor(stateWith({}), record, 0, 1).kind === 'own-dry');
    }
  });
});

describe('top-up of a running session', () => {
  /** Whether one of two sessions that reserve half a dollar each gets a top-up after it has spent this much. */
  const deserves = (maxBudgetUsd: number, spent: number, own: { maxBudgetUsd?: number } = {}) => {
    const log = new CoreLog({ maxBudgetUsd });
    for (const number of [1, 2]) log.addSession(sessionDefinition(number, [], own));
    log.run().start(sid(1), 'start', 0.5).start(sid(2), 'start', 0.5);
    return deservesNewGrant(log.state, log.state.sessions.get(sid(1)) as SessionRecord, spent, 1);
  };

  test('a top-up is due at 80 % of the share, but not after it is spent, when claude ends by itself', () => {
    expect([0.39, 0.4, 0.49, 0.5].map((spent) => deserves(3, spent))).toEqual([false, true, true, false]);
  });

  test('a top-up is granted only when it is much larger than the rest of the current share', () => {
    // Of $1.20, $0.50 is reserved by the other session and this one has spent the rest of its share, so $0.30 is
    // free.
    expect(deserves(1.2, 0.4)).toBe(true);
    expect(deserves(1.05, 0.4)).toBe(false);
    expect(deserves(1, 0.4)).toBe(false);
  });

  test('a session that reached its own cap gets no top-up', () => {
    expect(deserves(3, 0.4, { maxBudgetUsd: 0.5 })).toBe(false);
    expect(deserves(3, 0.4, { maxBudgetUsd: 0.55 })).toBe(false);
    expect(deserves(3, 0.4, { maxBudgetUsd: 1 })).toBe(true);
  });
});

describe('budget notices', () => {
  test.each([
    [0.79, []],
    [0.8, ['budget_warning']],
    [2, ['budget_warning', 'budget_exceeded']],
  ])('with on_budget_exceeded pause, spending %p of $1 sends the expected notices', (spent, wanted) => {
    const notices = judgeBudget(stateWith({ maxBudgetUsd: 1 }, spent)).notices;
    expect(notices.map((notice) => notice.type)).toEqual(wanted as never);
  });

  test('with on_budget_exceeded warn, passing the cap sends a warning and the group continues', () => {
    const state = stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 1);
    expect(judgeBudget(state).notices).toEqual([
      { type: 'budget_warning', usage: 1, limit: 1 },
      { type: 'budget_exceeded', action: 'continued', usage: 1, limit: 1 },
    ]);
    expect(decide(state, { preparingMax: 9 }).filter((decision) => decision.do === 'start')).toHaveLength(3);
  });

  test('each budget notice is sent once, and again after the cap was changed', () => {
    const log = new CoreLog({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }).addSession(sessionDefinition(1)).run();
    log.start(sid(1)).pause(sid(1), usage(1.5));
    log.add({ type: 'budget_warning', usage: 1.5, limit: 1 });
    log.add({ type: 'budget_exceeded', action: 'continued', usage: 1.5, limit: 1 });
    expect(judgeBudget(log.state).notices).toEqual([]);
    log.add({ type: 'group_changed', config: { ...log.state.group.config, maxBudgetUsd: 1.2 } });
    expect(judgeBudget(log.state).notices.map((notice) => notice.type)).toEqual(['budget_exceeded']);
  });

  test('a group without sessions sends no budget notice', () => {
    const log = new CoreLog({ maxBudgetUsd: 1 }).addSession(sessionDefinition(1)).run();
    log
      .start(sid(1))
      .pause(sid(1), usage(0.9))
      .add({ type: 'session_removed', sessionId: sid(1) });
    expect(judgeBudget(log.state).notices).toEqual([]);
  });

  test('costs of running attempts count for the budget warning and for the budget limit', () => {
    const live = (usd: number) => judgeBudget(stateWith({ maxBudgetUsd: 10 }, 4, 5), new Map([[sid(2), usd]]));
    expect(live(3.9)).toEqual({ notices: [], isOver: false });
    expect(live(4)).toMatchObject({ notices: [{ type: 'budget_warning', usage: 8 }], isOver: false });
    expect(live(6)).toMatchObject({
      notices: [{ type: 'budget_warning' }, { type: 'budget_exceeded', usage: 10 }],
      isOver: true,
    });
  });

  test('a group without a cap sends no budget notice', () =>
    expect(judgeBudget(stateWith({}, 1000)).notices).toEqual([]));
});

describe('exhausted group budget', () => {
  function settledWith(onBudgetExceeded: GroupConfig['onBudgetExceeded']): CoreDriver {
    const driver = new CoreDriver(
      { maxBudgetUsd: 1, onBudgetExceeded },
      [1, 2].map((number) => sessionDefinition(number)),
    );
    driver.step();
    for (const id of driver.running) driver.finish(id, 'paused', usage(0.5));
    return driver;
  }

  test('with on_budget_exceeded pause, the group pauses and reports it once', () => {
    const driver = settledWith('pause');
    expect(driver.step()).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(driver.notices.map((notice) => notice.type)).toEqual(['budget_warning', 'budget_exceeded']);
    expect(driver.notices[1]).toMatchObject({ action: 'paused', usage: 1, limit: 1 });
  });

  test('with on_budget_exceeded stop, the group fails', () => {
    const driver = settledWith('stop');
    expect(driver.step()).toMatchObject({ status: 'failed', reason: 'budget' });
    expect(driver.notices[1]).toMatchObject({ action: 'stopped' });
  });

  test('a group whose exhausted cap was raised continues', () => {
    const driver = settledWith('pause');
    driver.step();
    driver.log.add({ type: 'group_changed', config: { ...driver.config, maxBudgetUsd: 3 } });
    driver.resume();
    expect(driver.step()).toBeNull();
    expect(driver.running.map((id) => driver.reservationOf(id))).toEqual([1, 1]);
  });

  test('a budget event may name a session that the exhausted budget kept from its first start', () => {
    const driver = new CoreDriver({ maxBudgetUsd: 0.0005 }, [sessionDefinition(1)]);
    expect(driver.step()).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(driver.started).toEqual([]);
  });

  test('a session that reached its own cap does not exhaust the group budget', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    driver.step();
    driver.finish(sid(1), 'paused', usage(0.9995));
    driver.finish(sid(2), 'completed');
    const settled = driver.step();
    expect(settled).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(settled?.status === 'paused' && settled.message).toContain('its own budget');
    const own = { sessionId: sid(1), usage: 0.9995, limit: 1 };
    expect(driver.notices).toEqual([
      { type: 'session_budget_warning', ...own },
      { type: 'session_budget_exceeded', action: 'paused', ...own },
    ]);
  });

  test('a session that spent its own cap to the last cent does not exhaust the group budget', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    driver.step();
    driver.log.pause(sid(1), usage(1.01), 'budget');
    driver.log.complete(sid(2));
    const settled = decide(driver.log.state, { preparingMax: 100 }).at(-1);
    expect(settled).toMatchObject({ do: 'settle', status: 'paused', reason: 'budget' });
    expect(JSON.stringify(settled)).toContain('Session 001 has exhausted its own budget.');
  });

  test('a running session gets one warning about its own cap, and another one after the cap was raised', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    const warnings = (usd: number) => ownNotices(driver.log.state, new Map([[sid(1), usd]]));
    driver.step();
    expect(warnings(0.79)).toEqual([]);
    const warning = { sessionId: sid(1), usage: 0.8, limit: 1 };
    expect(warnings(0.8)).toEqual([{ type: 'session_budget_warning', ...warning }]);
    driver.log.add({ type: 'session_budget_warning', ...warning });
    // The attempt may still complete with its last message.
    expect(warnings(1)).toEqual([]);
    driver.finish(sid(1), 'paused', usage(1));
    expect(ownNotices(driver.log.state)).toMatchObject([
      { type: 'session_budget_exceeded', action: 'paused', usage: 1 },
    ]);
    const session = sessionDefinition(1, [], { maxBudgetUsd: 1.1 });
    driver.log.add({ type: 'session_changed', sessionId: sid(1), session });
    expect(ownNotices(driver.log.state)).toMatchObject([{ type: 'session_budget_warning', usage: 1, limit: 1.1 }]);
  });

  test('completing with the last cent exceeds no budget, and on_budget_exceeded stop still stops the group', () => {
    const own = { maxBudgetUsd: 1 };
    const sessions = [sessionDefinition(1, [], own), sessionDefinition(2, [], own)];
    const driver = new CoreDriver({ onBudgetExceeded: 'stop' }, sessions);
    driver.step();
    driver.finish(sid(1), 'completed', usage(1));
    expect(ownNotices(driver.log.state)).toEqual([]);
    driver.finish(sid(2), 'paused', usage(1));
    driver.step();
    expect(driver.notices).toMatchObject([
      { type: 'session_budget_warning', sessionId: sid(2) },
      { type: 'session_budget_exceeded', sessionId: sid(2), action: 'stopped' },
    ]);
  });

  test('a session that reached its own cap is skipped and the next session starts', () => {
    const sessions = [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)];
    const driver = new CoreDriver({ maxConcurrentSessions: 1 }, sessions);
    driver.step();
    driver.finish(sid(1), 'paused', usage(0.9995));
    expect(driver.step()).toBeNull();
    expect(driver.running).toEqual([sid(2)]);
  });
});

/** Amounts in whole cents, so that sums are exact. */
const cents = (min: number, max: number) => fc.integer({ min, max }).map((value) => value / 100);

interface Ending {
  readonly pick: number;
  readonly share: number;
  readonly how: 'completed' | 'failed' | 'paused';
}

test('random runs end with spending plus reservations within the group cap and own caps', () => {
  const groups = fc.record({
    cap: cents(1, 500),
    slots: fc.integer({ min: 1, max: 5 }),
    stop: fc.boolean(),
    owns: fc.array(fc.option(cents(1, 200), { nil: undefined }), { minLength: 1, maxLength: 8 }),
    endings: fc.array(
      fc.record<Ending>({
        pick: fc.nat({ max: 20 }),
        share: fc.constantFrom(0, 0.3, 0.8, 1),
        how: fc.constantFrom('completed', 'failed', 'paused'),
      }),
      { minLength: 1, maxLength: 12 },
    ),
  });
  fc.assert(
    fc.property(groups, ({ cap, slots, stop, owns, endings }) => {
      const sessions = owns.map((own, index) =>
        sessionDefinition(index, [], own === undefined ? {} : { maxBudgetUsd: own }),
      );
      const config = { maxBudgetUsd: cap, maxConcurrentSessions: slots, errorThreshold: 100 };
      const driver = new CoreDriver({ ...config, onBudgetExceeded: stop ? 'stop' : 'pause' }, sessions);
      for (let turn = 0; driver.step() === null; turn += 1) {
        expect(driver.spent + driver.reservedUsd).toBeLessThanOrEqual(cap + 1e-9);
        expect(driver.log.state.reservedUsd).toBeCloseTo(driver.reservedUsd, 9);
        for (const index of owns.keys()) {
          const reserved = driver.reservationOf(sid(index));
          if (reserved === undefined) continue;
          const left = driver.ownLeft(sid(index));
          expect(reserved).toBeGreaterThanOrEqual(Math.min(0.05, cap, left) - 1e-9);
          expect(reserved).toBeLessThanOrEqual(left + 1e-9);
        }
        // Later turns spend everything, so that the run must end.
        const ending = endings[turn] ?? { pick: 0, share: 1, how: 'paused' as const };
        const id = driver.running[ending.pick % driver.running.length] as string;
        const cost = roundUsd((driver.reservationOf(id) as number) * ending.share);
        driver.finish(id, ending.how, usage(cost));
        expect(turn).toBeLessThan(2000);
      }
      expect(driver.log.state.usage.costUsd).toBeCloseTo(driver.spent, 9);
    }),
    cases,
  );
});

test('an attempt that overshoots its cap by one message costs the group at most that message', () => {
  const overshoots = fc.array(cents(0, 30), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(overshoots, cents(5, 300), (messages, cap) => {
      const sessions = [1, 2, 3].map((number) => sessionDefinition(number));
      const driver = new CoreDriver({ maxBudgetUsd: cap }, sessions);
      for (let turn = 0; driver.step() === null; turn += 1) {
        const id = driver.running[0] as string;
        const over = messages[turn % messages.length] as number;
        driver.finish(id, 'paused', usage((driver.reservationOf(id) as number) + over));
      }
      // At most one message for each session that was running when the budget was exhausted.
      expect(driver.spent).toBeLessThanOrEqual(cap + 3 * Math.max(...messages) + 1e-9);
    }),
    cases,
  );
});

test('attempts in a group without any cap have no reservation', () => {
  const driver = new CoreDriver({}, [sessionDefinition(1)]);
  driver.step();
  expect(driver.reservationOf(sid(1))).toBeUndefined();
  driver.finish(sid(1), 'completed', noUsage);
  expect(driver.step()).toEqual({ do: 'settle', status: 'completed' });
});
