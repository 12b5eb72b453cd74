/**
 * Promises: what was spent and what running attempts may still spend never exceeds the cap, as long as no attempt
 * overshoots its own flag; own caps hold; slices are never too small to be of use; notices come once.
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
import { fc } from '../../support/core-check.ts';
import { CoreDriver } from '../../support/core-driver.ts';
import { CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

/** A running group of which `spent` dollars are gone and `reserved` are held by a running session. */
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

describe('a slice', () => {
  const cases: [string, GroupState, SessionRecord, number, number, BudgetGrant][] = [
    ['no cap, no flag', stateWith({}), recordWith(), 0, 1, { kind: 'unlimited' }],
    ['own cap only', stateWith({}), recordWith(2), 0, 1, { kind: 'slice', usd: 2 }],
    ['what is left of the own cap', stateWith({}), recordWith(2, 0.5), 0, 1, { kind: 'slice', usd: 1.5 }],
    ['an even share', stateWith({ maxBudgetUsd: 10 }), recordWith(), 0, 4, { kind: 'slice', usd: 2.5 }],
    ['of what is free', stateWith({ maxBudgetUsd: 10 }, 4, 2), recordWith(), 1, 3, { kind: 'slice', usd: 1 }],
    ['not below five cents', stateWith({ maxBudgetUsd: 0.2 }), recordWith(), 0, 10, { kind: 'slice', usd: 0.05 }],
    ['unless the cap is smaller', stateWith({ maxBudgetUsd: 0.02 }), recordWith(), 0, 4, { kind: 'slice', usd: 0.02 }],
    ['own cap below its share', stateWith({ maxBudgetUsd: 10 }), recordWith(1), 0, 2, { kind: 'slice', usd: 1 }],
    ['own cap above what is free', stateWith({ maxBudgetUsd: 3 }, 1), recordWith(9), 0, 2, { kind: 'slice', usd: 2 }],
    ['small own cap', stateWith({ maxBudgetUsd: 1 }), recordWith(0.01), 0, 2, { kind: 'slice', usd: 0.01 }],
    ['nothing free', stateWith({ maxBudgetUsd: 2 }, 2), recordWith(), 0, 1, { kind: 'dry' }],
    ['too little free', stateWith({ maxBudgetUsd: 2 }, 1.96), recordWith(), 0, 1, { kind: 'dry' }],
    ['all reserved', stateWith({ maxBudgetUsd: 2 }, 0, 2), recordWith(), 0, 1, { kind: 'dry' }],
    ['own cap used up', stateWith({}), recordWith(1, 1), 0, 1, { kind: 'own-dry' }],
    ['a rest that claude cannot take', stateWith({}), recordWith(1, 0.9995), 0, 1, { kind: 'own-dry' }],
    [
      'warn passes no flag',
      stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 5),
      recordWith(),
      0,
      1,
      { kind: 'unlimited' },
    ],
    [
      'warn keeps own caps',
      stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 5),
      recordWith(2),
      0,
      1,
      { kind: 'slice', usd: 2 },
    ],
  ];
  for (const [name, state, record, reserved, sharers, expected] of cases) {
    test(name, () => expect(grantFor(state, record, reserved, sharers)).toEqual(expected));
  }

  test('isBudgetExhausted says the same as the slice', () => {
    for (const spent of [0, 0.5, 0.998, 0.9995, 1, 2]) {
      const record = recordWith(1, spent);
      expect(isBudgetExhausted(record)).toBe(grantFor(stateWith({}), record, 0, 1).kind === 'own-dry');
    }
  });
});

describe('a new slice while a session works', () => {
  /** Whether one of two sessions, of which both hold half a dollar, deserves more once it has spent this much. */
  const deserves = (maxBudgetUsd: number, spent: number, own: { maxBudgetUsd?: number } = {}) => {
    const log = new CoreLog({ maxBudgetUsd });
    for (const number of [1, 2]) log.addSession(sessionDefinition(number, [], own));
    log.run().start(sid(1), 'start', 0.5).start(sid(2), 'start', 0.5);
    return deservesNewGrant(log.state, log.state.sessions.get(sid(1)) as SessionRecord, spent, 1);
  };

  test('is due at four fifths, and not when it is used up: then claude ends by itself', () => {
    expect([0.39, 0.4, 0.49, 0.5].map((spent) => deserves(3, spent))).toEqual([false, true, true, false]);
  });

  test('is worth an interruption only when it is much larger than what is left of the old one', () => {
    // Of 1.2 dollars 0.5 stay with the other one; what this one has spent is gone as well, and 0.3 would be left.
    expect(deserves(1.2, 0.4)).toBe(true);
    expect(deserves(1.05, 0.4)).toBe(false);
    expect(deserves(1, 0.4)).toBe(false);
  });

  test('does not help where the own cap is reached', () => {
    expect(deserves(3, 0.4, { maxBudgetUsd: 0.5 })).toBe(false);
    expect(deserves(3, 0.4, { maxBudgetUsd: 0.55 })).toBe(false);
    expect(deserves(3, 0.4, { maxBudgetUsd: 1 })).toBe(true);
  });
});

