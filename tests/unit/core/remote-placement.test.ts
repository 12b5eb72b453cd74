/**
 * Promises: with a fleet, sessions run on other hosts when they must, or when this host is full and they may. Without
 * a fleet and in a rehearsal nothing changes. The possible cost of a lost host is held until it is known.
 */
import { describe, expect, test } from 'bun:test';
import { thisMachine } from '../../../src/core/event.ts';
import {
  exchanged,
  type GroupConfig,
  noUsage,
  roundUsd,
  type SessionDefinition,
  type Usage,
} from '../../../src/core/group.ts';
import { heldCost } from '../../../src/core/plan/attachment.ts';
import type { FleetView, SchedulingContext } from '../../../src/core/plan/decision.ts';
import { isolationOf } from '../../../src/core/plan/isolation.ts';
import { decide } from '../../../src/core/plan/schedule.ts';
import { verdictsOf } from '../../../src/core/plan/verdicts.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { cases, fc } from '../../support/core-check.ts';
import { attemptId, CoreLog, sessionDefinition, sid, usage } from '../../support/core-events.ts';

const work = { repository: '/projects/one/.git', isolate: 'worktree' } as const;
const [a, b, c] = [sid(1), sid(2), sid(3)];

function fleet(view: Partial<FleetView> = {}): FleetView {
  const said = { describe: () => ({ text: 'all are busy' }), withoutLogin: () => [] };
  return { granted: new Map(), staleSlotRequests: new Set(), localSlots: 2, ...said, ...view };
}

const placeOf = (id: string, host = 'one') => ({ host, token: `${host}:1:${id.slice(0, 3)}`, job: `slots-any/${id}` });
const granted = (...ids: string[]) => new Map(ids.map((id) => [id, placeOf(id)]));

function group(config: Partial<GroupConfig>, ...sessions: Partial<SessionDefinition>[]): CoreLog {
  const log = new CoreLog({ maxConcurrentSessions: 10, ...config });
  for (const [index, more] of sessions.entries())
    log.addSession(sessionDefinition(index + 1, [], { ...work, ...more }));
  return log.run();
}

function decided(log: CoreLog, context: Partial<SchedulingContext>): string[] {
  return decide(log.state, { preparingMax: 100, ...context }).map((decision) => {
    if (decision.do === 'start') return `start ${decision.sessionId.slice(0, 3)} ${decision.place?.host ?? 'here'}`;
    if (decision.do === 'wish') return `wish ${decision.sessionId.slice(0, 3)}`;
    return 'reason' in decision ? `${decision.do} ${decision.reason}` : decision.do;
  });
}

const lost = (knownUsage: Usage, heldUsd: number): Usage => ({
  ...knownUsage,
  costUsd: roundUsd(knownUsage.costUsd + heldUsd),
  heldUsd,
});

const verdict = (log: CoreLog, context: Partial<SchedulingContext>, id: string) =>
  verdictsOf(log.state, { preparingMax: 100, ...context })(log.state.sessions.get(id) as SessionRecord);

