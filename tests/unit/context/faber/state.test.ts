/**
 * Promises of the run's state: a session record is made exactly when claude's id or the machine changes, and after each
 * compaction; ends, compactions and phases are recorded; whatever else stands in the state stays, in whatever form
 * others wrote it.
 */

import { describe, expect, test } from 'bun:test';
import { listOf, objectOf } from '../../../../src/context/faber/json-text.ts';
import {
  type Actor,
  beginSession,
  currentSession,
  endSession,
  finishPhase,
  isSessionOpen,
  noteCompaction,
  phasesCompleted,
  phasesDefault,
  recordLoads,
} from '../../../../src/context/faber/state.ts';
import type { JsonObject } from '../../../../src/store/json.ts';
import { fresh, minute, startMs } from '../../../support/context/faber/rig.ts';
import { fc } from '../../../support/property.ts';

function who(sessionId: string, more: Partial<Actor> = {}): Actor {
  return { sessionId, host: 'laptop', platform: 'linux', cwd: '/home/me/p', nowMs: startMs, ...more };
}

const sessionsOf = (state: JsonObject) => objectOf(state.sessions);
const historyOf = (state: JsonObject) => listOf(sessionsOf(state).session_history).map(objectOf);

describe('session records', () => {
  test('a new one exactly when the id or the machine differs from the current one', () => {
    const steps: [string, string, boolean][] = [
      ['s1', 'laptop', true],
      ['s1', 'laptop', false],
      ['s1', 'desktop', true],
      ['s2', 'desktop', true],
      ['s2', 'desktop', false],
      ['s1', 'desktop', true],
    ];
    let state = fresh();
    let count = 0;
    for (const [id, host, isNew] of steps) {
      const begun = beginSession(state, who(id, { host, nowMs: startMs + count * minute }));
      expect(begun).toMatchObject({ isNew, sessionId: id });
      state = begun.state;
      count += isNew ? 1 : 0;
      expect(sessionsOf(state)).toMatchObject({ current_session_id: id, total_sessions: count });
    }
    expect(historyOf(state).map(({ session_id, ended_at }) => [session_id, ended_at])).toEqual([
      ['s1', undefined],
      ['s1', undefined],
      ['s2', undefined],
    ]);
  });

  test('property: as many records as changes of id or machine, and none is lost', () => {
    const step = fc.record({
      id: fc.constantFrom('s1', 's2', 's3'),
      host: fc.constantFrom('laptop', 'desktop'),
      after: fc.constantFrom('nothing', 'end', 'failed', 'compact'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        let state = fresh();
        let last = '';
        let count = 0;
        steps.forEach(({ id, host, after }, index) => {
          const me = who(id, { host, nowMs: startMs + index * minute });
          state = beginSession(state, me).state;
          if (`${id} ${host}` !== last) count += 1;
          if (after === 'compact') count += 1;
          last = `${id} ${host}`;
          if (after === 'end') state = endSession(state, me, { atMs: me.nowMs, reason: 'normal' }).state;
          if (after === 'failed') state = beginSession(noteCompaction(state, me), me).state;
          if (after === 'compact') state = beginSession(noteCompaction(state, me), me, { isCompacted: true }).state;
          expect(sessionsOf(state).total_sessions).toBe(count);
        });
        const keys = new Set(historyOf(state).map((one) => JSON.stringify([one.session_id, one.started_at, one.part])));
        expect(keys.size).toBe(historyOf(state).length);
        expect(historyOf(state).length + (isSessionOpen(state) ? 1 : 0)).toBeGreaterThanOrEqual(count);
      }),
    );
  });

  test('who has no id goes on with the current session of this machine', () => {
    const nobody: Actor = { host: 'laptop', cwd: '/p', nowMs: startMs };
    const first = beginSession(fresh(), nobody);
    expect(first.sessionId).toMatch(/^claude-session-20260105-143022-[0-9a-f]{6}$/);
    expect(beginSession(first.state, nobody)).toMatchObject({ isNew: false, sessionId: first.sessionId });
    const elsewhere = beginSession(first.state, { ...nobody, host: 'desktop' });
    expect(elsewhere.isNew).toBe(true);
    expect(elsewhere.sessionId).not.toBe(first.sessionId);
  });

  test('the end of a session that is no longer current is recorded in its own record', () => {
    let { state } = beginSession(fresh(), who('s1'));
    ({ state } = beginSession(state, who('s2')));
    const end = { atMs: startMs + minute, reason: 'other' };
    const ended = endSession(state, who('s1'), end);
    expect(ended.ended).toBe('s1');
    expect(historyOf(ended.state)).toMatchObject([{ session_id: 's1', ended_at: '2026-01-05T14:31:22Z' }]);
    expect(currentSession(ended.state).id).toBe('s2');
    expect(isSessionOpen(ended.state)).toBe(true);
    for (const other of [who('s3'), who('s2', { host: 'desktop' })]) {
      expect(endSession(state, other, end)).toEqual({ state, ended: null });
    }
  });
});

