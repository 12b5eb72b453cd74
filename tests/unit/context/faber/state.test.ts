/**
 * Promises: a session record is created exactly when claude's id or the host changes, and after each compaction.
 * Ends, compactions and phases are recorded, and all other content of the state stays in any form.
 */

import { describe, expect, test } from 'bun:test';
import {
  type Actor,
  beginSession,
  currentSession,
  endSession,
  finishPhase,
  isSessionOpen,
  listOf,
  noteCompaction,
  objectOf,
  phasesCompleted,
  phasesDefault,
  recordLoads,
} from '../../../../src/context/faber/state.ts';
import type { JsonObject } from '../../../../src/store/json.ts';
import { fresh, minute, runStartMs } from '../../../support/context/faber/rig.ts';
import { fc } from '../../../support/property.ts';

function who(sessionId: string, more: Partial<Actor> = {}): Actor {
  return { sessionId, host: 'laptop', platform: 'linux', cwd: '/home/me/p', nowMs: runStartMs, ...more };
}

const sessionsOf = (state: JsonObject) => objectOf(state.sessions);
const historyOf = (state: JsonObject) => listOf(sessionsOf(state).session_history).map(objectOf);

describe('session records', () => {
  test('a session record is created exactly when the id or the host differs from the current one', () => {
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
      const begun = beginSession(state, who(id, { host, nowMs: runStartMs + count * minute }));
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

  test('there are as many session records as changes of id or host, and none is lost', () => {
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
          const me = who(id, { host, nowMs: runStartMs + index * minute });
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

  test('a session without an id continues the current session of its host', () => {
    const anonymous: Actor = { host: 'laptop', cwd: '/p', nowMs: runStartMs };
    const first = beginSession(fresh(), anonymous);
    expect(first.sessionId).toMatch(/^claude-session-20260105-143022-[0-9a-f]{6}$/);
    expect(beginSession(first.state, anonymous)).toMatchObject({ isNew: false, sessionId: first.sessionId });
    const elsewhere = beginSession(first.state, { ...anonymous, host: 'desktop' });
    expect(elsewhere.isNew).toBe(true);
    expect(elsewhere.sessionId).not.toBe(first.sessionId);
  });

  test('the end of a session that is no longer current is recorded in its own record', () => {
    let { state } = beginSession(fresh(), who('s1'));
    ({ state } = beginSession(state, who('s2')));
    const end = { atMs: runStartMs + minute, reason: 'other' };
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

describe('compactions', () => {
  const at = (minutes: number) => who('s1', { nowMs: runStartMs + minutes * minute });
  const noted = () =>
    noteCompaction(finishPhase(beginSession(fresh(), at(0)).state, 'frame', phasesDefault, at(0)), at(1));

  test('a compaction notes one end of the session, which counts as open until the next begins', () => {
    expect(historyOf(noted())).toMatchObject([
      {
        session_id: 's1',
        ended_at: '2026-01-05T14:31:22Z',
        end_reason: 'compaction',
        phases_completed: ['frame'],
      },
    ]);
    expect(sessionsOf(noted())).toMatchObject({ current_session_id: 's1', total_sessions: 1 });
    expect(sessionsOf(noted()).current_session).toBeUndefined();
    expect(isSessionOpen(noted())).toBe(true);
    // Two hooks that do the same record one end.
    expect(noteCompaction(noted(), at(1))).toEqual(noted());
  });
  test('after a compaction a new record continues under the same id from the recorded time', () => {
    const after = beginSession(noted(), at(2), { isCompacted: true });
    expect(after).toMatchObject({ isNew: true, sessionId: 's1' });
    expect(sessionsOf(after.state)).toMatchObject({
      current_session_id: 's1',
      total_sessions: 2,
      current_session: { session_id: 's1', part: 2, resumed_from: 's1', started_at: '2026-01-05T14:32:22Z' },
      session_history: [{ ended_at: '2026-01-05T14:31:22Z', end_reason: 'compaction' }],
    });
    const second = beginSession(noteCompaction(after.state, at(3)), at(4), { isCompacted: true });
    const ended = endSession(second.state, at(5), { atMs: runStartMs + 5 * minute, reason: 'normal' }).state;
    expect(historyOf(ended).map(({ part, resumed_from, end_reason }) => [part, resumed_from, end_reason])).toEqual([
      [undefined, undefined, 'compaction'],
      [2, 's1', 'compaction'],
      [3, 's1', 'normal'],
    ]);
    // A resume continues the last part.
    expect(beginSession(ended, at(6))).toMatchObject({ isNew: false });
    expect(currentSession(beginSession(ended, at(6)).state).record).toMatchObject({ part: 3 });
  });
  test('after a failed compaction the end of the session takes the place of the recorded one', () => {
    const goesOn = beginSession(noted(), at(2));
    expect(goesOn).toMatchObject({ isNew: false });
    for (const state of [noted(), goesOn.state]) {
      const ended = endSession(state, at(3), { atMs: runStartMs + 3 * minute, reason: 'normal' }).state;
      expect(historyOf(ended)).toMatchObject([{ end_reason: 'normal', ended_at: '2026-01-05T14:33:22Z' }]);
      expect(isSessionOpen(ended)).toBe(false);
    }
  });
  test('two sessions record their compactions separately, whichever is current', () => {
    let state = beginSession(beginSession(fresh(), at(0)).state, who('s2', { nowMs: runStartMs + minute })).state;
    state = noteCompaction(state, at(2));
    expect(currentSession(state).id).toBe('s2');
    state = beginSession(state, at(3), { isCompacted: true }).state;
    expect(historyOf(state)).toMatchObject([{ session_id: 's1', end_reason: 'compaction' }, { session_id: 's2' }]);
    expect(currentSession(state).record).toMatchObject({ session_id: 's1', part: 2, resumed_from: 's1' });
  });
  test('a compaction without a record or an earlier hook is recorded too', () => {
    expect(historyOf(noteCompaction(fresh(), at(1)))).toMatchObject([{ session_id: 's1', end_reason: 'compaction' }]);
    const { state } = beginSession(beginSession(fresh(), at(0)).state, at(2), { isCompacted: true });
    expect(historyOf(state)).toMatchObject([{ session_id: 's1', ended_at: '2026-01-05T14:32:22Z' }]);
    expect(currentSession(state).record).toMatchObject({ part: 2, resumed_from: 's1' });
    // Another host has no data on this one's conversation.
    expect(beginSession(state, who('s1', { host: 'desktop' }), { isCompacted: true }).state).not.toHaveProperty(
      'sessions.current_session.resumed_from',
    );
  });
});

describe('phases', () => {
  test('the last phase completes the run', () => {
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
  ])('phases are read as %j', (phases, expected) => {
    expect(phasesCompleted({ phases })).toEqual(expected);
    const finished = finishPhase({ phases }, 'architect', phasesDefault, { nowMs: runStartMs });
    expect(phasesCompleted(finished)).toContain('architect');
  });
});

test('unknown fields of the state stay, whatever happens and whatever was there', () => {
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
      now = endSession(now, who('s2'), { atMs: runStartMs, reason: 'normal' }).state;
      const ours = /^(?:status|updated_at|current_phase|phases|sessions|context_metadata|completed_at)$/;
      for (const [key, value] of Object.entries(unknown)) {
        if (!ours.test(key)) expect(now[key]).toEqual(value as never);
      }
      // The value as a file can hold it: without -0.
      expect(JSON.stringify(JSON.parse(JSON.stringify(now)))).toBe(JSON.stringify(now));
    }),
  );
});