describe('placement of sessions', () => {
  test('sessions start locally first, and those without room request a slot', () => {
    const log = group({}, {}, {}, {}, {});
    expect(decided(log, { fleet: fleet() })).toEqual(['start 001 here', 'start 002 here', 'wish 003', 'wish 004']);
    log.start(a).start(b);
    expect(decided(log, { fleet: fleet() })).toEqual(['wish 003', 'wish 004', 'wait host']);
    expect(decided(log, { fleet: fleet({ granted: granted(c) }) })).toEqual(['start 003 one', 'wish 004']);
  });

  test('sessions that no host may run because of a refused login do not wait, and local sessions still start', () => {
    const refused = fleet({ withoutLogin: () => ['one', 'two'] });
    const log = group({}, { requires: ['gpu'] }, {});
    expect(decided(log, { fleet: refused })).toEqual(['start 002 here']);
    expect(verdict(log, { fleet: refused }, a)).toMatchObject({
      reason: 'no-host',
      message: 'Session 001 is to work on a host with gpu, and the login was refused on one and two.',
      advice: {
        commands: [
          ['host', 'resume', 'one'],
          ['host', 'resume', 'two'],
        ],
      },
    });
    expect(decided(group({ where: 'fleet' }, {}), { fleet: refused })).toEqual(['settle no-host']);
    expect(decided(group({}, {}, {}, {}), { fleet: refused }).at(-1)).toBe('wish 003');
  });

  test('a granted slot is used even if the local host has room again', () => {
    expect(decided(group({}, {}), { fleet: fleet({ granted: granted(a) }) })).toEqual(['start 001 one']);
  });

  test('remote sessions take no local room, and local sessions take no slot', () => {
    const log = group({}, {}, {}, {}).intendAt(a).intendAt(b);
    expect(decided(log, { fleet: fleet({ localSlots: 1 }), preparingMax: 1 })).toEqual(['start 003 here']);
    const room = { starts: 0, reason: 'memory', message: 'Too little memory.' } as const;
    expect(decided(log, { fleet: fleet(), room })).toEqual(['wish 003', 'wait host']);
    expect(decided(log, { fleet: fleet({ granted: granted(c) }), room })).toEqual(['start 003 one']);
  });

  test('on a full local host, a session that must stay shows the missing resource and blocks no other', () => {
    const log = group({}, { isolate: 'none' }, {});
    const room = { starts: 0, reason: 'memory', message: 'Too little memory.' } as const;
    expect(decided(log, { fleet: fleet(), room })).toEqual(['wish 002', 'wait memory']);
    expect(verdict(log, { fleet: fleet(), room }, a)?.reason).toBe('memory');
    expect(verdict(log, { fleet: fleet(), room }, b)?.reason).toBe('host');
  });

  test.each<[string, Partial<GroupConfig>, Partial<SessionDefinition>]>([
    ['labels', {}, { requires: ['gpu'] }],
    ['named host', {}, { host: 'one' }],
    ['fleet group', { where: 'fleet' }, {}],
  ])('%s: the session must run remotely and waits for a slot', (_, config, more) => {
    const log = group(config, more);
    expect(decided(log, { fleet: fleet() })).toEqual(['wish 001', 'wait host']);
    expect(decided(log, { fleet: fleet({ granted: granted(a) }) })).toEqual(['start 001 one']);
    // A rehearsal requests no slots.
    expect(decided(log, {})).toEqual(['start 001 here']);
  });

  test('there are at most as many slot requests as sessions can be prepared before a request expires', () => {
    const log = group({ where: 'fleet' }, ...Array(9).fill({}));
    const few = { preparingMax: 1 };
    const wishes = (context: Partial<SchedulingContext>) =>
      decided(log, { ...few, ...context }).filter((decision) => decision.startsWith('wish'));
    expect(wishes({ fleet: fleet() })).toEqual(['wish 001', 'wish 002', 'wish 003', 'wish 004']);
    expect(verdict(log, { ...few, fleet: fleet() }, sid(5))?.reason).toBe('starting');
    // A request that no host grants does not block others, and neither does a session already sent.
    expect(wishes({ fleet: fleet({ staleSlotRequests: new Set([a, b]) }) })).toHaveLength(6);
    log.intendAt(a).intendAt(b);
    expect(wishes({ fleet: fleet() })).toHaveLength(4);
    expect(wishes({ fleet: fleet(), inQueue: new Set([a, b]) })).toHaveLength(2);
    expect(wishes({ fleet: fleet({ granted: granted(c) }) })).toHaveLength(3);
  });

  test('a slot request names what the session requires and why it waits', () => {
    const log = group({}, { requires: ['gpu', 'node20'] });
    const [wish] = decide(log.state, { preparingMax: 1, fleet: fleet() });
    expect(wish).toEqual({ do: 'wish', sessionId: a, needs: { requires: ['gpu', 'node20'] } });
    expect(verdict(log, { fleet: fleet() }, a)).toMatchObject({
      reason: 'host',
      message: 'It waits for a slot with gpu and node20: all are busy.',
    });
  });

  test('a slot request goes first to the last host of the session, until that host is lost or replaced', () => {
    const log = group({ where: 'fleet' }, {}, { host: 'one' });
    const preferred = () =>
      decide(log.state, { preparingMax: 9, fleet: fleet() }).flatMap((decision) =>
        decision.do === 'wish' ? [decision.prefer] : [],
      );
    const work = (id: string, to: string) => {
      log.add({ type: 'session_moved', sessionId: id, to });
      log.intendAt(id, to);
    };
    expect(preferred()).toEqual([undefined, undefined]);
    work(a, 'one');
    work(b, 'one');
    log.pause(a, noUsage, 'top-up').pause(b, noUsage, 'top-up');
    // The other session requests a slot for itself.
    expect(preferred().toSorted()).toEqual(['one', undefined]);
    log.start(b).complete(b);
    work(a, 'one');
    log.loseHost(a, lost(usage(0.1), 1));
    expect(preferred()).toEqual([undefined]);
    // The late results have arrived, but whether the host can be trusted again is unknown.
    log.add({ type: 'session_booked', sessionId: a, attemptId: attemptId(a, 2), usage: usage(0.2) });
    expect(preferred()).toEqual([undefined]);
    work(a, 'two');
    log.pause(a, noUsage, 'interrupted');
    expect(preferred()).toEqual(['two']);
    log.add({ type: 'session_moved', sessionId: a, from: 'two', to: thisMachine });
    log.start(a).pause(a, noUsage, 'interrupted');
    expect(preferred()).toEqual([undefined]);
  });

  test('a session waits five seconds for the host that has its files, even if the local host has room', () => {
    const log = group({}, {}, {});
    log.add({ type: 'session_moved', sessionId: a, to: 'one' });
    log.intendAt(a, 'one').pause(a, noUsage, 'interrupted');
    expect(decided(log, { fleet: fleet() }).toSorted()).toEqual(['start 002 here', 'wish 001']);
    expect(decided(log, { fleet: fleet({ staleSlotRequests: new Set([a]) }) })).toContain('start 001 here');
    expect(decided(log, { fleet: fleet({ granted: granted(a) }) })).toContain('start 001 one');
    // Without a fleet, sessions do not wait for any host.
    expect(decided(log, { fleet: null })).toContain('start 001 here');
  });

  test('a group that must stay local requests no slots', () => {
    expect(decided(group({ where: 'local' }, {}, {}, {}), { fleet: fleet() })).toEqual([
      ...['start 001 here', 'start 002 here', 'start 003 here'],
    ]);
  });

  test.each<[string, Partial<GroupConfig>, Partial<SessionDefinition>, FleetView | null, RegExp]>([
    ['no fleet', {}, { requires: ['gpu'] }, null, /on a host with gpu, and no fleet is set up here\.$/],
    ['a fleet group without a fleet', { where: 'fleet' }, {}, null, /on another host, and no fleet/],
    ['no worktree', {}, { host: 'one', isolate: 'none' }, fleet(), /on the host one, but without a worktree/],
    ['a local group', { where: 'local' }, { host: 'one' }, fleet(), /and its group runs only on this host/],
  ])(
    '%s: the session waits with one sentence, and the run ends when nothing else can start',
    (_, config, more, view, sentence) => {
      const log = group(config, more, config.where === 'fleet' ? more : {});
      if (config.where !== 'fleet') {
        expect(decided(log, { fleet: view })).toEqual(['start 002 here']);
        log.start(b).complete(b);
      }
      expect(verdict(log, { fleet: view }, a)).toMatchObject({
        reason: 'no-host',
        message: expect.stringMatching(sentence),
      });
      expect(decide(log.state, { preparingMax: 1, fleet: view })).toMatchObject([
        { do: 'settle', status: 'paused', reason: 'no-host', message: expect.stringMatching(sentence) },
      ]);
    },
  );

  test('a session that can never start does not end a run while another session waits for a slot', () => {
    const log = group({}, { host: 'one', isolate: 'none' }, { requires: ['gpu'] });
    expect(decided(log, { fleet: fleet() })).toEqual(['wish 002', 'wait host']);
  });

  test('a session that must run remotely gets a worktree, and so do all sessions of the group', () => {
    const log = new CoreLog({});
    log.addSession(sessionDefinition(1, [], { repository: '/r/.git', requires: ['gpu'] }));
    log.addSession(sessionDefinition(2, [], { repository: '/r2/.git' }));
    expect(isolationOf(log.state, a)).toBe('worktree');
    expect(isolationOf(log.state, b)).toBe('worktree');
  });

  test('a session that only needs its acceptance command is accepted locally', () => {
    const log = group({ where: 'fleet' }, { accept: 'true' }).intendAt(a);
    log.add({ type: 'session_accepting', sessionId: a, attemptId: attemptId(a, 1), result: 'Done.', usage: noUsage });
    log.pause(a, noUsage, 'interrupted');
    expect(decided(log, { fleet: fleet() })).toEqual(['start 001 here']);
  });

  test('the acceptance command of a session that requires a host does not run locally after an interruption', () => {
    const log = group({}, { accept: 'true', requires: ['gpu'] }).intendAt(a);
    log.add({ type: 'session_accepting', sessionId: a, attemptId: attemptId(a, 1), result: 'Done.', usage: noUsage });
    log.pause(a, noUsage, 'interrupted');
    expect(decided(log, { fleet: fleet() })).toEqual(['wish 001', 'wait host']);
  });

  test('a local slot is kept for a fresh slot request, but not for a stale one', () => {
    const log = group({ maxConcurrentSessions: 2 }, { requires: ['gpu'] }, {}, {});
    expect(decided(log, { fleet: fleet() })).toEqual(['start 002 here', 'wish 001']);
    const longWished = new Set([a]);
    expect(decided(log, { fleet: fleet({ staleSlotRequests: longWished }) })).toEqual([
      'start 002 here',
      'start 003 here',
      'wish 001',
    ]);
  });

  test('a pausing group and a closed limit gate send no slot requests', () => {
    const log = group({ where: 'fleet' }, {});
    const gate = { untilMs: 5, mayProbe: false };
    expect(decided(log, { fleet: fleet(), gate })).toEqual(['wait limit']);
    log.add({ type: 'group_pausing', reason: 'user' });
    expect(decided(log, { fleet: fleet() })).toEqual(['settle user']);
  });
});