describe('notices', () => {
  test.each([
    [0.79, []],
    [0.8, ['warn-budget']],
    [2, ['warn-budget', 'exceed-budget']],
  ])('%p of 1 spent, pause', (spent, wanted) => {
    const notices = judgeBudget(stateWith({ maxBudgetUsd: 1 }, spent)).notices;
    expect(notices.map((notice) => notice.do)).toEqual(wanted as never);
  });

  test('warn says when the budget is passed, and goes on', () => {
    const state = stateWith({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }, 1);
    expect(judgeBudget(state).notices).toEqual([
      { do: 'warn-budget', usage: 1, limit: 1 },
      { do: 'exceed-budget', action: 'continued', usage: 1, limit: 1 },
    ]);
    expect(decide(state, { preparingMax: 9 }).filter((decision) => decision.do === 'start')).toHaveLength(3);
  });

  test('each comes once; a changed budget may be exceeded again', () => {
    const log = new CoreLog({ maxBudgetUsd: 1, onBudgetExceeded: 'warn' }).addSession(sessionDefinition(1)).run();
    log.start(sid(1)).pause(sid(1), usage(1.5));
    log.add({ type: 'budget_warning', usage: 1.5, limit: 1 });
    log.add({ type: 'budget_exceeded', action: 'continued', usage: 1.5, limit: 1 });
    expect(judgeBudget(log.state).notices).toEqual([]);
    log.add({ type: 'group_changed', config: { ...log.state.group.config, maxBudgetUsd: 1.2 } });
    expect(judgeBudget(log.state).notices.map((notice) => notice.do)).toEqual(['exceed-budget']);
  });

  test('no session, no notice: nobody is left who could be named', () => {
    const log = new CoreLog({ maxBudgetUsd: 1 }).addSession(sessionDefinition(1)).run();
    log
      .start(sid(1))
      .pause(sid(1), usage(0.9))
      .add({ type: 'session_removed', sessionId: sid(1) });
    expect(judgeBudget(log.state).notices).toEqual([]);
  });

  test('what running sessions have cost so far counts, for the warning and for the end', () => {
    const live = (usd: number) => judgeBudget(stateWith({ maxBudgetUsd: 10 }, 4, 5), new Map([[sid(2), usd]]));
    expect(live(3.9)).toEqual({ notices: [], isOver: false });
    expect(live(4)).toMatchObject({ notices: [{ do: 'warn-budget', usage: 8 }], isOver: false });
    expect(live(6)).toMatchObject({
      notices: [{ do: 'warn-budget' }, { do: 'exceed-budget', usage: 10 }],
      isOver: true,
    });
  });

  test('no cap, no notice', () => expect(judgeBudget(stateWith({}, 1000)).notices).toEqual([]));
});