describe('S5: a compaction is a boundary', () => {
  const at = (minutes: number) => who('s1', { nowMs: startMs + minutes * minute });
  const noted = () =>
    noteCompaction(finishPhase(beginSession(fresh(), at(0)).state, 'frame', phasesDefault, at(0)), at(1));

  test('the end is recorded before it, and the session counts as open until it is confirmed', () => {
    expect(historyOf(noted())).toMatchObject([
      {
        session_id: 's1',
        ended_at: '2026-01-05T14:31:22Z',
        end_reason: 'compaction',
        end_confirmed: false,
        phases_completed: ['frame'],
      },
    ]);
    expect(sessionsOf(noted())).toMatchObject({ current_session_id: 's1', total_sessions: 1 });
    expect(sessionsOf(noted()).current_session).toBeUndefined();
    expect(isSessionOpen(noted())).toBe(true);
    // Two hooks that do the same record one end.
    expect(noteCompaction(noted(), at(1))).toEqual(noted());
  });
  test('after it a new record goes on under the same id, at the time that was noted', () => {
    const after = beginSession(noted(), at(2), { isCompacted: true });
    expect(after).toMatchObject({ isNew: true, sessionId: 's1' });
    expect(sessionsOf(after.state)).toMatchObject({
      current_session_id: 's1',
      total_sessions: 2,
      current_session: { session_id: 's1', part: 2, resumed_from: 's1', started_at: '2026-01-05T14:32:22Z' },
      session_history: [{ ended_at: '2026-01-05T14:31:22Z', end_reason: 'compaction', end_confirmed: true }],
    });
    const second = beginSession(noteCompaction(after.state, at(3)), at(4), { isCompacted: true });
    const ended = endSession(second.state, at(5), { atMs: startMs + 5 * minute, reason: 'normal' }).state;
    expect(historyOf(ended).map(({ part, resumed_from, end_reason }) => [part, resumed_from, end_reason])).toEqual([
      [undefined, undefined, 'compaction'],
      [2, 's1', 'compaction'],
      [3, 's1', 'normal'],
    ]);
    // A resume goes on with the last part.
    expect(beginSession(ended, at(6))).toMatchObject({ isNew: false });
    expect(currentSession(beginSession(ended, at(6)).state).record).toMatchObject({ part: 3 });
  });
  test('one that fails leaves no trace of an end, whether the session goes on or ends', () => {
    const goesOn = beginSession(noted(), at(2));
    expect(goesOn).toMatchObject({ isNew: false });
    expect(historyOf(goesOn.state)).toEqual([]);
    for (const state of [noted(), goesOn.state]) {
      const ended = endSession(state, at(3), { atMs: startMs + 3 * minute, reason: 'normal' }).state;
      expect(historyOf(ended)).toMatchObject([{ end_reason: 'normal', ended_at: '2026-01-05T14:33:22Z' }]);
      expect(historyOf(ended)[0]).not.toHaveProperty('end_confirmed');
      expect(isSessionOpen(ended)).toBe(false);
    }
  });
  test('of two sessions each has its own, whoever is current', () => {
    let state = beginSession(beginSession(fresh(), at(0)).state, who('s2', { nowMs: startMs + minute })).state;
    state = noteCompaction(state, at(2));
    expect(currentSession(state).id).toBe('s2');
    state = beginSession(state, at(3), { isCompacted: true }).state;
    expect(historyOf(state)).toMatchObject([
      { session_id: 's1', end_reason: 'compaction', end_confirmed: true },
      { session_id: 's2' },
    ]);
    expect(currentSession(state).record).toMatchObject({ session_id: 's1', part: 2, resumed_from: 's1' });
  });
  test('without a record, or without the hook before it, the boundary is recorded all the same', () => {
    expect(historyOf(noteCompaction(fresh(), at(1)))).toMatchObject([{ session_id: 's1', end_reason: 'compaction' }]);
    const { state } = beginSession(beginSession(fresh(), at(0)).state, at(2), { isCompacted: true });
    expect(historyOf(state)).toMatchObject([{ session_id: 's1', ended_at: '2026-01-05T14:32:22Z' }]);
    expect(currentSession(state).record).toMatchObject({ part: 2, resumed_from: 's1' });
    // Another machine knows nothing of this one's conversation.
    expect(beginSession(state, who('s1', { host: 'desktop' }), { isCompacted: true }).state).not.toHaveProperty(
      'sessions.current_session.resumed_from',
    );
  });
});