describe('money of remote attempts', () => {
  const cap = { maxBudgetUsd: 100, where: 'fleet' } as const;
  const reserved = (log: CoreLog, id: string) => {
    const starts = decide(log.state, { preparingMax: 9, fleet: fleet({ granted: granted(a, b, c) }) });
    const start = starts.find((decision) => decision.do === 'start' && decision.sessionId === id);
    return start?.do === 'start' ? start.reserveUsd : undefined;
  };

  test('a remote attempt gets a tenth of the free budget, at least $0.50, and at most what is free', () => {
    expect(reserved(group(cap, {}, {}), a)).toBe(10);
    expect(reserved(group(cap, {}, {}), b)).toBe(9);
    expect(reserved(group({ ...cap, maxBudgetUsd: 2 }, {}), a)).toBe(0.5);
    expect(reserved(group({ ...cap, maxBudgetUsd: 0.3 }, {}), a)).toBe(0.3);
    expect(reserved(group(cap, { maxBudgetUsd: 20 }), a)).toBe(2);
    expect(reserved(group({ where: 'fleet' }, {}), a)).toBeUndefined();
  });

  test('no slot is requested for a session that the budget cannot pay', () => {
    const log = group({ ...cap, maxBudgetUsd: 1 }, {}, {}, {});
    expect(decided(log, { fleet: fleet() })).toEqual(['wish 001', 'wish 002']);
  });

  const known: Usage = {
    ...usage(0.2, 40),
    models: { m: { costUsd: 0.2, tokens: { ...noUsage.tokens, output: 40 } } },
  };
  test('the possible cost of a lost host is held until its late results replace it', () => {
    const log = group(cap, {}).intendAt(a, 'one', 10).loseHost(a, lost(known, 9.8));
    const { state } = log;
    expect(state.usage).toMatchObject({ costUsd: 10, heldUsd: 9.8 });
    expect(state.reservedUsd).toBe(0);
    expect(state.sessions.get(a)).toMatchObject({ queued: true, state: { status: 'paused', reason: 'host-lost' } });
    expect(reserved(log, a)).toBe(9);
    const exact = { ...usage(0.4, 90), models: { m: { costUsd: 0.4, tokens: { ...noUsage.tokens, output: 90 } } } };
    log.add({ type: 'session_booked', sessionId: a, attemptId: attemptId(a, 1), usage: exact });
    expect(state.usage).toEqual({ ...exact });
    expect(state.sessions.get(a)?.usage).toEqual({ ...exact });
    expect(state.sessions.get(a)?.lost).toBeUndefined();
    expect(() => log.add({ type: 'session_booked', sessionId: a, attemptId: attemptId(a, 1), usage: exact })).toThrow(
      'lost no attempt',
    );
  });

  test.each([
    ['freed', 0.2],
    ['booked', 10],
  ] as const)('late results also replace held money that a user has %s', (_, costUsd) => {
    const log = group(cap, {}).intendAt(a, 'one', 10).loseHost(a, lost(known, 9.8));
    const { heldUsd: _held, ...rest } = lost(known, 9.8);
    log.add({ type: 'session_cost_settled', sessionId: a, usage: { ...rest, costUsd } });
    expect(log.state.usage).toMatchObject({ costUsd });
    log.add({ type: 'session_booked', sessionId: a, attemptId: attemptId(a, 1), usage: usage(0.4) });
    expect(log.state.usage.costUsd).toBe(0.4);
    expect(log.state.usage.heldUsd).toBeUndefined();
    expect(log.state.sessions.get(a)?.usage.costUsd).toBe(0.4);
  });

  test('a host that returns after the group has ended changes only the sums', () => {
    const log = group(cap, {}).intendAt(a, 'one', 10).loseHost(a, lost(known, 9.8)).start(a, 'resume', 9);
    const book = { type: 'session_booked', sessionId: a, attemptId: attemptId(a, 1), usage: usage(0.3) } as const;
    log.complete(a, usage(1)).add({ type: 'group_completed' }).add(book);
    expect(log.state.status).toBe('completed');
    expect(log.state.usage.costUsd).toBe(1.3);
    expect(log.state.usage).toEqual(foldEvents(log.events)?.usage as Usage);
  });

  test('converting part of a sum from held to spent is exact to the sixth digit', () => {
    const amount = fc.integer({ min: 0, max: 50_000_000 }).map((micro) => micro / 1e6);
    const some = fc.tuple(amount, fc.nat(1e6), fc.constantFrom('m', 'n')).map(([usd, output, model]): Usage => {
      const tokens = { ...noUsage.tokens, output };
      return { ...noUsage, costUsd: usd, tokens, models: { [model]: { costUsd: usd, tokens } } };
    });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 6 }), some, some, amount, (others, before, after, held) => {
        const log = group({ maxBudgetUsd: 1e6 }, {});
        for (const other of others) log.start(a, 'resume').pause(a, other, 'interrupted');
        log.intendAt(a, 'one', 100).loseHost(a, lost(before, held));
        for (const other of others) log.start(a, 'resume').pause(a, other, 'interrupted');
        log.add({ type: 'session_booked', sessionId: a, attemptId: attemptId(a, others.length + 1), usage: after });
        const twice = [...others, ...others, after].reduce((sum, { costUsd }) => roundUsd(sum + costUsd), 0);
        expect(log.state.usage.costUsd).toBe(twice);
        expect(log.state.sessions.get(a)?.usage).toEqual(log.state.usage);
        expect(log.state.usage.heldUsd).toBeUndefined();
      }),
      cases,
    );
  });

  test('held money is the reserved part that is not known to be spent', () => {
    const attempt = { reservedUsd: 0.5 } as Parameters<typeof heldCost>[0];
    expect(heldCost(attempt, 0.012)).toBe(0.488);
    expect(heldCost(attempt, 0.6)).toBe(0);
    expect(heldCost({} as typeof attempt, 0.6)).toBe(0);
  });

  test('spent, reserved and held money never exceeds the cap, whatever is lost and found', () => {
    const step = fc.tuple(
      fc.constantFrom('lose', 'book', 'end', 'look', 'settle'),
      fc.nat(2),
      fc.double({ min: 0, max: 1, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 40 }), (maxBudgetUsd, steps) => {
        const log = group({ maxBudgetUsd, where: 'fleet' }, {}, {}, {});
        for (const [what, index, share] of steps) act(log, what, sid(index + 1), share);
        expect(log.state.usage).toEqual(foldEvents(log.events)?.usage as Usage);
      }),
      cases,
    );
  });

  /** Applies one event to the session if it is legal, then carries out all decisions. */
  function act(log: CoreLog, what: string, id: string, share: number): void {
    const { state } = log;
    const record = state.sessions.get(id) as SessionRecord;
    const cap2 = state.group.config.maxBudgetUsd as number;
    if (record.state.status === 'running') {
      const { reservedUsd = 0 } = record.state.attempt;
      const spent = roundUsd(reservedUsd * share);
      if (what === 'lose') log.loseHost(id, lost(usage(spent), heldCost(record.state.attempt, spent)));
      if (what === 'end') log.pause(id, usage(spent), 'interrupted');
    } else if (record.lost?.[0] !== undefined && what === 'book') {
      const { attempt, usage: counted } = record.lost[0];
      // A host can spend neither more than its reservation nor less than it has reported.
      const least = counted.costUsd - (counted.heldUsd ?? 0);
      log.add({
        type: 'session_booked',
        sessionId: id,
        attemptId: attempt.id,
        usage: usage(roundUsd(least + (counted.heldUsd ?? 0) * share)),
      });
    } else if (record.usage.heldUsd !== undefined && what === 'settle') {
      const { heldUsd: _held, ...rest } = record.usage;
      log.add({ type: 'session_cost_settled', sessionId: id, usage: rest });
    }
    const view = fleet({ granted: granted(a, b, c) });
    for (const decision of decide(state, { preparingMax: 9, fleet: view })) {
      if (decision.do === 'start') log.intendAt(decision.sessionId, 'one', decision.reserveUsd);
    }
    expect(roundUsd(state.usage.costUsd + state.reservedUsd)).toBeLessThanOrEqual(cap2);
  }

  test('subtracting usage leaves no entry for a model that was not used', () => {
    expect(exchanged(known, known, noUsage)).toEqual(noUsage);
  });
});
