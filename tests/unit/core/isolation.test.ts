/**
 * Promises: sessions that may run at once in one repository are isolated. If one session has a worktree, all others
 * get one unless they chose otherwise or build on the checkout. Started sessions keep their choice.
 */
import { describe, expect, test } from 'bun:test';
import type { IsolationMode } from '../../../src/core/definitions.ts';
import type { SessionDefinition } from '../../../src/core/group.ts';
import { checkoutsInUse, isolationOf } from '../../../src/core/plan/isolation.ts';
import { nextStarts } from '../../../src/core/plan/schedule.ts';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { attemptId, CoreLog, sessionDefinition } from '../../support/core-events.ts';
import { fc } from '../../support/property.ts';

interface Sketch {
  readonly in?: string;
  readonly after?: readonly number[];
  readonly isolate?: IsolationMode;
}

/** Sessions 1, 2, … of a group; `after` names earlier ones by their numbers. */
function groupOf(sketches: readonly Sketch[]): CoreLog {
  const log = new CoreLog({ maxConcurrentSessions: 100 });
  for (const [index, { in: repository, after = [], isolate }] of sketches.entries()) {
    const session: SessionDefinition = {
      ...sessionDefinition(index + 1, after),
      ...(repository === undefined ? {} : { repository }),
      ...(isolate === undefined ? {} : { isolate }),
    };
    log.addSession(session);
  }
  return log;
}

const modes = (log: CoreLog) => [...log.state.sessions.keys()].map((id) => isolationOf(log.state, id));

describe('which sessions get a worktree', () => {
  test.each<[string, readonly Sketch[], readonly IsolationMode[]]>([
    ['sessions outside a repository share their folder', [{}, {}], ['none', 'none']],
    ['sessions in a chain share the checkout', [{ in: 'a' }, { in: 'a', after: [1] }], ['none', 'none']],
    [
      'sessions in a chain through another repository share the checkout',
      [{ in: 'a' }, { in: 'b', after: [1] }, { in: 'a', after: [2] }],
      ['none', 'none', 'none'],
    ],
    ['two sessions that may run at once get worktrees', [{ in: 'a' }, { in: 'a' }], ['worktree', 'worktree']],
    [
      'sessions beside two parallel ones get worktrees too',
      [{ in: 'a' }, { in: 'a' }, { in: 'b' }, {}],
      ['worktree', 'worktree', 'worktree', 'none'],
    ],
    [
      'one session with isolate: worktree gives all others a worktree',
      [{ in: 'a', isolate: 'worktree' }, { in: 'b' }],
      ['worktree', 'worktree'],
    ],
    [
      'a session with isolate: none gets no worktree',
      [{ in: 'a', isolate: 'none' }, { in: 'a' }, { in: 'a' }],
      ['none', 'worktree', 'worktree'],
    ],
    [
      'a session that builds on work in the checkout gets no worktree',
      [{ in: 'a', isolate: 'none' }, { in: 'b', after: [1] }, { in: 'a', after: [2] }, { in: 'b' }],
      ['none', 'worktree', 'none', 'worktree'],
    ],
  ])('isolation: %s', (_, sketches, expected) => expect(modes(groupOf(sketches))).toEqual([...expected]));
});

const aGroup = fc.array(
  fc.record({
    in: fc.constantFrom('a', 'b'),
    after: fc.array(fc.nat(7), { maxLength: 3 }),
    isolate: fc.constantFrom(undefined, undefined, undefined, 'none' as const, 'worktree' as const),
  }),
  { minLength: 1, maxLength: 8 },
);

test('at most one of the sessions that run at once in a repository is in the checkout', () => {
  fc.assert(
    fc.property(aGroup, fc.infiniteStream(fc.nat()), (raw, luck) => {
      const sketches = raw.map(
        ({ isolate, after, ...rest }, index): Sketch => ({
          ...rest,
          after: [...new Set(after.map((other) => other + 1).filter((other) => other <= index))],
          ...(isolate === undefined ? {} : { isolate }),
        }),
      );
      const log = groupOf(sketches);
      log.run();
      const begun = new Map<string, IsolationMode>();
      for (let round = 0; round < 40; round += 1) {
        for (const { sessionId, isolated } of nextStarts(log.state, { preparingMax: 100 }).starts) {
          const mode = isolated ? 'worktree' : 'none';
          expect(mode).toBe(isolationOf(log.state, sessionId));
          begun.set(sessionId, mode);
          const attempt = { id: attemptId(sessionId, 1), number: 1, kind: 'start', offset: 0 } as const;
          log.add({ type: 'session_starting', sessionId, attempt: { ...attempt, ...(isolated ? { isolated } : {}) } });
        }
        const inCheckouts = [...log.state.running].filter((id) => begun.get(id) === 'none');
        const repositories = inCheckouts.map((id) => log.state.sessions.get(id)?.definition.repository);
        expect(new Set(repositories).size).toBe(repositories.length);
        expect(checkoutsInUse(log.state).size).toBe(repositories.length);
        for (const [id, mode] of begun) expect(isolationOf(log.state, id)).toBe(mode);
        // A new runner, which has only read the log, makes the same choice as the state kept from step to step.
        const afresh = foldEvents(log.events) as GroupState;
        for (const id of log.state.sessions.keys()) expect(isolationOf(log.state, id)).toBe(isolationOf(afresh, id));
        const running = [...log.state.running];
        if (running.length === 0) break;
        log.complete(running[(luck.next().value as number) % running.length] as string);
      }
      expect(begun.size).toBe(sketches.length);
    }),
    { numRuns: 300 },
  );
});