describe('when the money is gone', () => {
  function settledWith(onBudgetExceeded: GroupConfig['onBudgetExceeded']): CoreDriver {
    const driver = new CoreDriver(
      { maxBudgetUsd: 1, onBudgetExceeded },
      [1, 2].map((number) => sessionDefinition(number)),
    );
    driver.step();
    for (const id of driver.running) driver.finish(id, 'paused', usage(0.5));
    return driver;
  }

  test('pause pauses the group and says so once', () => {
    const driver = settledWith('pause');
    expect(driver.step()).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(driver.notices.map((notice) => notice.do)).toEqual(['warn-budget', 'exceed-budget']);
    expect(driver.notices[1]).toMatchObject({ action: 'paused', usage: 1, limit: 1 });
  });

  test('stop fails it', () => {
    const driver = settledWith('stop');
    expect(driver.step()).toMatchObject({ status: 'failed', reason: 'budget' });
    expect(driver.notices[1]).toMatchObject({ action: 'stopped' });
  });

  test('a raised budget goes on', () => {
    const driver = settledWith('pause');
    driver.step();
    driver.log.add({ type: 'group_changed', config: { ...driver.config, maxBudgetUsd: 3 } });
    driver.resume();
    expect(driver.step()).toBeNull();
    expect(driver.running.map((id) => driver.reservationOf(id))).toEqual([1, 1]);
  });

  test('the budget may keep a session from its first start, and the event may name it', () => {
    const driver = new CoreDriver({ maxBudgetUsd: 0.0005 }, [sessionDefinition(1)]);
    expect(driver.step()).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(driver.started).toEqual([]);
  });

  test('a session that used up its own cap is not the group running out of money', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    driver.step();
    driver.finish(sid(1), 'paused', usage(0.9995));
    driver.finish(sid(2), 'completed');
    const settled = driver.step();
    expect(settled).toMatchObject({ status: 'paused', reason: 'budget' });
    expect(settled?.status === 'paused' && settled.message).toContain('its own budget');
    const own = { sessionId: sid(1), usage: 0.9995, limit: 1 };
    expect(driver.notices).toEqual([
      { do: 'warn-own-budget', ...own },
      { do: 'exceed-own-budget', action: 'paused', ...own },
    ]);
  });

  test('nor is one that spent its own cap to the last cent, whatever else is paused', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    driver.step();
    driver.log.pause(sid(1), usage(1.01), 'budget');
    driver.log.complete(sid(2));
    const settled = decide(driver.log.state, { preparingMax: 100 }).at(-1);
    expect(settled).toMatchObject({ do: 'settle', status: 'paused', reason: 'budget' });
    expect(JSON.stringify(settled)).toContain('Session 001 has exhausted its own budget.');
  });

  test('S11: a session is warned of its own cap while it works, once, and again when it was raised', () => {
    const driver = new CoreDriver({}, [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)]);
    const warnings = (usd: number) => ownNotices(driver.log.state, new Map([[sid(1), usd]]));
    driver.step();
    expect(warnings(0.79)).toEqual([]);
    const warning = { sessionId: sid(1), usage: 0.8, limit: 1 };
    expect(warnings(0.8)).toEqual([{ do: 'warn-own-budget', ...warning }]);
    driver.log.add({ type: 'session_budget_warning', ...warning });
    // It may still complete with its last message.
    expect(warnings(1)).toEqual([]);
    driver.finish(sid(1), 'paused', usage(1));
    expect(ownNotices(driver.log.state)).toMatchObject([{ do: 'exceed-own-budget', action: 'paused', usage: 1 }]);
    const session = sessionDefinition(1, [], { maxBudgetUsd: 1.1 });
    driver.log.add({ type: 'session_changed', sessionId: sid(1), session });
    expect(ownNotices(driver.log.state)).toMatchObject([{ do: 'warn-own-budget', usage: 1, limit: 1.1 }]);
  });

  test('S11: who completes with the last cent has exceeded nothing, and "stop" says that the group stops', () => {
    const own = { maxBudgetUsd: 1 };
    const sessions = [sessionDefinition(1, [], own), sessionDefinition(2, [], own)];
    const driver = new CoreDriver({ onBudgetExceeded: 'stop' }, sessions);
    driver.step();
    driver.finish(sid(1), 'completed', usage(1));
    expect(ownNotices(driver.log.state)).toEqual([]);
    driver.finish(sid(2), 'paused', usage(1));
    driver.step();
    expect(driver.notices).toMatchObject([
      { do: 'warn-own-budget', sessionId: sid(2) },
      { do: 'exceed-own-budget', sessionId: sid(2), action: 'stopped' },
    ]);
  });

  test('a session that used up its own cap is passed over for the next one', () => {
    const sessions = [sessionDefinition(1, [], { maxBudgetUsd: 1 }), sessionDefinition(2)];
    const driver = new CoreDriver({ maxConcurrentSessions: 1 }, sessions);
    driver.step();
    driver.finish(sid(1), 'paused', usage(0.9995));
    expect(driver.step()).toBeNull();
    expect(driver.running).toEqual([sid(2)]);
  });
});

/** Amounts in whole cents, so that sums are what they look like. */
const cents = (min: number, max: number) => fc.integer({ min, max }).map((value) => value / 100);

interface Ending {
  readonly pick: number;
  readonly share: number;
  readonly how: 'completed' | 'failed' | 'paused';
}

test('spent and reserved never pass the cap, own caps hold, slices are of use, and the run ends', () => {
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
        // Later turns spend everything, so that the run must come to its end.
        const ending = endings[turn] ?? { pick: 0, share: 1, how: 'paused' as const };
        const id = driver.running[ending.pick % driver.running.length] as string;
        const cost = roundUsd((driver.reservationOf(id) as number) * ending.share);
        driver.finish(id, ending.how, usage(cost));
        expect(turn).toBeLessThan(2000);
      }
      expect(driver.log.state.usage.costUsd).toBeCloseTo(driver.spent, 9);
    }),
  );
});

test('an attempt that overshoots by a message costs the group that message and no more', () => {
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
      // At most one message for each session that ran beside the others when the money ran out.
      expect(driver.spent).toBeLessThanOrEqual(cap + 3 * Math.max(...messages) + 1e-9);
    }),
  );
});

test('without any cap no attempt has a reservation', () => {
  const driver = new CoreDriver({}, [sessionDefinition(1)]);
  driver.step();
  expect(driver.reservationOf(sid(1))).toBeUndefined();
  driver.finish(sid(1), 'completed', noUsage);
  expect(driver.step()).toEqual({ do: 'settle', status: 'completed' });
});