describe('phases', () => {
  test('the last one completes the run', () => {
    let state = beginSession(fresh(), who('s1')).state;
    for (const phase of phasesDefault) state = finishPhase(state, phase, phasesDefault, who('s1'));
    expect(state).toMatchObject({ status: 'completed', current_phase: 'none' });
    expect(currentSession(state).record?.phases_completed).toEqual([...phasesDefault]);
  });

  test.each([
    [{ frame: { status: 'completed' }, build: { status: 'pending' } }, ['frame']],
    [{ frame: 'completed', architect: 'done', build: 'pending' }, ['frame', 'architect']],
    [
      [
        { id: 'frame', status: 'completed' },
        { name: 'build', status: 'running' },
      ],
      ['frame'],
    ],
    [null, []],
    ['frame', []],
    [[1, null, 'x'], []],
  ])('are read as %j', (phases, expected) => {
    expect(phasesCompleted({ phases })).toEqual(expected);
    const finished = finishPhase({ phases }, 'architect', phasesDefault, { nowMs: startMs });
    expect(phasesCompleted(finished)).toContain('architect');
  });
});

test('property: unknown fields stay, whatever happens and whatever stood there', () => {
  const text = fc.string();
  fc.assert(
    fc.property(fc.dictionary(text, fc.jsonValue()), fc.jsonValue(), fc.jsonValue(), (unknown, phases, sessions) => {
      const state: JsonObject = { phases, sessions, ...unknown, status: 'in_progress' };
      let now = beginSession(state, who('s1')).state;
      now = recordLoads(now, [{ id: 'a', source: 'a.md', sizeBytes: 1 }], {
        trigger: 'manual',
        sessionId: 's1',
        nowMs: 1,
      });
      now = finishPhase(now, 'frame', phasesDefault, who('s1'));
      now = beginSession(noteCompaction(now, who('s1')), who('s1'), { isCompacted: true }).state;
      now = beginSession(now, who('s2')).state;
      now = endSession(now, who('s2'), { atMs: startMs, reason: 'normal' }).state;
      const ours = /^(?:status|updated_at|current_phase|phases|sessions|context_metadata|completed_at)$/;
      for (const [key, value] of Object.entries(unknown)) {
        if (!ours.test(key)) expect(now[key]).toEqual(value as never);
      }
      // What a file can hold: it knows no -0.
      expect(JSON.stringify(JSON.parse(JSON.stringify(now)))).toBe(JSON.stringify(now));
    }),
  );
});
