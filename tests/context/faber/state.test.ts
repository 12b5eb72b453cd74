/**
 * Promises of the run's state: a session record is made exactly when claude's id or the machine changes; ends,
 * compactions and phases are recorded; whatever else stands in the state stays, in whatever form others wrote it.
 */
import { describe, expect, test } from 'bun:test';
import { type JsonObject, listOf, objectOf } from '../../../src/context/faber/json-text.ts';
import {
  beginSession,
  commitCompaction,
  currentSession,
  endSession,
  finishPhase,
  isSessionOpen,
  noteCompaction,
  phasesCompleted,
  phasesDefault,
  recordLoads,
  type Who,
} from '../../../src/context/faber/state.ts';
import { fc } from '../../support/property.ts';
import { fresh, minute, startMs } from './rig.ts';

function who(sessionId: string, more: Partial<Who> = {}): Who {
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
      ['s1', null],
      ['s1', null],
      ['s2', null],
    ]);
  });

  test('property: as many records as changes of id or machine, and none is lost', () => {
    const step = fc.record({
      id: fc.constantFrom('s1', 's2', 's3'),
      host: fc.constantFrom('laptop', 'desktop'),
      after: fc.constantFrom('nothing', 'end', 'compact'),
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
          last = `${id} ${host}`;
          if (after === 'end') state = endSession(state, me, { atMs: me.nowMs, reason: 'normal' }).state;
          if (after === 'compact') state = beginSession(commitCompaction(noteCompaction(state, me), me), me).state;
          expect(sessionsOf(state).total_sessions).toBe(count);
        });
        const keys = new Set(historyOf(state).map((one) => JSON.stringify([one.session_id, one.started_at])));
        expect(keys.size).toBe(historyOf(state).length);
        expect(historyOf(state).length + (isSessionOpen(state) ? 1 : 0)).toBeGreaterThanOrEqual(count);
      }),
    );
  });

  test('who has no id goes on with the current session of this machine', () => {
    const nobody: Who = { host: 'laptop', cwd: '/p', nowMs: startMs };
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

describe('compactions', () => {
  test('one that fails leaves no trace of an end; one that happens ends at the time it was noted', () => {
    const { state } = beginSession(fresh(), who('s1'));
    const noted = noteCompaction(
      finishPhase(state, 'frame', phasesDefault, who('s1')),
      who('s1', { nowMs: startMs + minute }),
    );
    expect(historyOf(noted)).toEqual([]);
    expect(sessionsOf(noted).pending_end).toMatchObject({ session_id: 's1', phases_completed: ['frame'] });
    const failed = beginSession(noted, who('s1')).state;
    expect(sessionsOf(failed).pending_end).toBeUndefined();
    expect(historyOf(failed)).toEqual([]);
    const done = commitCompaction(noted, who('s1', { nowMs: startMs + 2 * minute }));
    expect(historyOf(done)).toMatchObject([
      { session_id: 's1', ended_at: '2026-01-05T14:31:22Z', end_reason: 'compaction', phases_completed: ['frame'] },
    ]);
    const after = beginSession(done, who('s1', { nowMs: startMs + 2 * minute }));
    expect(after).toMatchObject({ isNew: false });
    const end = endSession(after.state, who('s1'), { atMs: startMs + 3 * minute, reason: 'normal' });
    expect(historyOf(end.state)).toMatchObject([
      { session_id: 's1', end_reason: 'normal', ends: [{ reason: 'compaction' }, { reason: 'normal' }] },
    ]);
  });
});

describe('phases', () => {
  test('the last one completes the run', () => {
    let state = beginSession(fresh(), who('s1')).state;
    for (const phase of phasesDefault) state = finishPhase(state, phase, phasesDefault, who('s1'));
    expect(state).toMatchObject({ status: 'completed', current_phase: null });
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
      now = beginSession(commitCompaction(noteCompaction(now, who('s1')), who('s1')), who('s2')).state;
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
